"""The bucket: stories of messages, marks of suspects, pauses, workers, and what was sent back. One key, one value."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from redrive.brokers.nats.errors import WRONG_LAST, Refused
from redrive.brokers.nats.heading import Stored, stored
from redrive.brokers.nats.link import Letter, Link
from redrive.brokers.nats.names import BUCKET_STREAM, KEYS
from redrive.brokers.nats.streams import Streams
from redrive.core.errors import BrokerError

_LAST: Final = "Nats-Expected-Last-Subject-Sequence"
_TTL: Final = "Nats-TTL"
_PAGE: Final = 500
_AT_ONCE: Final = 256
_REMEMBERED: Final = 4096


class Row(NamedTuple):
    """A value and its revision."""

    value: bytes
    revision: int


class Write(NamedTuple):
    """A value to be kept, if the key is still at this revision; 0 for a key that has none, None for any."""

    key: str
    value: bytes
    after: int | None = None
    kept_for: timedelta | None = None


class Book:
    """Keys and values, each change by compare-and-set. Writing what is written already is no change."""

    def __init__(self, link: Link, streams: Streams) -> None:
        self._link = link
        self._streams = streams
        self._remembered: dict[tuple[str, int], Row] = {}

    async def get(self, key: str) -> Row | None:
        """One value."""
        return (await self.read([key])).get(key)

    async def read(self, keys: Sequence[str]) -> dict[str, Row]:
        """Many values, by their keys; those that are not there are left out."""
        await self._streams.ensure_bucket()
        found: dict[str, Row] = {}
        for start in range(0, len(keys), _AT_ONCE):
            wanted = [f"{KEYS}.{key}" for key in keys[start : start + _AT_ONCE]]
            for one in await self._ask({"multi_last": wanted, "batch": len(wanted)}):
                found[_key(one)] = Row(one.body, one.seq)
        return found

    def remember(self, key: str, row: Row, *, turn: int) -> None:
        """Keep at hand what was just written, for whoever recalls it at this turn."""
        self._remembered[key, turn] = row
        if len(self._remembered) > _REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    async def recall(self, turns: Mapping[str, int]) -> dict[str, Row]:
        """As `read`, but what is remembered for this turn is not asked for. It may be acted upon by compare-and-set."""
        known = {key: self._remembered.pop((key, turn), None) for key, turn in turns.items()}
        found = {key: row for key, row in known.items() if row is not None}
        if len(found) < len(turns):
            found |= await self.read([key for key in turns if key not in found])
        return found

    async def under(self, prefix: str, *, most: int | None = None) -> dict[str, Row]:
        """Every value below a prefix, or the oldest."""
        await self._streams.ensure_bucket()
        found: dict[str, Row] = {}
        after = 0
        while most is None or len(found) < most:
            page = await self._ask(
                {"next_by_subj": f"{KEYS}.{prefix}.>", "seq": after + 1, "batch": min(most or _PAGE, _PAGE)}
            )
            for one in page:
                found[_key(one)] = Row(one.body, one.seq)
            if not page:
                break
            after = page[-1].seq
        return found

    async def write(self, writes: Sequence[Write]) -> Sequence[int | None]:
        """Keep values; the revision of each, or None where somebody else has changed it."""
        await self._streams.ensure_bucket()
        answers = await self._link.publish([_letter(one) for one in writes])
        revisions: list[int | None] = []
        for one, answer in zip(writes, answers, strict=True):
            if isinstance(answer, Refused) and answer.code == WRONG_LAST:
                revisions.append(await self._written(one))
            elif isinstance(answer, Exception):
                raise answer
            else:
                revisions.append(answer.seq)
        return revisions

    async def drop(self, rows: Mapping[str, int]) -> None:
        """Remove values that are still at these revisions; those that have changed stay."""
        await self._purge([{"filter": f"{KEYS}.{key}", "seq": revision + 1} for key, revision in rows.items()])

    async def erase(self, keys: Sequence[str]) -> None:
        """Remove values, whatever they are."""
        await self._purge([{"filter": f"{KEYS}.{key}"} for key in keys])

    async def _purge(self, asked: Sequence[Mapping[str, object]]) -> None:
        """With every earlier value of the key.

        A server that is killed forgets that a value was replaced, but not that it was removed: if only the last one
        were removed, the one before would come back.
        """
        letters = [Letter(f"$JS.API.STREAM.PURGE.{BUCKET_STREAM}", json.dumps(one).encode()) for one in asked]
        for answer in await self._link.ask_all(letters) if letters else ():
            if isinstance(answer, BrokerError):
                raise answer

    async def _written(self, one: Write) -> int | None:
        """Whether it was written before, and only the answer was lost."""
        row = await self.get(one.key)
        return row.revision if row is not None and row.value == one.value else None

    async def _ask(self, body: Mapping[str, object]) -> list[Stored]:
        letter = Letter(f"$JS.API.DIRECT.GET.{BUCKET_STREAM}", json.dumps(body).encode())
        return [stored(message) for message in await self._link.stream(letter)]


def _key(one: Stored) -> str:
    return one.subject.removeprefix(f"{KEYS}.")


def _letter(one: Write) -> Letter:
    heading = {}
    if one.after is not None:
        heading[_LAST] = str(one.after)
    if one.kept_for is not None:
        heading[_TTL] = str(int(one.kept_for.total_seconds()))
    return Letter(f"{KEYS}.{one.key}", one.value, heading or None)
