"""An attempt: one run of the handler that did not end well. Their trail travels with the message."""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, overload

from redrive.core.excerpt import excerpt
from redrive.core.instant import instant_text

KEPT = 16
KEPT_IN_ALL = 96  # by a store, over all generations
_SIZE = 256  # bytes of an attempt that is not the last
_ROOM = 72  # for type, code, node and message: with names and times that makes about as many
_LEAST = 24
_ENDED: Final = b'"ended_at":"'
_ROW: Final = b'{"number":'  # how a row begins, and nothing else: inside a text the quotes are escaped
_FEW: Final = KEPT * 64  # bytes: no row is as short as 64, so in a trail of so many there are fewer than are kept

_quoted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_escaped = json.JSONEncoder(separators=(",", ":")).encode
_decoded = json.JSONDecoder().decode


class Attempt(NamedTuple):
    """One failed or crashed run of a handler, numbered from 1 in each generation. A tuple: each failure makes one."""

    number: int
    started_at: datetime
    ended_at: datetime
    error_type: str
    error_message: str = ""
    error_code: str | None = None
    crash: bool = False
    node: str = ""
    generation: int = 0

    def shortened(self) -> "Attempt":
        """The same attempt in about 256 bytes."""
        room = _ROOM - len(self.error_type) - len(self.error_code or "") - len(self.node)
        text = excerpt(self.error_message, limit=max(_LEAST, room))
        if text == self.error_message or len(_dump(self)) <= _SIZE:
            return self
        return self._replace(error_message=text)

    def told(self, error_message: str) -> "Attempt":
        """The same attempt with another text for its error."""
        return self if error_message == self.error_message else self._replace(error_message=error_message)


Trail = Sequence[Attempt]


