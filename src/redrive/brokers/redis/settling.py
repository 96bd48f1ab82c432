"""Outcomes on their way to the server: plain successes in one command, all else by a script that checks first."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from redrive.brokers.redis.entry import OWN_PAYLOAD, as_millis, from_millis, given_id, whole_millis, write_entry
from redrive.brokers.redis.handing import Token
from redrive.brokers.redis.keys import GroupKeys, QueueKeys
from redrive.brokers.redis.letters import split_letter
from redrive.brokers.redis.pieces import too_large
from redrive.brokers.redis.scripts import LARGEST_CALL
from redrive.brokers.redis.setting import Setting
from redrive.brokers.redis.wire import Value, digits
from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.message import Message, without_reserved
from redrive.core.outcome import ACK, DONE, LOST, REPEATED, GiveUp, RetryLater, Settled, Settlement, SettleStatus
from redrive.core.wire import dump_outcome

TOKEN: Final = 12
"""Where it stands in a Delivery: read by place, for every message."""

LETTER_KNOWN_FOR: Final = 3_600_000
"""How long a repeated give-up hears that it was done before, in milliseconds."""


_ANSWERS: Final = {b"D": DONE, b"R": REPEATED, b"L": LOST}


def member_of(delivery: Delivery) -> Token:
    """The name of a delivery's entry, and the delivery count under which it is ours."""
    token = delivery.token
    return token if isinstance(token, Token) else tuple.__new__(Token, (b"m" + token, 1, False))


def new_entry(item: Settlement) -> bytes | None:
    """The id of the entry of a new message that went well, with nothing that goes out with its ack; else None."""
    if item.outcome is not ACK or item.output is not None or item.report is not None:
        return None
    return item.delivery.token if isinstance(item.delivery.token, bytes) else None


class Order:
    """One call of the settle script: its items, and every key that they write to. All of it bytes, as it is sent."""

    def __init__(self, keys: GroupKeys, setting: Setting) -> None:
        self._keys = keys
        self._setting = setting
        self._written: dict[str, bytes] = {}
        self._common: dict[int, tuple[bytes, Sequence[bytes]]] = {}  # by id(): a list that is kept is no other one
        moves = b"1" if setting.options.moves else b"0"
        self._args = [keys.name.encode(), setting.options.owner.encode(), moves, digits[LETTER_KNOWN_FOR]]

    @property
    def keys(self) -> list[bytes]:
        """Every key of the call, those that all scripts share first."""
        keys = self._keys
        return [key.encode() for key in (keys.queue, keys.lane, keys.due, keys.stories, *self._written)]

    @property
    def args(self) -> list[bytes]:
        """Every argument of the call."""
        return self._args

    def add(self, item: Settlement, *, with_fields: bool = False) -> None:
        """Add one outcome; `with_fields` sends the message along, for an entry that is gone from its stream."""
        outcome = item.outcome
        member, count, _ = member_of(item.delivery)
        fields = fields_of(item.delivery, self._setting.payload) if with_fields else ()
        if isinstance(outcome, RetryLater):
            began = item.attempt.started_at if item.attempt is not None else item.delivery.received_at
            delay, first = digits[whole_millis(outcome.delay) if outcome.delay else 0], b"%d" % as_millis(began)
            self._args += (b"R", member, digits[count], delay, first, item.trail, digits[len(fields)], *fields)
        elif isinstance(outcome, GiveUp) and self._setting.options.dlq.off == "hold":
            self._args += (b"H", member, digits[count], item.trail, digits[len(fields)], *fields)
        else:
            verb, letter = (b"D", item.letter) if isinstance(outcome, GiveUp) else (b"A", None)
            once = self._index(self._keys.once_letter(f"{letter.letter_id}:{letter.generation}")) if letter else b"0"
            adds = self._adds(item, letter)
            self._args += (verb, member, digits[count], once, digits[len(adds)])
            for add in adds:
                self._args += add

    def _adds(self, item: Settlement, letter: DeadLetter | None) -> list[Sequence[bytes]]:
        """What goes out with an outcome: letter, output, report; to which stream, and what is kept about that."""
        setting, adds = self._setting, list[Sequence[bytes]]()
        if letter is not None and setting.options.dlq.enabled:
            names, values, shared = split_letter(letter, largest=setting.largest)
            adds.append((self._index(setting.dlq), b"0", *self._numbered(names), *values, *self._numbered(shared)))
        if item.output is not None:
            clean = item.output._replace(headers=without_reserved(item.output.headers))
            meta = self._index(QueueKeys(item.output.queue).meta)
            fields = write_entry(clean, payload=setting.payload)
            adds.append((self._index(item.output.queue), meta, b"0", digits[len(fields)], *fields))
        if item.report is not None:
            fields = write_entry(Message("", setting.outcomes, dump_outcome(item.report)), payload=OWN_PAYLOAD)
            adds.append((self._index(setting.outcomes), b"0", b"0", digits[len(fields)], *fields))
        return adds

    def _numbered(self, strings: Sequence[bytes]) -> Sequence[bytes]:
        """The number of a list that several entries have in common; the first time, the list too."""
        known = self._common.get(id(strings))
        if known is not None:
            return known[:1]
        number = digits[len(self._common) + 1]
        self._common[id(strings)] = number, strings
        return (number, digits[len(strings)], *strings)

    def _index(self, key: str) -> bytes:
        return self._written.setdefault(key, digits[len(self._written) + 5])


