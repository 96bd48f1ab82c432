"""`redrive letters edit, export, import, verify`: letters and files."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from redrive.cli.anywhere import STORE, Anywhere, letter_named, letters_named, open_clerk
from redrive.cli.bulk import show_progress
from redrive.cli.filters import EVERY, Choice, Filter, refuse_confusion
from redrive.cli.letters import LetterId
from redrive.cli.output import Exit, complain, tell
from redrive.cli.sheet import Part, block, tell_sheet
from redrive.core.errors import ConfigError, DeadLetterError
from redrive.core.life import LetterState
from redrive.core.message import Headers
from redrive.core.stored import StoredLetter

DIFFERENCE = 200  # lines


async def edit(
    letter_id: LetterId,
    /,
    *,
    body: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="The new body: a text, @FILE, or - for standard input.")
    ] = None,
    header: Annotated[tuple[str, ...], Parameter(help="NAME=VALUE: set a header; may be given often.")] = (),
    drop_header: Annotated[tuple[str, ...], Parameter(help="Take a header away; may be given often.")] = (),
    at: Anywhere = STORE,
) -> Exit:
    """Change what will be sent back. The original stays as it was; every edit is kept and audited.

    Without --body, --header and --drop-header the body is opened in $VISUAL or $EDITOR. With --url what is changed
    has to be revealed to you first, which goes on record; only a new body needs nothing of the old one.
    """
    from redrive.triage.editor import draft_of

    async with open_clerk(at) as clerk:
        letter_id = await letter_named(clerk.letters, letter_id)
        changed = None if body is None else _content(body)
        headers = None
        if body is None or header or drop_header:
            stored = (await clerk.letters.show(letter_id, reveal=True)).stored
            if header or drop_header:
                headers = _set(_headers_of(stored), header, drop_header)
            else:
                changed = _in_editor(draft_of(stored).body)
        edited = await clerk.letters.edit(letter_id, body=changed, headers=headers)
    if edited is None:
        tell({"letter_id": letter_id, "edited": False}, "nothing was changed", as_json=at.json)
        return Exit.NO
    fact = {"letter_id": letter_id, "edited": True, **edited._asdict()}
    head = f"edit {edited.number} of {letter_id} is kept, and will be sent back instead of the original"
    tell_sheet(fact, head, [Part("difference", block(edited.difference, most=DIFFERENCE))], as_json=at.json)
    return Exit.OK


async def export(
    *letter_ids: LetterId,
    chosen: Filter = EVERY,
    everything: Annotated[bool, Parameter(name="--all", help="No filter: every letter there is.")] = False,
    to: Annotated[Path | None, Parameter(help="A file to be written; standard output unless told.")] = None,
    pytest: Annotated[bool, Parameter(help="Write one letter as a pytest test instead.")] = False,
    app: Annotated[
        str | None, Parameter(help="With --pytest: the app as module:attribute; guessed from the handler unless told.")
    ] = None,
    at: Anywhere = STORE,
) -> None:
    """Write letters as JSON lines that `letters import` reads, or one letter as a test that fails the same way."""
    from redrive.triage.export import pytest_file
    from redrive.triage.selection import Wanted

    refuse_confusion(letter_ids, chosen, Choice(everything=everything))
    async with open_clerk(at) as clerk:
        named = await letters_named(clerk.letters, letter_ids)
        if pytest:
            if len(named) != 1:
                raise ConfigError(f"--pytest: expected one letter, got {len(named) or 'a filter'}")
            stored = (await clerk.letters.show(named[0], reveal=True)).stored
            text = pytest_file(stored, app or _guessed(stored.letter.handler))
            with _written(to) as file:
                file.write(text.encode())
            return
        wanted = Wanted(
            query=chosen.query(now=datetime.now(UTC)),
            letter_ids=named,
            everything=everything or chosen.any_state,
            states=tuple(LetterState),
        )
        with _written(to) as file, show_progress("exporting", total=None if to else 0) as advance:
            async for lines in clerk.letters.export(wanted):
                file.write(lines)
                advance(lines.count(b"\n"))


async def import_letters(
    file: Annotated[
        str, Parameter(help="What `letters export` wrote, or - for standard input.", allow_leading_hyphen=True)
    ],
    /,
    *,
    at: Anywhere = STORE,
) -> Exit:
    """Take in letters that were exported, here or elsewhere. What is known already is not taken in twice."""
    from dataclasses import asdict

    async with open_clerk(at, create=True) as clerk:
        with _read(file) as lines:
            found = await clerk.letters.take_in(lines, source="standard input" if file == "-" else file)
    done = found.collected
    complain(f"line {number}: {why}" for number, why in found.refused)
    if found.refusals > len(found.refused):
        complain([f"and {found.refusals - len(found.refused):,} lines more"])
    refused = f", {found.refusals} refused" if found.refusals else ""
    text = f"imported {done.new} new, {done.reopened} reopened, {done.known} known already{refused}"
    tell({**asdict(done), "refused": found.refusals}, text, as_json=at.json)
    return Exit.NO if found.refused else Exit.OK


async def verify(
    letter_id: LetterId,
    file: Annotated[str, Parameter(help="The file to compare, or - for standard input.", allow_leading_hyphen=True)],
    /,
    *,
    at: Anywhere = STORE,
) -> Exit:
    """Compare a letter's payload with a file by SHA-256; exits with 1 if they differ. Works without a kept copy too."""
    from redrive.triage.letters import compare

    async with open_clerk(at) as clerk:
        letter_id = await letter_named(clerk.letters, letter_id)
        seen = await clerk.letters.show(letter_id)
    with _read(file) as content:
        found = compare(content.read(), original=seen.stored.letter.payload_sha256, edits=seen.edits_sha256)
    hashes = f"letter {found.letter_sha256}, file {found.content_sha256}"
    if found.same:
        text = f"the same: {found.letter_sha256}"
    elif found.edit:
        text = f"not the original but its edit {found.edit}: {hashes}"
    else:
        text = f"different: {hashes}"
    tell({"letter_id": letter_id, **found._asdict()}, text, as_json=at.json)
    return Exit.OK if found.same else Exit.NO


