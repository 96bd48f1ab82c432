"""Letters as files: JSON lines to take along, and a test that fails as the letter did."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from redrive.core.errors import ConfigError, StoreUnavailable
from redrive.core.letter import DeadLetter
from redrive.core.printable import printable
from redrive.core.query import Query
from redrive.core.stored import Collected, StoredLetter
from redrive.core.wire import from_json, to_json
from redrive.triage import letters
from redrive.triage.desk import Desk
from redrive.triage.editor import draft_of
from redrive.triage.masking import masked
from redrive.triage.selection import Selection, in_words

BATCH = 500
BATCH_BYTES = 8 * 2**20
LONGEST_LINE = 16 * 2**20
REFUSALS_TOLD = 1000
_PAGE = 50
_LARGE = 256 * 1024  # bytes of a letter that is written beside the loop, so that others have their turn


async def to_lines(desk: Desk, selection: Selection) -> AsyncIterator[bytes]:
    """The letters as JSON lines, oldest first; one that is gone meanwhile raises `LetterNotFound`."""
    for row in selection.rows:
        yield to_json((await desk.store.get(row.letter_id)).letter) + b"\n"


async def stream(desk: Desk, query: Query) -> AsyncIterator[bytes]:
    """Every letter that matches as a JSON line, newest first, however many: a few of them are in memory at a time.

    The audit has one record of it when this returns, before the first line. Letters are whole, nothing is masked.
    What comes or goes meanwhile may be in it or not.
    """
    count = await desk.store.count(query)
    detail = {"at_least": True} if count.capped else {}
    await desk.store.record(desk.act("letters.export", selection=in_words(query), count=count.number, **detail))
    return _found(desk, query)


async def masked_lines(desk: Desk, query: Query, *, letter_ids: Sequence[str] = ()) -> AsyncIterator[bytes]:
    """The same as everybody may see it: masked, and so without a record. Of these letters, if some are named."""
    if letter_ids:
        for letter_id in letter_ids:
            for stored in await desk.store.get_many([letter_id]):
                yield await _masked_line(stored)
        return
    async for stored in _matching(desk, query):
        yield await _masked_line(stored)


async def _found(desk: Desk, query: Query) -> AsyncIterator[bytes]:
    async for stored in _matching(desk, query):
        yield await _line(stored)


async def _matching(desk: Desk, query: Query) -> AsyncIterator[StoredLetter]:
    after: str | None = None
    while True:
        page = await letters.read(desk, query, limit=_PAGE, after=after)
        for stored in page.rows:
            yield stored
        after = page.after
        if after is None:
            return


async def _line(stored: StoredLetter) -> bytes:
    if stored.size <= _LARGE:
        return to_json(stored.letter) + b"\n"
    return await asyncio.to_thread(to_json, stored.letter) + b"\n"


async def _masked_line(stored: StoredLetter) -> bytes:
    return await _line(await asyncio.to_thread(masked, stored))


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, and the first lines that are no letters, by number; `refusals` counts them all."""

    collected: Collected
    refused: Sequence[tuple[int, str]]
    refusals: int = 0


async def from_lines(
    desk: Desk, lines: Iterable[bytes] | AsyncIterable[bytes], *, source: str, longest: int | None = None
) -> Imported:
    """Take in letters from JSON lines, as a collector does: once per letter and generation, however often.

    A line that cannot be read or kept, or is longer than `longest`, is told of, and the rest go in. Each batch of lines
    is an operation of its own in the audit, which says where they came from: whatever went in is on record, also if the
    rest never does. Only a batch is in memory at a time.
    """
    told: list[tuple[int, str]] = []
    refusals = 0
    total = Collected()
    async for batch in _batches(lines):
        letters, unreadable = _read(batch, longest=longest)
        words = f"lines {batch[0][0]} to {batch[-1][0]} of {source}"
        collected, unkept = await _collect(desk, letters, words=words, refused=len(unreadable))
        refused = sorted([*unreadable, *unkept])
        told += refused[: REFUSALS_TOLD - len(told)]
        refusals += len(refused)
        total = add(total, collected)
    return Imported(total, told, refusals)


