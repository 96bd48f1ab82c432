"""The audit: who did what to which letters, and when."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from starlette.responses import Response

from redrive.console.fields import after_in, listed, text_in
from redrive.console.visit import Visit, page
from redrive.core.audit import AuditRecord
from redrive.triage import audit
from redrive.triage.access import Caller
from redrive.triage.masking import masked_operation, masked_text

RECORDS = 200  # looked at for a page: an operation has one for each letter that it touched
LETTERS = 5  # named of each operation
_LONGEST_ID = 1024


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as far as its records are on this page. `named` are some of the `touched` letters."""

    last: AuditRecord
    selection: str
    count: int | None
    named: Sequence[str]
    touched: int
    told: Sequence[tuple[str, str]]
    redrive_id: str


@page("/audit", "audit")
async def _show(visit: Visit) -> Response:
    asked = visit.request.query_params
    letter_id = text_in(asked, "letter_id", most=_LONGEST_ID)
    found = await listed(audit.find(visit.desk, letter_id=letter_id or None, limit=RECORDS, after=after_in(asked)))
    older = visit.url("audit", {"letter_id": letter_id, "after": found.after}) if found.after else ""
    operations = [_operation([*records], visit.caller) for _, records in groupby(found.rows, _operation_id)]
    return visit.render("audit.html", operations=operations, letter_id=letter_id, older=older)


def _operation_id(record: AuditRecord) -> str:
    return record.operation_id


def _operation(records: Sequence[AuditRecord], caller: Caller) -> Operation:
    """Records of one operation, the latest first; the one of the operation itself was written before its letters'."""
    shown = masked_operation(records[-1], caller)
    touched = [record.letter_id for record in reversed(records) if record.letter_id]
    is_about_redrive = shown.selection.startswith(_REDRIVE)
    redrive_id = shown.selection.removeprefix(_REDRIVE) if is_about_redrive else ""
    details = records if len(touched) <= 1 else [one for one in records if not one.letter_id]
    return Operation(
        last=records[0],
        selection="" if is_about_redrive else shown.selection,
        count=shown.count,
        named=touched[:LETTERS],
        touched=len(touched),
        told=[*_told(details, caller)],
        redrive_id=next((str(one.detail["redrive_id"]) for one in records if "redrive_id" in one.detail), redrive_id),
    )


def _told(records: Iterable[AuditRecord], caller: Caller) -> Iterable[tuple[str, str]]:
    """What an act says beside: each thing once, also where the operation and its letter both say it."""
    said: dict[str, str] = {}
    for record in records:
        for name, value in record.detail.items():
            text = " → ".join(map(str, value)) if isinstance(value, list) else str(value)
            if text and name not in _LINKED:
                said[text] = name
    for text, name in said.items():
        yield name, text if caller.may("reveal") else masked_text(text)


_LINKED = ("redrive_id", "redrive")
_REDRIVE = "redrive="  # how an act on a redrive itself names it


routes = [_show]