class UnreadTrail(Sequence[Attempt]):
    """A trail as it was found, understood when somebody looks inside: who passes a letter on seldom has to.

    Equal to any trail of the same attempts.
    """

    __slots__ = ("_attempts",)

    def __init__(self) -> None:
        self._attempts: Trail | None = None

    @abstractmethod
    def _read(self) -> Trail: ...

    @overload
    def __getitem__(self, index: int) -> Attempt: ...
    @overload
    def __getitem__(self, index: slice) -> Trail: ...
    def __getitem__(self, index: int | slice) -> Attempt | Trail:
        if self._attempts is None:
            self._attempts = self._read()
        return self._attempts[index]

    def __len__(self) -> int:
        return len(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == other[:]

    def __repr__(self) -> str:
        return repr(self[:])

    __hash__ = None  # type: ignore[assignment]


class EncodedTrail(UnreadTrail):
    """A trail as it travels, `raw`. Never empty: `last` is its last attempt. Its texts were masked when written."""

    __slots__ = ("last", "raw")

    def __init__(self, raw: bytes, *, last: Attempt) -> None:
        self._attempts = None
        self.raw = raw
        self.last = last

    @property
    def first_ended_at(self) -> datetime:
        """When the first attempt ended, without looking at the others."""
        start = self.raw.find(_ENDED) + len(_ENDED)
        try:
            return _instant(self.raw[start : self.raw.find(b'"', start)].decode())
        except ValueError:
            return self[0].ended_at

    def _read(self) -> Trail:
        return (*load_trail(self.raw)[:-1], self.last)

    @overload
    def __getitem__(self, index: int) -> Attempt: ...
    @overload
    def __getitem__(self, index: slice) -> Trail: ...
    def __getitem__(self, index: int | slice) -> Attempt | Trail:
        return self.last if index == -1 else super().__getitem__(index)

    def __bool__(self) -> bool:
        return True


class WrittenTrail(UnreadTrail):
    """A trail in JSON as it was found, `raw`: an array in UTF-8, of which those rows count that are attempts."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self._attempts = None
        self.raw = raw

    def _read(self) -> Trail:
        return load_trail(self.raw)


class RowTrail(UnreadTrail):
    """A trail in plain JSON values, `rows`: those of them that are attempts."""

    __slots__ = ("rows",)

    def __init__(self, rows: list[Any]) -> None:
        super().__init__()
        self.rows = rows

    def _read(self) -> Trail:
        return from_rows(self.rows)


def extend_trail(trail: Trail, attempt: Attempt) -> Trail:
    """The trail with one more attempt: the first and the latest are kept, only the last one in full."""
    earlier = tuple(old.shortened() for old in trail)
    if len(earlier) >= KEPT:
        earlier = (earlier[0], *earlier[len(earlier) - KEPT + 2 :])
    return (*earlier, attempt)


def append_attempt(raw: bytes, attempt: Attempt) -> bytes:
    """An encoded trail with one more attempt: what `extend_trail` makes of it.

    Nothing is decoded unless the attempt before this one has to be shortened: a message that fails again and again
    pays for its latest attempt only.
    """
    if not raw:
        return b"[" + _dump(attempt) + b"]"
    small = len(raw) <= _SIZE or len(raw) - raw.rfind(_ROW) <= _SIZE + 1
    if not (small and raw.startswith(_ROW, 1) and raw.endswith(b"}]")):
        return dump_trail(extend_trail(load_trail(raw), attempt))
    earlier = raw[:-1]
    if len(raw) > _FEW:
        for _ in range(earlier.count(_ROW) - KEPT + 1):
            second = earlier.index(_ROW, 2)
            earlier = earlier[:second] + earlier[earlier.index(_ROW, second + 1) :]
    return b"".join((earlier, b",", _dump(attempt), b"]"))


def close_trail(raw: bytes, attempt: Attempt) -> EncodedTrail:
    """An encoded trail with its last attempt, as it goes into a letter."""
    return EncodedTrail(append_attempt(raw, attempt), last=attempt)


def join_trails(one: Trail, other: Trail) -> Trail:
    """The attempts of both in order, each once: the trail of a letter over its generations, the first and latest kept.

    The same whatever the order in which trails are joined, as long as nothing has to be left out.
    """
    together = {(attempt.generation, attempt.number, attempt.started_at): attempt for attempt in (*one, *other)}
    joined = tuple(together[place] for place in sorted(together))
    return joined if len(joined) <= KEPT_IN_ALL else (joined[0], *joined[len(joined) - KEPT_IN_ALL + 1 :])


def dump_trail(trail: Trail) -> bytes:
    """The trail as compact JSON in UTF-8, to be kept beside the message and in its letter."""
    return trail.raw if isinstance(trail, EncodedTrail) else b"[" + b",".join(map(_dump, trail)) + b"]"


def load_trail(raw: bytes | str | None) -> Trail:
    """The trail from its JSON bytes; what cannot be read is left out rather than an error on the dead path."""
    if not raw:
        return ()
    try:
        return from_rows(_decoded(raw if isinstance(raw, str) else raw.decode()))
    except (ValueError, RecursionError):
        return ()


def to_rows(trail: Trail) -> list[dict[str, Any]]:
    """The trail as plain JSON values, empty ones left out."""
    return [_row(attempt) for attempt in trail]


def from_rows(rows: Any) -> Trail:
    """The trail from plain JSON values. A row that is none is left out; a name from a later version is passed over."""
    found = []
    for row in rows if isinstance(rows, list) else ():
        try:
            found.append(_attempt(row))
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
            continue
    return tuple(found)


def _dump(attempt: Attempt) -> bytes:
    """One row of a trail, as `to_rows` has it: JSON made by hand costs half, and each failure makes some."""
    number, started_at, ended_at = attempt[:3]
    started, ended, said = instant_text(started_at), instant_text(ended_at), _said(attempt[3:])
    return f'{{"number":{number},"started_at":"{started}","ended_at":"{ended}"{said}'.encode()


@lru_cache(maxsize=64)
def _said(said: tuple[Any, ...]) -> str:
    """The end of a row, which is the same for most of what fails in heaps; in ASCII if UTF-8 cannot say it."""
    row = _told(*said)
    text = _quoted(row)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _escaped(row)
    return f",{text[1:]}"


def _row(attempt: Attempt) -> dict[str, Any]:
    times = {"started_at": attempt.started_at.isoformat(), "ended_at": attempt.ended_at.isoformat()}
    return {"number": attempt.number, **times, **_told(*attempt[3:])}


def _told(
    error_type: str,
    error_message: str,
    error_code: str | None,
    crash: bool,  # noqa: FBT001 - in the order of an attempt's fields
    node: str,
    generation: int,
) -> dict[str, Any]:
    """What a row says beside its number and its times."""
    row: dict[str, Any] = {"error_type": error_type}
    if error_message:
        row["error_message"] = error_message
    if error_code is not None:
        row["error_code"] = error_code
    if crash:
        row["crash"] = True
    if node:
        row["node"] = node
    if generation:
        row["generation"] = generation
    return row


def _attempt(row: Mapping[str, Any]) -> Attempt:
    code = row.get("error_code")
    return Attempt(
        int(row["number"]),
        _instant(row["started_at"]),
        _instant(row["ended_at"]),
        str(row["error_type"]),
        str(row.get("error_message", "")),
        None if code is None else str(code),
        bool(row.get("crash")),
        str(row.get("node", "")),
        int(row.get("generation", 0)),
    )


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