def _guessed(handler: str) -> str:
    """The app of a handler. Raises `ConfigError`."""
    from redrive.triage.export import app_of

    found = app_of(handler)
    if found is None:
        raise ConfigError(
            f"--app: expected the app as module:attribute; the letter's handler is {handler or 'unknown'}"
        )
    return found


def _headers_of(stored: StoredLetter) -> Headers:
    return stored.edits[-1].headers if stored.edits else stored.letter.headers


def _set(headers: Headers, given: tuple[str, ...], dropped: tuple[str, ...]) -> Headers:
    new = []
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigError(f"--header: expected NAME=VALUE, got {text!r}")
        new.append((name, os.fsencode(value)))
    gone = {*dropped, *(name for name, _ in new)}
    return (*(pair for pair in headers if pair[0] not in gone), *new)


def _content(body: str) -> bytes:
    if body == "-" or body.startswith("@"):
        with _read(body.removeprefix("@")) as file:
            return file.read()
    return os.fsencode(body)


def _in_editor(body: bytes) -> bytes:
    """The body as a person leaves it in their editor. A line end that only the editor has added is taken off."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        raise ConfigError("--body: expected a body, or VISUAL or EDITOR to name an editor")
    with tempfile.TemporaryDirectory(prefix="redrive-edit-") as folder:
        file = Path(folder) / ("body.json" if body[:1] in (b"{", b"[") else "body.txt")
        file.write_bytes(body)
        try:
            ended = subprocess.run([*shlex.split(command), str(file)], check=False).returncode  # noqa: S603 - theirs
        except OSError as error:
            raise ConfigError(f"EDITOR: {command!r} cannot be started: {error.strerror}") from error
        if ended:
            raise DeadLetterError(f"the editor ended with status {ended}; nothing was changed")
        changed = file.read_bytes()
    return body if changed == body + b"\n" else changed


@contextmanager
def _read(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error


@contextmanager
def _written(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"--to: {path} cannot be written: {error.strerror}") from error
