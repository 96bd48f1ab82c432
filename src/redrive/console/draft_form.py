"""A draft as a form can carry it, and back, byte for byte: JSON laid out, text, hexadecimal or base64."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from redrive.core.message import Headers
from redrive.core.wire.plain import from_base64, to_base64
from redrive.triage.editor import Draft

FORMS = ("json", "text", "hex", "base64")
LARGEST = 24 * 1024  # bytes of a body, or of all headers, that a form shows
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # what does not survive a field of text
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|\s+|([,:])', re.DOTALL)
_NAME = re.compile(r"[^\x00-\x20\x7f:](?:[^\x00-\x1f\x7f:]*[^\x00-\x20\x7f:])?")
_LINE_OF_HEX = 32


class Unreadable(ValueError):
    """What was typed is not what the form says it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftForm:
    """The fields: the body in one of `forms`, and headers one per line. `headers` is None if they do not fit."""

    form: str
    forms: tuple[str, ...]
    body: str
    headers: str | None


def form_of(draft: Draft, wanted: str = "") -> DraftForm | None:
    """The fields for a draft, in the form that is wanted or suits it best; None if it is too large for any."""
    if len(draft.body) > LARGEST:
        return None
    forms = tuple(name for name in FORMS if _written(draft.body, name) is not None)
    form = wanted if wanted in forms else forms[0]
    return DraftForm(form=form, forms=forms, body=_written(draft.body, form) or "", headers=headers_text(draft.headers))


def body_of(text: str, form: str, *, before: bytes) -> bytes:
    """The bytes that somebody has typed, laid out as those `before` were. Raises `Unreadable`."""
    text = text.replace("\r\n", "\n")
    try:
        if form == "hex":
            return bytes.fromhex(text)
        if form == "base64":
            return from_base64("".join(text.split()))
        if form == "json":
            return _one_line(text, _spacing(before)).encode() if is_json(text) else text.encode()
        return (text.replace("\n", "\r\n") if b"\r\n" in before else text).encode()
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"The body is not what it should be in {form}: {error}.") from error


def mistake_in(text: str) -> str:
    """What is wrong with a JSON text, and where; empty if nothing is."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"Line {error.lineno}, column {error.colno}: {error.msg}."
    except RecursionError:
        return "It is nested too deeply."
    except ValueError as error:
        return f"{error}."
    return ""


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    return not mistake_in(text)


def headers_text(headers: Headers) -> str | None:
    """Headers one per line, `name: value`, or `name:: base64` for a value that is no plain text.

    None for what cannot be written so, or is too large.
    """
    if sum(len(name) + len(value) for name, value in headers) > LARGEST or len(headers) > LARGEST // 32:
        return None
    if any(_NAME.fullmatch(name) is None or not _can_be_said(name) for name, _ in headers):
        return None
    return "\n".join(_header_lines(headers))


def headers_of(text: str) -> Headers:
    """Headers from lines. Raises `Unreadable` that names the line."""
    found = []
    for number, said in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not said.strip():
            continue
        name, colon, value = said.partition(":")
        if not colon or _NAME.fullmatch(name) is None:
            raise Unreadable(f"Headers, line {number}: expected name: value.")
        try:
            coded = value[1:].strip() if value.startswith(":") else None
            found.append((name, value.strip().encode() if coded is None else from_base64(coded)))
        except ValueError as error:
            raise Unreadable(f"Headers, line {number}: {error}.") from error
    return tuple(found)


def _header_lines(headers: Headers) -> Iterator[str]:
    for name, value in headers:
        text = _plain(value)
        fits = text is not None and text == text.strip() and "\n" not in text and not text.startswith(":")
        yield f"{name}: {text}" if fits else f"{name}:: {to_base64(value)}"


def _can_be_said(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _written(body: bytes, form: str) -> str | None:
    """The body in a form; None if it would not come back as it is."""
    if form == "hex":
        return "\n".join(body[at : at + _LINE_OF_HEX].hex(" ") for at in range(0, len(body), _LINE_OF_HEX))
    if form == "base64":
        return to_base64(body)
    text = _plain(body)
    if text is None:
        return None
    return text if form == "text" else _laid_out(text, body)


def _plain(body: bytes) -> str | None:
    """The body as text; None if a field of text would change it: browsers know but one kind of line end."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        text = text.replace("\r\n", "\n")
    return None if _UNFIT.search(text) else text


def _laid_out(text: str, body: bytes) -> str | None:
    """JSON of one line as people edit it; None if it is none, or would not come back as it is."""
    if not text.startswith(("{", "[")):
        return None
    for ascii_only in (False, True):
        try:
            shown = json.dumps(json.loads(text), indent=2, ensure_ascii=ascii_only)
        except (ValueError, RecursionError):
            return None
        if _one_line(shown, _spacing(body)).encode("utf-8", "replace") == body:
            return shown
    return None


def _spacing(before: bytes) -> str:
    """What stands behind a comma or a colon."""
    return " " if re.search(rb'"\s*:\s', before[:LARGEST]) or re.match(rb"\[[^\[{\"]*,\s", before) else ""


def _one_line(text: str, space: str) -> str:
    """JSON without its layout, token by token: no number and no text is written anew."""
    return _TOKEN.sub(lambda found: found[1] or (found[2] + space if found[2] else ""), text)
