"""Edit a letter: another body or other headers, with what they change before the eyes, before they are kept.

Every page here shows the letter as it is, so each is an act, and on record.
"""

from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from redrive.console import draft_form
from redrive.console.draft_form import DraftForm, Unreadable
from redrive.console.fields import number_in
from redrive.console.letter_view import diff_lines
from redrive.console.snippets import quoted
from redrive.console.visit import Visit, act, page
from redrive.console.words import size
from redrive.core.errors import ConfigError, NotAllowed, RedriveError, StateConflict
from redrive.core.message import RESERVED_PREFIX
from redrive.core.stored import StoredLetter
from redrive.triage import editor, letters, masking
from redrive.triage.editor import Draft

_ROOM = 32 * 1024
_LARGEST = 4 * draft_form.LARGEST  # bytes of a body that is compared line by line


class Typed(NamedTuple):
    """What was sent with the form: the fields as they were, and what they mean."""

    form: DraftForm
    draft: Draft
    version: int
    checked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A draft that was looked at: what it changes, what to know about it, and a name for exactly this draft."""

    difference: list[tuple[str, str]]
    is_cut: bool
    remark: str
    token: str


@act("/letters/{letter_id}/edit/begin", "letter_edit_begin", may="edit")
async def _begin(visit: Visit) -> Response:
    stored = await masking.reveal(visit.desk, visit.caller, visit.part("letter_id"))
    form = draft_form.form_of(_draft_of(stored), visit.form.get("form", ""))
    return _render(visit, stored, _Sheet(form=form, version=stored.life.version))


@act("/letters/{letter_id}/edit/check", "letter_edit_check", may="edit")
async def _check(visit: Visit) -> Response:
    stored = await masking.reveal(visit.desk, visit.caller, visit.part("letter_id"))
    return await _look(visit, stored)


@act("/letters/{letter_id}/edit", "letter_edit", may="edit")
async def _keep(visit: Visit) -> Response:
    stored = masking.open_for(visit.desk, visit.caller, await letters.show(visit.desk, visit.part("letter_id")))
    try:
        typed = _typed(visit, stored)
    except Unreadable:
        typed = None
    if typed is None or typed.checked != _token(typed.draft):
        stored = await masking.reveal(visit.desk, visit.caller, visit.part("letter_id"))
        return await _look(visit, stored, said="You changed it after you looked at what it changes. Look again.")
    letter_id = stored.letter.letter_id
    body, headers = typed.draft
    try:
        done = await editor.edit(visit.desk, letter_id, body=body, headers=headers, version=typed.version)
    except (StateConflict, NotAllowed) as error:
        sheet = _Sheet(form=typed.form, version=typed.version, mistake=_words(error))
        return _render(visit, stored, sheet, status=HTTPStatus.CONFLICT)
    said = "Nothing was changed." if done is None else f"Edit {done.number} is kept; it is sent back next time."
    if visit.form.get("then") == "redrive":
        return visit.go(visit.url("redrive_new", {"letter_id": letter_id}), said=said)
    return visit.go(visit.url("letter", letter_id=letter_id), said=said)


async def _look(visit: Visit, stored: StoredLetter, *, said: str = "") -> Response:
    """The form as it was sent, and above it what it changes, or what is wrong with it."""
    try:
        typed = _typed(visit, stored)
    except Unreadable as error:
        sheet = _Sheet(form=_fields(visit, stored), version=number_in(visit.form, "version"), mistake=str(error))
        return _render(visit, stored, sheet, status=HTTPStatus.BAD_REQUEST)
    before = _draft_of(stored)
    mistake = _mistake(visit, typed, before=before)
    if mistake:
        anyway = not _locked(typed.draft)
        sheet = _Sheet(form=typed.form, version=typed.version, mistake=mistake, anyway=anyway)
        return _render(visit, stored, sheet, status=HTTPStatus.BAD_REQUEST)
    text = await run_in_threadpool(editor.difference, _compared(before, typed), _compared(typed.draft, typed))
    lines, is_cut = diff_lines(text, room=_ROOM)
    checked = Checked(difference=lines, is_cut=is_cut, remark=_remark(typed), token=_token(typed.draft))
    return _render(visit, stored, _Sheet(form=typed.form, version=typed.version, mistake=said, checked=checked))


def _typed(visit: Visit, stored: StoredLetter) -> Typed:
    """What the form says. Raises `Unreadable`, and `ConfigError` for what no form of ours sends."""
    fields = _fields(visit, stored)
    before = _draft_of(stored)
    body = draft_form.body_of(fields.body, fields.form, before=before.body)
    if max(len(body), len(before.body)) > _LARGEST:
        raise Unreadable(f"A body of more than {size(_LARGEST)} cannot be edited here; the command line can.")
    headers = before.headers if fields.headers is None else draft_form.headers_of(fields.headers)
    return Typed(fields, Draft(body, headers), number_in(visit.form, "version"), visit.form.get("checked", ""))


def _fields(visit: Visit, stored: StoredLetter) -> DraftForm:
    before = _draft_of(stored)
    form = visit.form.get("form", "")
    if form not in draft_form.FORMS or "body" not in visit.form:
        raise ConfigError("body: expected the fields of the form")
    can_edit_headers = draft_form.headers_text(before.headers) is not None
    headers = visit.form.get("headers", "") if can_edit_headers else None
    return DraftForm(form=form, forms=(form,), body=visit.form["body"].replace("\r\n", "\n"), headers=headers)


def _draft_of(stored: StoredLetter) -> Draft:
    """What would be sent back; nothing at all where no copy was kept."""
    if stored.letter.payload is None and not stored.edits:
        return Draft(b"", stored.letter.headers)
    return editor.draft_of(stored)


def _mistake(visit: Visit, typed: Typed, *, before: Draft) -> str:
    """Why this should not be kept; empty if nothing speaks against it."""
    locked = _locked(typed.draft)
    if locked:
        return f"Headers that begin with {RESERVED_PREFIX} are Redrive's own: take away {', '.join(locked)}."
    if visit.form.get("anyway") == "true" or not _is_json(before.body):
        return ""
    text = typed.form.body if typed.form.form in ("json", "text") else typed.draft.body.decode("utf-8", "replace")
    wrong = draft_form.mistake_in(text)
    return f"This is no JSON any more. {wrong}" if wrong else ""


def _remark(typed: Typed) -> str:
    if not typed.draft.body:
        return "The body is empty."
    looks_like_json = typed.draft.body.lstrip().startswith((b"{", b"["))
    return "" if _is_json(typed.draft.body) or not looks_like_json else "The body looks like JSON, but is none."


def _locked(draft: Draft) -> list[str]:
    return sorted({name for name, _ in draft.headers if name.lower().startswith(RESERVED_PREFIX)})


def _is_json(body: bytes) -> bool:
    try:
        return draft_form.is_json(body.decode())
    except UnicodeDecodeError:
        return False


def _compared(draft: Draft, typed: Typed) -> Draft:
    """A draft for people: without headers that the form does not show."""
    return draft if typed.form.headers is not None else Draft(draft.body, ())


def _token(draft: Draft) -> str:
    """A name for exactly this draft."""
    hashed = sha256(draft.body)
    for name, value in draft.headers:
        hashed.update(b"\0%d " % len(value) + name.encode("utf-8", "surrogatepass") + b"\0" + value)
    return hashed.hexdigest()


def _words(error: RedriveError) -> str:
    again = " What you typed is below; go back to the letter to see how it is now."
    return f"{error}.{again if isinstance(error, StateConflict) else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """The page: the form, `None` if the letter is too large for one, and what is said above it."""

    form: DraftForm | None
    version: int
    mistake: str = ""
    anyway: bool = False
    checked: Checked | None = None


def _render(visit: Visit, stored: StoredLetter, sheet: _Sheet, *, status: int = HTTPStatus.OK) -> Response:
    return visit.render(
        "letter_edit.html",
        status=status,
        letter_id=stored.letter.letter_id,
        quoted_id=quoted(stored.letter.letter_id),
        has_payload=stored.letter.payload is not None or bool(stored.edits),
        sheet=sheet,
        form=sheet.form,
        largest=draft_form.LARGEST,
    )


async def _back(visit: Visit) -> Response:
    """To the letter: what these acts show is not kept under an address."""
    return visit.go(visit.url("letter", letter_id=visit.part("letter_id")))


_OF_ACTS = {"edit": "letter_edited", "edit/begin": "letter_edit_begun", "edit/check": "letter_edit_checked"}
_OF_ACTS |= {"reveal": "letter_revealed", "payload": "letter_downloaded"}

routes: list[Route] = [_begin, _check, _keep]
routes += [page(f"/letters/{{letter_id}}/{path}", name)(_back) for path, name in _OF_ACTS.items()]
