"""The process of the suspects, and a broker that is away for a moment."""

import asyncio
from datetime import timedelta
from typing import Any

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.event import BrokerFaulted
from redrive.core.message import Message
from redrive.core.ports import Obituary, Options


class Away:
    """A subscription whose broker does not answer when it is first asked for a suspect, nor at the first heartbeat."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._away = {"fetch_suspect", "heartbeat"}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetch_suspect(self) -> Delivery | None:
        self._answer("fetch_suspect")
        found: Delivery | None = await self._inner.fetch_suspect()
        return found

    async def heartbeat(self, **words: Any) -> int:
        self._answer("heartbeat")
        waiting: int = await self._inner.heartbeat(**words)
        return waiting

    def _answer(self, call: str) -> None:
        if call in self._away:
            self._away.remove(call)
            raise BrokerUnavailable("nobody there")


async def test_suspects_run_although_their_broker_was_away_for_a_moment() -> None:
    app = App("memory://", name="shop")
    ran: list[bytes] = []
    faults: list[BrokerFaulted] = []

    @app.consumer("orders")
    async def handle(message: Message) -> None:
        ran.append(message.body)

    app.bus.subscribe(lambda event: faults.append(event) if isinstance(event, BrokerFaulted) else None)
    async with app:
        dead = await app.broker.subscribe("orders", group="shop", options=Options(owner="dead", lease=timedelta(0)))
        await app.broker.publish("orders", [Message("", "orders", body) for body in (b"1", b"2")])
        await dead.fetch(2, wait=timedelta(0))
        async with app.suspects(obituary=Obituary("dead", "killed by SIGKILL")) as crew:
            crew.workers[0].subscription = Away(crew.workers[0].subscription)
            await crew.run_suspects(asyncio.Event())

    assert ran == [b"1", b"2"]
    assert [fault.call for fault in faults if fault.call != "heartbeat"] == ["fetch_suspect"] * 2
