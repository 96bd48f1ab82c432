"""Workers on a subject, and what somebody else does there."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.ports import Broker, Options, Subscription
from redrive.testing.conformance.bench import Bench, BrokerUnderTest

WAIT = timedelta(seconds=30)


async def ask(client: Client, verb: str, **body: Any) -> dict[str, Any]:
    """What an administrator asks of JetStream."""
    answer = await client.request(f"$JS.API.{verb}", json.dumps(body).encode(), timeout=10)
    found: dict[str, Any] = json.loads(answer.data)
    assert "error" not in found, found
    return found


async def begin_stream(client: Client, name: str, *subjects: str, **settings: Any) -> None:
    """What an administrator does."""
    await ask(client, f"STREAM.CREATE.{name}", name=name, subjects=list(subjects), storage="file", **settings)


async def join(broker: Broker, queue: str, owner: str = "one", *, group: str = "shop", **options: Any) -> Subscription:
    return await broker.subscribe(queue, group=group, options=Options(owner=owner, **options))


async def take(worker: Subscription, count: int) -> Sequence[Delivery]:
    taken: list[Delivery] = []
    while len(taken) < count:
        more = await worker.fetch(count - len(taken), wait=WAIT)
        assert more
        taken.extend(more)
    return taken


def bench_on(broker: NatsBroker, queue: str) -> Bench:
    """The verbs of the conformance suite, on a broker whose time runs."""

    async def no(*_: object) -> Any:
        raise NotImplementedError

    return Bench(BrokerUnderTest(broker=broker, clock=SystemClock(), elapse=no, reopen=no, patience=WAIT), queue=queue)
