"""The audit over HTTP: who did what, and whether the record still holds."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from redrive.api.auth import CallerOf, PermittedRoute, allowed
from redrive.api.pages import LINKED, USUAL, After, Limit, asked, link_next
from redrive.door.filters import Word
from redrive.triage import audit as verbs
from redrive.triage.desk import Desk
from redrive.triage.masking import masked_operation

router = APIRouter(prefix="/audit", tags=["audit"], route_class=PermittedRoute)


class Record(BaseModel):
    """One line of the audit: one per operation, and one per letter that it touched."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "seq": 17,
                "at": "2026-01-31T09:00:00Z",
                "who": "sam",
                "verb": "letters.redrive",
                "operation_id": "9d2f4b1c7a60",
                "letter_id": "",
                "selection": "queue=orders, error_type=KeyError, state=open",
                "count": 1000,
                "before_sha256": "",
                "after_sha256": "",
                "detail": {"redrive_id": "3f1c09ab52de"},
                "previous_hash": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
                "hash": "7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730",
            }
        },
    )

    seq: int
    at: datetime
    who: str
    verb: str
    operation_id: str
    letter_id: str = Field(description="Empty in the record of the operation itself.")
    selection: str = Field(description="Masked for callers who may not reveal; the hash is that of the original.")
    count: int | None
    before_sha256: str
    after_sha256: str
    detail: dict[str, Any] = Field(description="Notes and reasons among it; masked like the selection.")
    previous_hash: str
    hash: str


class Verified(BaseModel):
    """Whether each record follows from the one before it; if not, the first that does not."""

    holds: bool
    broken: Record | None


@router.get("", responses=LINKED)
async def list_records(
    request: Request,
    response: Response,
    desk: Annotated[Desk, Depends(allowed("read"))],
    caller: CallerOf,
    *,
    letter_id: Annotated[Word | None, Query(description="Only what was done to this letter.")] = None,
    limit: Limit = USUAL,
    after: After = None,
) -> list[Record]:
    """What was done, the latest first."""
    page = await asked(verbs.find(desk, letter_id=letter_id, limit=limit, after=after))
    link_next(request, response, page.after)
    return [Record.model_validate(masked_operation(record, caller)) for record in page.rows]


@router.get("/verify")
async def verify(desk: Annotated[Desk, Depends(allowed("read"))], caller: CallerOf) -> Verified:
    """Read the whole chain, and say whether it holds."""
    broken = await verbs.verify(desk)
    if broken is None:
        return Verified(holds=True, broken=None)
    return Verified(holds=False, broken=Record.model_validate(masked_operation(broken, caller)))
