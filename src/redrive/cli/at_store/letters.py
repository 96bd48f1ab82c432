"""Letters, at a store."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import BinaryIO

from redrive.cli.at_store.cursor import asked
from redrive.cli.bulk import show_progress
from redrive.cli.clerk import Seen
from redrive.core.access import Role
from redrive.core.letter import payload_hash
from redrive.core.message import Headers
from redrive.core.query import Query
from redrive.core.seal import sealed_by
from redrive.core.stored import LetterRow, Page, Stats
from redrive.triage import editor, export, letters, masking
from redrive.triage.access import Caller
from redrive.triage.desk import Desk
from redrive.triage.editor import Edited
from redrive.triage.export import Imported
from redrive.triage.letters import Discarded, Purge
from redrive.triage.sealing import covered
from redrive.triage.selection import Preview, Wanted, select


class LettersHere:
    """`clerk.Letters` at a desk. Nothing is masked: who can open the store is its admin.

    What is kept encrypted is opened only if asked for, with the keys at hand, and that is on record.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def find(self, query: Query, *, limit: int, after: str | None = None) -> Page[LetterRow]:
        return await asked(letters.find(self._desk, query, limit=limit, after=after))

    async def show(self, letter_id: str, *, reveal: bool = False) -> Seen:
        stored = await letters.show(self._desk, letter_id)
        hashes = [payload_hash(edit.body) for edit in stored.edits]
        if sealed_by(stored.letter) is None:
            return Seen(stored, hashes)
        if not reveal:
            return Seen(covered(stored), hashes, masked=True)
        return Seen(await masking.reveal(self._desk, Caller(self._desk.who, Role.ADMIN), letter_id), hashes)

    async def stats(self, queue: str | None) -> Stats:
        return await letters.stats(self._desk, queue)

    async def note(self, letter_id: str, text: str) -> None:
        await letters.note(self._desk, letter_id, text)

    async def edit(self, letter_id: str, *, body: bytes | None, headers: Headers | None) -> Edited | None:
        return await editor.edit(self._desk, letter_id, body=body, headers=headers)

    async def preview(self, wanted: Wanted) -> Preview:
        return (await select(self._desk, wanted)).preview()

    async def discard(self, wanted: Wanted, *, why: str) -> Discarded:
        selection = await select(self._desk, wanted)
        with show_progress("discarding", total=len(selection.rows)) as advance:
            return await letters.discard(self._desk, selection, why=why, advance=advance)

    async def purge(self, query: Query, *, older_than: timedelta, dry_run: bool) -> Purge:
        found = await letters.purge_preview(self._desk, query, older_than=older_than)
        if dry_run:
            return found
        with show_progress("purging", total=found.count.number) as advance:
            return await letters.purge(self._desk, query, older_than=older_than, advance=advance)

    async def export(self, wanted: Wanted) -> AsyncIterator[bytes]:
        async for line in export.to_lines(self._desk, await select(self._desk, wanted)):
            yield line

    async def take_in(self, lines: BinaryIO, *, source: str) -> Imported:
        return await export.from_lines(self._desk, lines, source=source)
