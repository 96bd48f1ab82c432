"""Letters as files: JSON lines to take along, and a test that fails as the letter did."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from redrive.core.errors import ConfigError
from redrive.core.letter import DeadLetter
from redrive.core.ports.store import Collected, StoredLetter
from redrive.core.printable import printable
from redrive.core.wire import from_json, to_json
from redrive.triage.desk import Desk
from redrive.triage.editor import draft_of
from redrive.triage.selection import Selection

BATCH = 500


async def to_lines(desk: Desk, selection: Selection) -> AsyncIterator[bytes]:
    """The letters as JSON lines, oldest first; one that is gone meanwhile raises `LetterNotFound`."""
    for row in selection.rows:
        yield to_json((await desk.store.get(row.letter_id)).letter) + b"\n"


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, and the lines that are no letters, by number."""

    collected: Collected
    refused: Sequence[tuple[int, str]]


async def from_lines(desk: Desk, lines: Iterable[bytes], *, source: str) -> Imported:
    """Take in letters from JSON lines, as a collector does: once per letter and generation, however often.

    A line that cannot be read is told of, and the rest go in. Each batch of lines is an operation of its own in the
    audit, which says where they came from: whatever went in is on record, also if the rest never does.
    """
    refused: list[tuple[int, str]] = []
    total = Collected()
    written = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while batch := [*islice(written, BATCH)]:
        letters, unreadable = _read(batch)
        refused.extend(unreadable)
        selection = f"lines {batch[0][0]} to {batch[-1][0]} of {source}"
        act = desk.act("letters.import", selection=selection, refused=len(unreadable))
        total = add(total, await desk.store.collect(letters, act=act))
    return Imported(total, refused)


def add(one: Collected, other: Collected) -> Collected:
    """Two counts together."""
    return Collected(
        new=one.new + other.new,
        reopened=one.reopened + other.reopened,
        resolved=one.resolved + other.resolved,
        known=one.known + other.known,
    )


def _read(lines: Iterable[tuple[int, bytes]]) -> tuple[list[DeadLetter], list[tuple[int, str]]]:
    letters: list[DeadLetter] = []
    refused: list[tuple[int, str]] = []
    for number, line in lines:
        try:
            letters.append(from_json(line))
        except ValueError as error:
            refused.append((number, str(error)))
    return letters, refused


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


def pytest_file(stored: StoredLetter, target: str) -> str:
    """The text of a test that runs an app's handler on the letter's message, on a memory broker and a manual clock.

    `target` is the app as `module:attribute`. Raises `ConfigError`, and `DeadLetterError` if no copy was kept.
    """
    module, _, attribute = target.partition(":")
    if not _is_path(module) or not _is_path(attribute):
        raise ConfigError(f"app: expected module:attribute, such as first:app, got {target!r}")
    letter, draft = stored.letter, draft_of(stored)
    failure = printable(f"{letter.error_type}: {letter.error_message}").replace("\\", "\\\\").replace('"', "'")
    return _TEST.format(
        letter_id=printable(letter.letter_id),
        short="".join(character for character in letter.letter_id if character.isalnum())[:12],
        failure=failure,
        module=module,
        name=attribute.partition(".")[0],
        attribute=attribute,
        body=draft.body,
        headers=dict(draft.headers),
        key=letter.key,
        queue=letter.queue,
    )


def _is_path(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
