"""Letters, at a service."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, BinaryIO
from urllib.parse import quote

from msgspec import convert

from redrive.cli.at_service import reading
from redrive.cli.at_service.client import Client, flags_named, nothing
from redrive.cli.at_service.reading import filter_of
from redrive.cli.clerk import Seen
from redrive.core.life import LetterState
from redrive.core.message import Headers
from redrive.core.query import Query
from redrive.core.stored import Collected, LetterRow, Page, Stats
from redrive.core.wire import to_json
from redrive.core.wire.plain import to_base64
from redrive.core.wire.record import to_pairs
from redrive.triage.editor import Edited
from redrive.triage.export import Imported
from redrive.triage.letters import Discarded, Purge
from redrive.triage.selection import Preview, Wanted


class LettersThere:
    """`clerk.Letters` at a service. Content is masked unless it is asked for by name, which goes on record there."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, query: Query, *, limit: int, after: str | None = None) -> Page[LetterRow]:
        with flags_named():
            return await self._client.page(
                "/letters", filter_of(query), limit=limit, after=after, read=reading.letter_row
            )

    async def show(self, letter_id: str, *, reveal: bool = False) -> Seen:
        return await self._client.get(_path(letter_id), {"reveal": reveal or None}, read=reading.whole_letter)

    async def stats(self, queue: str | None) -> Stats:
        given = {"queue": queue, "state": [*LetterState]}
        return await self._client.get("/dlq/stats", given, read=reading.stats)

    async def note(self, letter_id: str, text: str) -> None:
        await self._client.post(f"{_path(letter_id)}/note", {"text": text}, read=nothing)

    async def edit(self, letter_id: str, *, body: bytes | None, headers: Headers | None) -> Edited | None:
        document: dict[str, Any] = {} if body is None else {"base64": to_base64(body)}
        document |= {} if headers is None else {"headers": to_pairs(headers)}
        return await self._client.post(f"{_path(letter_id)}/edit", document, read=_edited)

    async def preview(self, wanted: Wanted) -> Preview:
        return await self._client.post("/letters/discard", {**_order(wanted), "dry_run": True}, read=reading.preview)

    async def discard(self, wanted: Wanted, *, why: str) -> Discarded:
        order = {"letters": await self._seen(wanted.letter_ids)} if wanted.letter_ids else _order(wanted)
        return await self._client.post("/letters/discard", {**order, "why": why}, read=_discarded)

    async def purge(self, query: Query, *, older_than: timedelta, dry_run: bool) -> Purge:
        order = {"filter": filter_of(query), "older_than": older_than.total_seconds(), "dry_run": dry_run}
        return await self._client.post("/letters/purge", order, read=_purge)

    async def export(self, wanted: Wanted) -> AsyncIterator[bytes]:
        for letter_id in wanted.letter_ids:
            yield to_json((await self.show(letter_id, reveal=True)).stored.letter) + b"\n"
        if wanted.letter_ids:
            return
        chosen = filter_of(wanted.query)
        async for piece in self._client.lines("/export", chosen or {"all": wanted.everything}):
            yield piece

    async def take_in(self, lines: BinaryIO, *, source: str) -> Imported:  # noqa: ARG002 - the service says who sent it
        return await self._client.send("/import", lines, read=_imported)

    async def _seen(self, letter_ids: Sequence[str]) -> list[dict[str, Any]]:
        seen = [(await self.show(letter_id)).stored for letter_id in dict.fromkeys(letter_ids)]
        return [{"letter_id": one.letter.letter_id, "version": one.life.version} for one in seen]


def _path(letter_id: str) -> str:
    return f"/letters/{quote(letter_id, safe='')}"


def _order(wanted: Wanted) -> dict[str, Any]:
    chosen = filter_of(wanted.query)
    return {"filter": chosen} if chosen else {"all": wanted.everything}


def _edited(said: reading.Said) -> Edited | None:
    return None if said["number"] is None else Edited(**{name: said[name] for name in Edited._fields})


def _discarded(said: reading.Said) -> Discarded:
    return Discarded(said["discarded"], said["changed"])


def _purge(said: reading.Said) -> Purge:
    counted = {"count": {"number": said["letters"], "capped": said["capped"]}, "words": said["selection"]}
    return convert({**said, **counted}, Purge)


def _imported(said: reading.Said) -> Imported:
    refused = [(one["line"], one["why"]) for one in said["refused_lines"]]
    return Imported(convert(said, Collected), refused, said["refused"])
