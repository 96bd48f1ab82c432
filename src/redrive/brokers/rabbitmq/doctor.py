"""What could lose messages here, and what to do about it."""

from collections.abc import Sequence
from typing import Final

from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.topology import QUORUM
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.place import DLQ, queue_of
from redrive.core.ports import Finding

_OLDEST: Final = (3, 10)
_UNKNOWN: Final = (4, 0)
_SLOW: Final = 60


async def examine(office: Office) -> Sequence[Finding]:
    """Look at the server, and at every queue that is written in the book."""
    connection = await office.link.connection()
    await office.book.open()
    findings = [_version(str(connection.server_properties.get("version", "")))]
    findings += await _queues(office)
    findings += await _dead_letters(office)
    findings.append(_heartbeat(office.link.address.heartbeat))
    return findings


def _version(text: str) -> Finding:
    parts = tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
    prevents = "messages on a server that does not keep the promises this adapter is built on"
    if parts < _OLDEST:
        return Finding("version", "fail", f"RabbitMQ {text}", prevents, "use RabbitMQ 3.10 or later")
    if parts >= _UNKNOWN:
        advice = (
            "try it before you trust it, and set a policy with delivery-limit -1: 4.x ends messages at 20 deliveries"
        )
        return Finding("version", "warn", f"RabbitMQ {text}, which was not tried", prevents, advice)
    return Finding("version", "ok", f"RabbitMQ {text}", prevents)


async def _queues(office: Office) -> Sequence[Finding]:
    """A queue that is not as we would have begun it says so when it is begun again."""
    prevents = "messages of a queue that lives on one node only, or forgets what it has not written to disk"
    odd = {}
    for queue in dict.fromkeys(queue for queue, _ in office.book.queues()):
        if await office.link.count(queue) is None:
            odd[queue] = "is written in the book and not on the server"
            continue
        try:
            await office.link.declare(queue, arguments=QUORUM, needed=True)
        except BrokerUnavailable:
            raise
        except BrokerError as error:
            odd[queue] = str(error)
    if not odd:
        return [Finding("queues", "ok", "every queue is a quorum queue with no limits of its own", prevents)]
    advice = "move it to a quorum queue without x-max-length, x-message-ttl and x-delivery-limit"
    return [Finding("queues", "warn", f"{queue}: {why}", prevents, advice) for queue, why in odd.items()]


async def _dead_letters(office: Office) -> Sequence[Finding]:
    waiting = {queue: await office.link.count(queue) for queue, _ in office.book.queues() if queue_of(DLQ, queue)}
    found = sum(count or 0 for count in waiting.values())
    prevents = "letters that nobody looks at"
    if not found:
        return [Finding("dead letters", "ok", "none wait to be collected", prevents)]
    return [Finding("dead letters", "warn", f"{found} wait to be collected", prevents, "run `redrive collect`")]


def _heartbeat(seconds: int) -> Finding:
    prevents = "work that stands still until the server notices that its worker is gone"
    found = f"the server notices a silent worker after about {3 * seconds} s"
    if seconds > _SLOW:
        return Finding("heartbeat", "warn", found, prevents, "put ?heartbeat=20 into the URL")
    return Finding("heartbeat", "ok", found, prevents)
