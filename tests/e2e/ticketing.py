"""A shop that executes tickets of a Kafka topic: whoever writes them knows nothing of Redrive."""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from subprocess import Popen
from typing import Any
from uuid import uuid4

from tests.e2e.charging import ChargingShop
from tests.e2e.serving import Api
from tests.kafka.scenes import begin_topic, produce

APP = """
import asyncio
import json
import os
import redrive

VERSION = os.environ["SHOP_VERSION"]
app = redrive.App(os.environ["SHOP_BROKER"], name="agents", version=VERSION, grace=5)


class NoRunner(Exception):
    code = "no_runner"


def note(ticket: dict[str, object], delivery: redrive.Delivery, what: str) -> None:
    with open("runs", "a") as file:
        file.write(json.dumps([ticket["ticket_id"], delivery.generation, what]) + "\\n")


@app.consumer(os.environ["REDRIVE_COLLECT_QUEUES"], retry=[0.01, 0.01], breaker=None)
async def execute(ticket: dict[str, object], delivery: redrive.Delivery) -> None:
    if VERSION == "broken" and ticket["task_type"] != "BUILD":
        note(ticket, delivery, f"attempt {delivery.attempt}")
        if ticket["task_type"] == "TEST" and delivery.attempt == 2 and os.path.exists("stuck"):
            await asyncio.Event().wait()
        raise NoRunner("no runner for this ticket")
    note(ticket, delivery, "done")
"""

HURRIED = """
from datetime import timedelta

from redrive.cli import main
from redrive.observe import alerts

alerts.LEASE = timedelta(seconds=1)
main()
"""


class TicketShop(ChargingShop):
    """On the version `broken` only tickets of the type BUILD are done; those of the type TEST die last.

    Their second attempt lasts until the worker dies, as long as there is a file `stuck`. The next service takes over
    the alerts of one that died within a second instead of a minute.
    """

    program = (sys.executable, "hurried.py")

    def __init__(self, folder: Path, *, broker: str, store: str) -> None:
        super().__init__(folder, broker=broker, store=store)
        self.queue = f"execution.tickets-{uuid4().hex[:12]}"
        self.env["REDRIVE_COLLECT_QUEUES"] = self.queue
        self.dlq = f"{self.queue}.dlq"
        self.broker = broker
        (folder / "first.py").write_text(APP, "utf-8")
        (folder / "hurried.py").write_text(HURRIED, "utf-8")
        (folder / "stuck").touch()

    def issue(self, tickets: Iterable[dict[str, Any]]) -> None:
        begin_topic(self.broker, self.queue, 3)
        produce(self.broker, self.queue, *({"value": json.dumps(ticket).encode()} for ticket in tickets))

    def tickets(self, what: str, *, generation: int = 0) -> Counter[str]:
        """How often each ticket got so far."""
        return Counter(ticket for ticket, number, noted in self.noted() if (number, noted) == (generation, what))

    def look(self, api: Api, queue: str = "") -> dict[str, Any]:
        """What the service says about a queue, ours if none is named."""
        rows = api.get("/api/v1/queues", all="true")
        return next(row for row in rows if row["queue"] == (queue or self.queue))

    def left(self, api: Api) -> int:
        """How many messages are neither done nor dead."""
        row = self.look(api)
        return int(row["waiting"] + row["in_flight"] + row["scheduled"])

    def kill(self, worker: Popen[str], api: Api) -> None:
        """Let a worker die at once: the process at work too, which would end in good order without the other."""
        (at_work,) = self.look(api)["workers"]
        worker.kill()
        os.kill(at_work["pid"], signal.SIGKILL)
        worker.wait()
