"""A Celery task with Redrive's retries and dead letters: python examples/celery_task.py

Everything happens in this process: Celery's memory transport, a worker in a thread, a dead letter queue in memory.
"""

import json
from collections import Counter
from typing import Any

from celery import Celery, current_task
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Reject

import redrive
from redrive.testing import RecordingDeadLetterQueue

app = Celery("shop", broker="memory://", backend="cache+memory://")
app.conf.broker_transport_options = {"polling_interval": 0.01}  # the memory transport looks once a second

# Small on purpose, to show what happens when it is full. In production: "sqlite:////var/lib/shop/letters.db".
letters = RecordingDeadLetterQueue(capacity=1)

attempts: Counter[int] = Counter()
no_longer_sold = {3, 4}


def task_message(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> redrive.Message:
    """The id of the task makes a task that Celery delivers twice one letter, not two."""
    return redrive.Message(current_task.request.id, "orders", json.dumps(args[0]).encode())


# These retries wait in the worker. Leave Celery's own (autoretry_for, self.retry) off: they would multiply.
@redrive.dead_letter(letters, source="orders", retry=[0.05, 0.1], message=task_message)
def charge(order: dict[str, int]) -> str:
    number = order["number"]
    attempts[number] += 1
    if number in no_longer_sold:
        raise redrive.GiveUp(f"order {number}: no longer sold", code="gone")
    if number == 2 and attempts[number] < 3:
        raise ConnectionError("the bank does not answer")
    return "charged"


# acks_late: Celery acks when the task has returned, so a worker that dies takes no order with it.
@app.task(acks_late=True)  # type: ignore[untyped-decorator] # Celery ships no types
def charge_order(order: dict[str, int]) -> str | None:
    try:
        return charge(order)
    except redrive.DeadLetterError as refused:
        # The letter was not written, so the order must stay in the queue. An exception alone would not keep it
        # there: Celery acks a task that fails (task_acks_on_failure_or_timeout), or drops it where that is off.
        print(f"order {order['number']}: {refused}; back into the queue")
        make_room()
        raise Reject(refused, requeue=True) from refused


def make_room() -> None:
    """Somebody looks after the full queue."""
    print(f"letter: {letters.last.payload!r} {letters.last.error_code} after {letters.last.retry_count} attempt")
    letters.clear()


def main() -> None:
    with start_worker(app, perform_ping_check=False, loglevel="CRITICAL"):
        sent = {number: charge_order.delay({"number": number}) for number in (1, 2, 3, 4)}
        for number, result in sent.items():
            told = result.get(timeout=30, interval=0.05) or "given up"
            print(f"order {number}: {told}, attempts: {attempts[number]}")

        no_longer_sold.clear()
        again = json.loads(letters.last.payload or b"")
        print(f"sent back: {again}, {charge_order.delay(again).get(timeout=30, interval=0.05)}")


if __name__ == "__main__":
    main()
