"""The desk where outcomes are handed in: everything that ended together leaves in one round trip.

Plain successes are one command without a check, for a success is one whoever has the message by now. Everything else
goes by a script that acts only on what is still in this worker's hands.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from redrive.brokers.redis.errors import translate
from redrive.brokers.redis.keys import GroupKeys
from redrive.brokers.redis.scripts import command, run, was_forgotten
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.setting import Setting
from redrive.brokers.redis.settling import TOKEN, Order, in_calls, mistake, new_entry, read_answer
from redrive.brokers.redis.taking import Intake
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.outcome import ACK, DONE, LOST, REPEATED, RetryLater, Settled, Settlement, SettleStatus, as_settlement

TRIM_AFTER: Final = 10_000
"""Acks after which the stream is trimmed; beside that, at every heartbeat."""
_TRIM_ROUNDS: Final = 20
"""Calls at most, each about a thousand entries: more than were acked since the last time."""


_NEW: Final = {bytes}  # the kinds of tokens of new entries


class Desk:
    """Carries out the outcomes of one worker. Belongs to one event loop."""

    def __init__(self, server: Server, keys: GroupKeys, *, setting: Setting, intake: Intake) -> None:
        self._server = server
        self._keys = keys
        self._setting = setting
        self._intake = intake
        self._wire: Wire | None = None
        self._ack = ("XACK", keys.queue, keys.name)
        self._acked = 0
        self._trimmed: Value = ""  # where trimming goes on

    async def settle(self, items: Sequence[Settlement | Delivery]) -> list[Settled]:
        """One answer per item, in order. Raises `BrokerUnavailable` if it is not known what was done."""
        if self._wire is None:
            self._wire = self._server.open_wire(self._keys.queue)
        new = [] if self._setting.options.moves else [item[TOKEN] for item in items if type(item) is Delivery]
        if set(map(type, new)) != _NEW:
            new = [token for token in new if type(token) is bytes]
        if len(new) == len(items):
            return [await self._count(self._wire, await self._wire.call(*self._ack, *new))] * len(items)
        return await self._settle_mixed(self._wire, items, new)

    async def trim(self, wire: Wire) -> None:
        """Take from the stream what every group has done with, if that is wished for."""
        for _ in range(_TRIM_ROUNDS if self._setting.trims else 0):
            _, self._trimmed = await run(wire, "trim", [self._keys.queue], [self._trimmed])
            if not self._trimmed:
                break

    async def aclose(self) -> None:
        """Give the connection back. Idempotent."""
        if self._wire is not None:
            await self._wire.aclose()
            self._wire = None

    async def _settle_mixed(
        self, wire: Wire, items: Sequence[Settlement | Delivery], new: list[bytes]
    ) -> list[Settled]:
        """Settle items among which are plain successes of `new` entries."""
        answers: list[Settled] = [DONE] * len(items)
        checked: dict[int, Settlement] = {}
        for place in _not_plain(items) if new else range(len(items)):
            item = as_settlement(items[place])
            entry_id = new_entry(item) if item.outcome is ACK and not self._setting.options.moves else None
            if self.is_foreign(item.delivery):
                answers[place] = LOST
            elif entry_id is not None:
                new.append(entry_id)
            elif why := mistake(item, self._setting):
                answers[place] = Settled(SettleStatus.REFUSED, why)
            else:
                checked[place] = item
        acked, told = await self._send(wire, new, list(checked.values()))
        self._note(checked.values(), told)
        if new and await self._count(wire, acked) is REPEATED:
            answers = [REPEATED if answer is DONE else answer for answer in answers]
        for place, answer in zip(checked, told, strict=True):
            answers[place] = answer
        return answers

    def _note(self, items: Iterable[Settlement], answers: Sequence[Settled]) -> None:
        """What is carried out has left our hands; what is tried again falls due."""
        delays = []
        for item, answer in zip(items, answers, strict=True):
            if answer.status is not SettleStatus.REFUSED:
                self._intake.let_go(item.delivery)
            if isinstance(item.outcome, RetryLater) and answer.status is SettleStatus.DONE:
                delays.append(item.outcome.delay or NOW)
        if delays:
            self._intake.expect(min(delays))

    async def _send(self, wire: Wire, ids: list[bytes], items: Sequence[Settlement]) -> tuple[int, list[Settled]]:
        """Send acks and checked items at once; how many were acked, and an answer for each item."""
        parts = [(part, self._order(part)) for part in in_calls(items)]
        commands: list[Sequence[Value]] = [(*self._ack, *ids)] if ids else []
        commands += [command("settle", order.keys, order.args) for _, order in parts]
        answers = iter(await wire.calls(commands) if commands else ())
        acked = _checked(next(answers)) if ids else 0
        told: list[Settled] = []
        for (part, order), answer in zip(parts, answers, strict=True):
            said = await run(wire, "settle", order.keys, order.args) if was_forgotten(answer) else _checked(answer)
            told += [
                read_answer(found) or await self._send_whole(wire, item) for item, found in zip(part, said, strict=True)
            ]
        return acked, told

    async def _send_whole(self, wire: Wire, item: Settlement) -> Settled:
        """Its entry is gone from the stream: what we hold is the last copy, and goes along."""
        order = self._order([item], with_fields=True)
        (answer,) = await run(wire, "settle", order.keys, order.args)
        return read_answer(answer) or LOST

    def _order(self, items: Sequence[Settlement], *, with_fields: bool = False) -> Order:
        order = Order(self._keys, self._setting)
        for item in items:
            order.add(item, with_fields=with_fields)
        return order

    def is_foreign(self, delivery: Delivery) -> bool:
        """Whether a delivery is of another queue or group: entries there may have the same ids."""
        return delivery.group != self._keys.name or delivery.message.queue != self._keys.queue

    async def _count(self, wire: Wire, acked: int) -> Settled:
        self._acked += acked
        if self._acked >= TRIM_AFTER:
            self._acked = 0
            await self.trim(wire)
        return DONE if acked else REPEATED


def _not_plain(items: Sequence[Settlement | Delivery]) -> list[int]:
    """Where those stand that are more than a success of a new entry."""
    return [place for place, item in enumerate(items) if type(item) is not Delivery or type(item[TOKEN]) is not bytes]


def _checked(answer: Any) -> Any:
    """An answer, raised if it is an error."""
    if isinstance(answer, Exception):
        raise translate(answer)
    return answer
