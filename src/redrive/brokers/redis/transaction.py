"""Commands that take effect together or not at all, and how surely they do."""

from collections.abc import Sequence
from typing import Any, Final

from redrive.brokers.redis.address import Durability
from redrive.brokers.redis.errors import translate
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.errors import BrokerUnavailable

CONFIRM_WITHIN: Final = 5_000
"""Milliseconds for replicas to confirm in. Shorter than the patience of a wire."""


async def together(wire: Wire, commands: Sequence[Sequence[Value]]) -> list[Any]:
    """The answers to several commands, carried out as one; for any number of fields, where a script has a limit.

    Raises our errors: what a server refuses when it hears of it is refused for all.
    """
    *noted, answers = await wire.calls([("MULTI",), *commands, ("EXEC",)])
    for answer in [*noted, answers, *(answers if isinstance(answers, list) else ())]:
        if isinstance(answer, Exception):
            raise translate(answer)
    assert isinstance(answers, list)  # noqa: S101 - nothing was watched
    return answers


async def confirm(wire: Wire, durability: Durability) -> None:
    """Wait until enough replicas have what this wire has just written. Raises `BrokerUnavailable` if they do not.

    Must follow the write on the same wire, with nothing in between.
    """
    wanted = durability.replicas
    if not wanted:
        return
    there = await wire.call("WAIT", wanted, CONFIRM_WITHIN)
    if there < wanted:
        await wire.leave()  # a primary without replicas may have been replaced
        raise BrokerUnavailable(
            f"redis: written, but confirmed by {there} of {wanted} replicas within {CONFIRM_WITHIN // 1000} s:"
            " it is there for now, and would be lost with this server"
        )