def fields_of(delivery: Delivery, payload: bytes) -> list[bytes]:
    """The entry of a delivery as it was read, for an entry that is gone from its stream."""
    member = member_of(delivery).member
    fields = write_entry(delivery.message, payload=payload)
    return fields if member[:1] == b"l" else [*fields, *given_id(delivery.message, member[1:])]


def released(deliveries: Sequence[Delivery], *, payload: bytes = b"") -> list[Value]:
    """What the release script is told of these; `payload` sends them along, for entries that are gone."""
    args: list[Value] = []
    for delivery in deliveries:
        member, count, alone = member_of(delivery)
        fields = fields_of(delivery, payload) if payload else ()
        args += (member, count, "1" if alone else "0", len(fields), *fields)
    return args


def extended(deliveries: Sequence[Delivery], *, payload: bytes = b"") -> list[Value]:
    """What the extend script is told of these; `payload` sends them along, for entries that are gone."""
    args: list[Value] = []
    for delivery in deliveries:
        member, count, _ = member_of(delivery)
        fields = fields_of(delivery, payload) if payload else ()
        args += (member, count, len(fields), *fields)
    return args


def in_calls(items: Sequence[Any]) -> list[Sequence[Any]]:
    """Items in parts that a script may take at once."""
    return [items[start : start + LARGEST_CALL] for start in range(0, len(items), LARGEST_CALL)]


def mistake(item: Settlement, setting: Setting) -> str:
    """Why an item cannot be carried out, whatever the server says."""
    if isinstance(item.outcome, RetryLater) and item.outcome.delay is None:
        return "a retry needs its final delay"
    if isinstance(item.outcome, GiveUp) and setting.options.dlq.enabled and item.letter is None:
        return "giving up needs a letter"
    if item.output is None:
        return ""
    fields = write_entry(item.output, payload=setting.payload)
    return setting.output_mistake(item.output.queue) or too_large(fields, largest=setting.largest)


def read_answer(answer: Sequence[bytes]) -> Settled | None:
    """What the script said of one item; None if it must be sent again with its fields."""
    verb = answer[0]
    if verb == b"G":
        return None
    if verb == b"X":
        return Settled(SettleStatus.REFUSED, answer[1].decode("utf-8", "backslashreplace"))
    return _ANSWERS[verb] if len(answer) == 1 else _retried(verb, answer[1])


@lru_cache(maxsize=64)
def _retried(verb: bytes, due: bytes) -> Settled:
    """Remembered, because what is settled together mostly falls due together."""
    return _ANSWERS[verb]._replace(due_at=from_millis(due))
