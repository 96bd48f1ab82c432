"""One letter as a page shows it: every part of it bounded, made harmless, and in words where there are any."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from markupsafe import Markup

from redrive.console.clip import Clipped, clip, line
from redrive.console.letter_lines import short_type
from redrive.console.payload import PayloadView, payload_view
from redrive.console.tree import tree
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.life import LetterState
from redrive.core.message import Headers
from redrive.core.reason import Reason
from redrive.core.stored import StoredLetter
from redrive.triage.editor import Draft, difference

_MESSAGE = 4 * 1024
_STACK = 16 * 1024
_CONTEXT = 6 * 1024
_HEADERS = 14 * 1024
_HEADER = 512
_NAME = 1024
_MOST_HEADERS = 250  # more have no room, however short
_EDITS = 5
_DIFFERENCE = 4 * 1024
_COMPARED = 32 * 1024  # bytes of a body that is compared line by line

WHY = {
    Reason.ATTEMPTS_EXHAUSTED: "every attempt failed",
    Reason.REJECTED: "no retry can help, as its handler or a rule said",
    Reason.INVALID: "its payload is not what the handler asks for",
    Reason.EXPIRED: "it expired before it could run",
    Reason.DEADLINE: "its time for retries was spent",
    Reason.WORKER_CRASH: "its process died each time that it ran",
    Reason.VANISHED: "the broker lost its body while it was pending",
    Reason.UNKNOWN: "it does not say why",
}


class Fact(NamedTuple):
    """A name and what stands behind it."""

    name: str
    text: str


class HeaderLine(NamedTuple):
    """One header."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """One edit: by whom, its hash, and what it changed."""

    number: int
    by: str
    at: Any
    sha256: str
    difference: Sequence[tuple[str, str]]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterView:
    """What the page of a letter holds. `is_hidden` is whether something of the payload is masked in it."""

    error: str
    message: Clipped
    why: str
    where: Sequence[Fact]
    about: Sequence[Fact]
    payload: PayloadView | None
    size: int | None
    sha256: str
    is_hidden: bool
    headers: Sequence[HeaderLine]
    headers_left: int
    context: Markup | None
    context_cut: bool
    stack: Clipped | None
    edits: Sequence[EditView]


def view_of(shown: StoredLetter, *, original: StoredLetter, view: str) -> LetterView:
    """The letter; `shown` is what of the original may be seen. Takes a while for large ones: call it in a thread."""
    letter, kept = shown.letter, original.letter.payload
    is_hidden = letter.payload != kept
    headers = header_lines(letter.headers)
    context = tree(letter.context, room=_CONTEXT) if letter.context else (None, False)
    return LetterView(
        error=line(short_type(letter.error_type), 200),
        message=clip(letter.error_message, _MESSAGE),
        why=WHY[letter.reason],
        where=_where(letter),
        about=_about(letter),
        payload=None if letter.payload is None else payload_view(letter.payload, view, is_hidden=is_hidden),
        size=None if kept is None else len(kept),
        sha256=line(letter.payload_sha256, 80),
        is_hidden=is_hidden,
        headers=headers,
        headers_left=len(original.letter.headers) - len(headers),
        context=context[0],
        context_cut=context[1],
        stack=clip(letter.stack, _STACK) if letter.stack else None,
        edits=_edits(shown, original),
    )


def bounded(stored: StoredLetter) -> StoredLetter:
    """The letter without what no page has room for, which would take long to mask.

    What is left out begins far behind the last that is shown, so that no secret is cut in two before anybody's eyes.
    """
    letter = stored.letter
    stack = None if letter.stack is None else letter.stack[: 4 * _STACK]
    headers = tuple((name[:_NAME], value[: 4 * _HEADER]) for name, value in letter.headers[:_MOST_HEADERS])
    message = letter.error_message[: 4 * _MESSAGE]
    return replace(stored, letter=replace(letter, stack=stack, headers=headers, error_message=message))


def masks(shown: StoredLetter, original: StoredLetter) -> bool:
    """Whether anything of the letter is hidden."""
    return shown.letter != original.letter or [*shown.edits] != [*original.edits]


def can_be_sent(stored: StoredLetter) -> bool:
    """Whether there is something to send back, and nobody waits for an answer."""
    unsettled = stored.life.state in (LetterState.OPEN, LetterState.PARKED, LetterState.REDRIVING)
    return unsettled and (stored.letter.payload is not None or bool(stored.edits))


def header_lines(headers: Headers, *, room: int = _HEADERS) -> list[HeaderLine]:
    """As many headers as there is room for."""
    found = []
    for name, value in headers:
        shown = HeaderLine(line(name, 200), line(value[:_HEADER].decode("utf-8", "backslashreplace"), _HEADER))
        room -= len(shown.name) + len(shown.value) + 60
        if room < 0:
            break
        found.append(shown)
    return found


def diff_lines(text: str, *, room: int) -> tuple[list[tuple[str, str]], bool]:
    """A difference line by line, each with what it is; and whether it was cut."""
    found = clip(text, room)
    kinds = {"+": "added", "-": "gone", "@": "place"}
    lines = [one for one in found.text.split("\n") if not one.startswith(("--- before", "+++ after"))]
    return [(kinds.get(one[:1], "same"), one) for one in lines if one], found.is_cut


def _where(letter: DeadLetter) -> list[Fact]:
    facts = {
        "Queue": letter.queue,
        "Group": letter.group,
        "Broker": letter.broker,
        "Handler": letter.handler,
        "Version": letter.app_version,
        "Node": f"{letter.node}, pid {letter.pid}" if letter.node and letter.pid else letter.node,
        "Message": letter.original_message_id,
        "Key": "" if letter.key is None else letter.key[:_HEADER].decode("utf-8", "backslashreplace"),
        "DLQ entry": letter.dlq_entry_id,
    }
    return _facts(facts)


def _about(letter: DeadLetter) -> list[Fact]:
    facts = {
        "Error type": letter.error_type,
        "Error code": letter.error_code or "",
        "Severity": letter.severity or "",
        "User": letter.user_id or "",
        "Tenant": letter.tenant_id or "",
        "Task": letter.task_type or "",
        "Content type": letter.content_type,
        "Kind": "" if letter.kind == "message" else letter.kind,
    }
    return _facts(facts)


def _facts(facts: dict[str, str]) -> list[Fact]:
    return [Fact(name, line(text, 300)) for name, text in facts.items() if text]


def _edits(shown: StoredLetter, original: StoredLetter) -> list[EditView]:
    drafts = [Draft(shown.letter.payload or b"", shown.letter.headers)]
    drafts += [Draft(one.body, one.headers) for one in shown.edits]
    found = []
    for number in range(max(1, len(shown.edits) - _EDITS + 1), len(drafts)):
        before, after, edit = drafts[number - 1], drafts[number], shown.edits[number - 1]
        lines, is_cut = diff_lines(_compared(before, after), room=_DIFFERENCE)
        found.append(
            EditView(
                number=number,
                by=line(edit.by, 80),
                at=edit.edited_at,
                sha256=payload_hash(original.edits[number - 1].body),
                difference=lines,
                note=_note(lines, is_cut=is_cut),
            )
        )
    return found[::-1]


def _compared(before: Draft, after: Draft) -> str:
    """The difference, or nothing where to find it would take too long."""
    size = sum(len(one.body) + sum(len(value) for _, value in one.headers) for one in (before, after))
    return difference(before, after) if size <= 2 * _COMPARED else ""


def _note(lines: Sequence[object], *, is_cut: bool) -> str:
    if is_cut:
        return "There is more to it than can be shown here."
    return "" if lines else "What changed is hidden, or too large to be shown here."
