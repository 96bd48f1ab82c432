"""Letters over HTTP: look at them, edit, note, and tell what became of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from redrive.api import examples
from redrive.api.auth import CallerOf, PermittedRoute, allowed
from redrive.api.examples import shown
from redrive.api.pages import LARGEST, LINKED, USUAL, Cursor, full_page, link_next
from redrive.api.payload import DEEPEST, Base64, is_shallow, to_headers
from redrive.api.schema import LetterLife, LetterLine, LetterWhole, life_of, line_of, whole_of
from redrive.core.errors import ConfigError
from redrive.core.wire.plain import from_base64
from redrive.door.filters import A_NUMBER, NO_NUL, LetterFilter
from redrive.triage import editor, letters, masking, reporting
from redrive.triage.desk import Desk

router = APIRouter(prefix="/letters", tags=["letters"], route_class=PermittedRoute)

Result = TypeVar("Result")

MOST_HEADERS = 1000
LARGEST_NUMBER = 2**31 - 1
NO_CONTROL = r"^[^\x00-\x1f\x7f]+$"

LetterId = Annotated[str, Path(max_length=1024, pattern=NO_NUL, description="The letter's id.")]
Reveal = Annotated[bool, Query(description="Unmasked; needs the permission reveal, and goes on record.")]
Text = Annotated[str, Field(max_length=10_000, pattern=NO_NUL)]
Short = Annotated[str, Field(max_length=1024, pattern=NO_NUL)]
Number = Annotated[int, Field(ge=1, le=LARGEST_NUMBER), A_NUMBER]
HeaderName = Annotated[str, Field(max_length=1024, pattern=NO_CONTROL)]


class Letters(LetterFilter):
    """Which letters, and which page of them. Without `state` letters in any."""

    limit: int = Field(USUAL, ge=1, le=LARGEST, description="How many, at most.")
    after: Cursor | None = Field(None, description="Behind a page, as its Link says.")


class Asked(BaseModel):
    """The body of a request: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Reported(Asked):
    """What became of a letter that was sent back, told by a consumer that Redrive does not run.

    Without a `generation` the last time that it was sent is meant. A failure without an `error_type` is the one that
    the letter had before.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"succeeded": True, "app_version": "4f2d"}]})

    succeeded: StrictBool
    generation: Number | None = None
    message_id: Short = ""
    attempts: Number = 1
    app_version: Short = ""
    error_type: Short = ""
    error_message: Text = ""
    error_code: Short | None = None


class Edited(Asked):
    """What to send back instead: a body as text, base64 or JSON, and headers. What is not given stays as it is.

    With the letter's `version` as it was seen, an edit that somebody else has overtaken is a conflict.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"json": {"order": 4711, "customer": "c-1"}}, {"headers": [["retry", "no"]]}]}
    )

    text: str | None = Field(None, description="The body as text.")
    base64: str | None = Field(None, description="The body as base64.")
    value: Any = Field(None, alias="json", description="The body as JSON, which is written without spaces; not null.")
    headers: list[tuple[HeaderName, str | Base64]] | None = Field(None, max_length=MOST_HEADERS)
    version: Number | None = Field(None, description="The version of the letter that the edit begins with.")

    def body(self) -> bytes | None:
        """The body, if one is given. Raises `ConfigError`."""
        given = [name for name in ("text", "base64", "value") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError("body: expected one of text, base64 or json, and only one")
        if self.text is not None:
            return _read("text", str.encode, self.text)
        if self.base64 is not None:
            return _read("base64", from_base64, self.base64)
        return None if self.value is None else _read("json", _written, self.value)


class Noted(Asked):
    """A note for the next person who looks at the letter, instead of the one it has."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "waits for the new customer service"}]})

    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDone:
    """An edit that was kept; `number` is null if nothing would change. Of the `difference` secrets are masked."""

    number: int | None
    before_sha256: str | None
    after_sha256: str | None
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDone:
    """A note that was put on a letter."""

    letter_id: str
    note: str


@router.get("", responses={200: {**LINKED[200], **shown([examples.LINE])[200]}})
async def list_letters(
    request: Request,
    response: Response,
    desk: Annotated[Desk, Depends(allowed("read"))],
    chosen: Annotated[Letters, Query()],
) -> list[LetterLine]:
    """Letters without their payloads, newest first."""
    query = chosen.query()
    page = await full_page(
        lambda limit, after: letters.find(desk, query, limit=limit, after=after), limit=chosen.limit, after=chosen.after
    )
    link_next(request, response, page.after)
    return [line_of(masking.masked_row(row)) for row in page.rows]


@router.get("/{letter_id}", responses=shown(examples.WHOLE))
async def show_letter(
    letter_id: LetterId, desk: Annotated[Desk, Depends(allowed("read"))], caller: CallerOf, *, reveal: Reveal = False
) -> LetterWhole:
    """One letter whole: as it died last, its state, edits, and what was heard of it."""
    if reveal:
        revealed = await masking.reveal(desk, caller, letter_id)
        return whole_of(revealed, original=revealed)
    stored = await letters.show(desk, letter_id)
    return whole_of(masking.masked(stored), original=stored)


@router.post("/{letter_id}/outcome", responses=shown(examples.LIFE))
async def report_outcome(
    letter_id: LetterId, desk: Annotated[Desk, Depends(allowed("outcome"))], said: Reported
) -> LetterLife:
    """Tell what became of a letter that was sent back: a success resolves it, after a failure it is open again."""
    life = await reporting.report(desk, letter_id, reporting.Report(**said.model_dump()))
    return life_of(letter_id, life)


@router.post(
    "/{letter_id}/edit",
    responses=shown(
        {
            "number": 1,
            "before_sha256": examples.MESSAGE["payload_sha256"],
            "after_sha256": "9b2f0c1e6f1c5a0d7f1f3d4c6a6f1f7a0d9c3a1b2f4e5d6c7b8a99887766554f",
            "difference": "--- before\n+++ after\n@@ -1,3 +1,4 @@\n",
        }
    ),
)
async def edit_letter(
    letter_id: LetterId, desk: Annotated[Desk, Depends(allowed("edit"))], changes: Edited
) -> EditDone:
    """Keep another body or other headers for a letter, to be sent back instead; the original stays.

    Begin with what `reveal=true` shows: what was masked would be sent as it is.
    """
    headers = None if changes.headers is None else _read("headers", to_headers, changes.headers)
    done = await editor.edit(desk, letter_id, body=changes.body(), headers=headers, version=changes.version)
    if done is None:
        return EditDone(number=None, before_sha256=None, after_sha256=None, difference="")
    return EditDone(
        number=done.number,
        before_sha256=done.before_sha256,
        after_sha256=done.after_sha256,
        difference=await editor.shown_difference(desk, letter_id, done.number),
    )


@router.post("/{letter_id}/note", responses=shown({"letter_id": examples.LINE["letter_id"], "note": "known"}))
async def note_letter(letter_id: LetterId, desk: Annotated[Desk, Depends(allowed("note"))], note: Noted) -> NoteDone:
    """Put a note on a letter."""
    await letters.note(desk, letter_id, note.text)
    return NoteDone(letter_id=letter_id, note=note.text)


def _read(name: str, encode: Callable[[Any], Result], value: Any) -> Result:
    """What a value of the request means. Raises `ConfigError` for one that means nothing."""
    try:
        return encode(value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: {error}") from error


def _written(value: Any) -> bytes:
    if not is_shallow(value):
        raise ValueError(f"expected at most {DEEPEST} levels of nesting")
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
