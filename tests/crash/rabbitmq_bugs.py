"""Planted bugs inside the RabbitMQ adapter: mistakes that consumers of queues make. Those of `bugs.py` come on top."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from redrive.brokers.rabbitmq.errors import GONE
from redrive.brokers.rabbitmq.hands import Hold
from redrive.brokers.rabbitmq.link import Link, Tag
from redrive.brokers.rabbitmq.settling import Settler, Step
from redrive.core.outcome import Settled


def ack_before_writing() -> None:
    """Ack first, and write the copy or the letter when that is done."""
    carry_out, ack = Settler._carry_out, Settler._ack  # noqa: SLF001
    acked: set[Hold] = set()

    async def acked_first(self: Settler, steps: Sequence[Step]) -> list[Settled]:
        await self._office.link.ack([step.hold.tag for step in steps])
        acked.update(step.hold for step in steps)
        return await carry_out(self, steps)

    async def acked_once(self: Settler, holds: Sequence[Hold]) -> None:
        await ack(self, [hold for hold in holds if hold not in acked])

    Settler._carry_out = acked_first  # type: ignore[method-assign]  # noqa: SLF001
    Settler._ack = acked_once  # type: ignore[method-assign]  # noqa: SLF001


def ack_all_up_to_the_last() -> None:
    """Ack many at once, as the protocol offers: with them goes what came earlier and is still at work."""

    async def ack(self: Link, deliveries: Iterable[Tag]) -> None:
        for channel, tag in list(deliveries)[-1:]:
            with contextlib.suppress(*GONE):
                await channel.basic_ack(tag, multiple=True, wait=False)
                await asyncio.sleep(0)

    Link.ack = ack  # type: ignore[method-assign]


BUGS: Final[Mapping[str, Callable[[], None]]] = {
    bug.__name__: bug for bug in (ack_before_writing, ack_all_up_to_the_last)
}