async def split_lines(chunks: AsyncIterable[bytes], *, longest: int) -> AsyncIterator[bytes]:
    """Lines from bytes as they come in. One longer than `longest` is cut one byte behind it, so that it can be told."""
    kept = bytearray()
    async for chunk in chunks:
        for piece in chunk.splitlines(keepends=True):
            kept += piece[: longest + 1 - len(kept)]
            if piece.endswith(b"\n"):
                yield bytes(kept)
                kept.clear()
        await asyncio.sleep(0)  # others have their turn, however fast it comes in
    if kept:
        yield bytes(kept)


def add(one: Collected, other: Collected) -> Collected:
    """Two counts together."""
    return one + other


Numbered = tuple[int, bytes]
Refused = list[tuple[int, str]]


async def _batches(lines: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[list[Numbered]]:
    """Lines by number, so many at a time; blank ones only count."""
    batch: list[Numbered] = []
    number = size = 0
    async for line in _each(lines):
        number += 1
        if not line.strip():
            continue
        batch.append((number, line))
        size += len(line)
        if len(batch) == BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


async def _each(lines: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line


def _read(lines: Iterable[Numbered], *, longest: int | None) -> tuple[list[tuple[int, DeadLetter]], Refused]:
    letters: list[tuple[int, DeadLetter]] = []
    refused: Refused = []
    for number, line in lines:
        if longest is not None and len(line) > longest:
            refused.append((number, f"expected a line of at most {longest:,} bytes"))
            continue
        try:
            letters.append((number, from_json(line)))
        except ValueError as error:
            refused.append((number, str(error)))
    return letters, refused


async def _collect(
    desk: Desk, letters: Sequence[tuple[int, DeadLetter]], *, words: str, refused: int = 0
) -> tuple[Collected, Refused]:
    """Put letters into the store: all in one transaction if it can be, else in ever smaller ones."""
    act = desk.act("letters.import", selection=words, refused=refused)
    try:
        return await desk.store.collect([letter for _, letter in letters], act=act), []
    except StoreUnavailable:
        raise
    except Exception as error:  # noqa: BLE001 - no letter may stop the others, whatever it does to the store
        if len(letters) == 1:
            return Collected(), [(letters[0][0], f"the store refused it: {type(error).__name__}: {error}")]
    middle = len(letters) // 2
    first, refused_first = await _collect(desk, letters[:middle], words=words, refused=refused)
    rest, refused_rest = await _collect(desk, letters[middle:], words=words)
    return add(first, rest), [*refused_first, *refused_rest]


_TEST = '''"""Dead letter {letter_id}, as a test: it fails for as long as the handler fails on this message.

{failure}
"""

import asyncio

import redrive.testing
from {module} import {name}

BODY = {body!r}
HEADERS = {headers!r}
KEY = {key!r}


def test_letter_{short}_is_handled() -> None:
    assert asyncio.run(failures()) == []


async def failures() -> list[str]:
    async with redrive.testing.run({attribute}) as rehearsal:
        await rehearsal.publish({queue!r}, BODY, headers=HEADERS, key=KEY)
        await rehearsal.drain()
    return [f"{{letter.error_type}}: {{letter.error_message}}" for letter in rehearsal.letters]
'''


def app_of(handler: str) -> str | None:
    """Where the app of a handler usually is, as `module:attribute`: `app` in its module; None if that is not known."""
    module = handler.rpartition(".")[0].partition(".<")[0]
    return None if module in ("", "__main__") or not _is_path(module) else f"{module}:app"


def pytest_file(stored: StoredLetter, target: str) -> str:
    """The text of a test that runs an app's handler on the letter's message, on a memory broker and a manual clock.

    `target` is the app as `module:attribute`. Raises `ConfigError`, and `DeadLetterError` if no copy was kept.
    """
    module, _, attribute = target.partition(":")
    if not _is_path(module) or not _is_path(attribute):
        raise ConfigError(f"app: expected module:attribute, such as first:app, got {target!r}")
    letter, draft = stored.letter, draft_of(stored)
    return _TEST.format(
        letter_id=_said(letter.letter_id),
        short="".join(one for one in letter.letter_id if one.isascii() and one.isalnum())[:12],
        failure=_said(f"{letter.error_type}: {letter.error_message}"),
        module=module,
        name=attribute.partition(".")[0],
        attribute=attribute,
        body=draft.body,
        headers=dict(draft.headers),
        key=letter.key,
        queue=letter.queue,
    )


def _said(text: str) -> str:
    """A text from strangers inside of a docstring, which it can neither end nor change."""
    return printable(text).replace("\\", "\\\\").replace('"', "'")


def _is_path(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
