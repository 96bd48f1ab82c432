"""Planted bugs inside the RabbitMQ adapter: mistakes that consumers of queues make. Those of `bugs.py` come on top."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from redrive.brokers.rabbitmq.errors import GONE
from redrive.brokers.rabbitmq.hands import Hold
from redrive.brokers.rabbitmq.settling import Settler, Step
from redrive.core.outcome import Settled


def ack_before_writing() -> None:
    """Ack first, and write the copy or the letter when that is done."""
    carry_out, ack = Settler._carry_out, Settler._ack  # noqa: SLF001

    async def acked_first(self: Settler, steps: Sequence[Step]) -> list[Settled]:
        for step in steps:
            with contextlib.suppress(*GONE):
                await step.hold.channel.basic_ack(step.hold.tag)
                step.hold.tag = 0
        return await carry_out(self, steps)

    async def acked_once(self: Settler, holds: Sequence[Hold]) -> None:
        await ack(self, [hold for hold in holds if hold.tag])

    Settler._carry_out = acked_first  # type: ignore[method-assign]  # noqa: SLF001
    Settler._ack = acked_once  # type: ignore[method-assign]  # noqa: SLF001


BUGS: Final[Mapping[str, Callable[[], None]]] = {bug.__name__: bug for bug in (ack_before_writing,)}
