"""Letters out and in over HTTP, as JSON lines: streamed, never whole in memory."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect

from redrive.api.auth import PermittedRoute, allowed
from redrive.api.problems import BadRequest
from redrive.door.filters import LetterFilter
from redrive.triage import export as verbs
from redrive.triage.desk import Desk

router = APIRouter(tags=["transfer"], route_class=PermittedRoute)

JSON_LINES = "application/jsonl"


class Exported(LetterFilter):
    """Which letters leave."""

    all: bool = Field(default=False, description="Every letter there is.")


class RefusedLine(BaseModel):
    """A line that is no letter, or none that can be kept."""

    line: int
    why: str


class Imported(BaseModel):
    """What an import did."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "new": 998,
                "reopened": 0,
                "known": 1,
                "incidents": 3,
                "refused": 1,
                "refused_lines": [{"line": 7, "why": "not a dead letter: letter_id is missing"}],
            }
        }
    )

    new: int
    reopened: int
    known: int = Field(description="Taken in before; they stay as they are.")
    incidents: int = Field(description="Incidents that were opened by it.")
    refused: int = Field(description="Lines that were not taken in.")
    refused_lines: list[RefusedLine] = Field(description="The first thousand of these.")


_LINES: dict[int | str, dict[str, Any]] = {
    HTTPStatus.OK.value: {
        "description": "One letter per line, newest first. An answer that breaks off is not complete.",
        "content": {JSON_LINES: {"schema": {"type": "string"}}},
    }
}


@router.get("/export", response_class=StreamingResponse, responses=_LINES)
async def export_letters(
    chosen: Annotated[Exported, Query()], desk: Annotated[Desk, Depends(allowed("reveal"))]
) -> StreamingResponse:
    """Letters whole, payloads unmasked: the audit says who took which. Without `state`, letters in any."""
    if chosen.is_empty and not chosen.all:
        raise BadRequest("name a filter, or say all=true")
    lines = await verbs.stream(desk, chosen.query())
    headers = {"Content-Disposition": 'attachment; filename="letters.jsonl"'}
    return StreamingResponse(lines, media_type=JSON_LINES, headers=headers)


_BODY = {
    "description": "One letter per line, as /export writes them.",
    "content": {kind: {"schema": {"type": "string"}} for kind in (JSON_LINES, "application/octet-stream")},
}


@router.post("/import", openapi_extra={"requestBody": _BODY})
async def import_letters(request: Request, desk: Annotated[Desk, Depends(allowed("import"))]) -> Imported:
    """Take in letters that were exported, here or elsewhere, one per line; what is known is not taken in twice.

    A line that is no letter is told of by number, and the rest go in. What went in is on record, also if the request
    breaks off.
    """
    lines = verbs.split_lines(request.stream(), longest=verbs.LONGEST_LINE)
    try:
        found = await verbs.from_lines(desk, lines, source=f"a request by {desk.who}", longest=verbs.LONGEST_LINE)
    except ClientDisconnect:
        raise BadRequest("the request broke off") from None
    return Imported(
        new=found.collected.new,
        reopened=found.collected.reopened,
        known=found.collected.known,
        incidents=found.collected.incidents,
        refused=found.refusals,
        refused_lines=[RefusedLine(line=number, why=why) for number, why in found.refused],
    )
