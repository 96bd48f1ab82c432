"""`redrive audit`: who did what to which letters, and whether that record still holds."""

import json
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import App, Parameter

from redrive.cli.anywhere import STORE, Anywhere, letter_named, open_clerk, rows_of
from redrive.cli.desk import SHORT
from redrive.cli.output import Column, Exit, complain, show, tell
from redrive.core.audit import AuditRecord

audit = App(name="audit", help="Who did what to which letters, and whether that record still holds.")

_COLUMNS = (
    Column("", "seq", right=True, style=lambda _: "dim"),
    Column("at", "at", style=lambda _: "dim"),
    Column("who", "who"),
    Column("did", "verb", style=lambda _: "bold"),
    Column("letters", "about", right=True),
    Column("which", "which", wraps=True),
)


@audit.default
@audit.command(name="list")
async def list_records(
    *,
    letter: Annotated[str | None, Parameter(help="Only what was done to this letter.")] = None,
    count: Annotated[int, Parameter(help="How many, the latest first; 50 unless told.")] = 50,
    after: Annotated[str | None, Parameter(help="Go on behind the last page, as it said.")] = None,
    at: Anywhere = STORE,
) -> None:
    """Show what was done: one record per operation, and one per letter that it touched."""
    async with open_clerk(at) as clerk:
        letter_id = None if letter is None else await letter_named(clerk.letters, letter)
        page = await rows_of(
            lambda limit, after: clerk.audit.find(letter_id, limit=limit, after=after), count=count, after=after
        )
    show(map(asdict if at.json else _fact, page.rows), _COLUMNS, as_json=at.json, empty="nothing was done yet")
    if page.after is not None:
        complain([f"there are more: --after {page.after}"])


@audit.command
async def verify(*, at: Anywhere = STORE) -> Exit:
    """Follow the chain of records from the first to the last; exits with 1 at one that was changed."""
    async with open_clerk(at) as clerk:
        broken = await clerk.audit.verify()
    if broken is None:
        tell({"holds": True}, "the chain holds: no record was changed, removed or put in between", as_json=at.json)
        return Exit.OK
    text = f"the chain breaks at record {broken.seq} ({broken.verb}, {broken.at:%Y-%m-%d %H:%M:%S}Z)"
    tell({"holds": False, "seq": broken.seq, "verb": broken.verb, "at": broken.at}, text, as_json=at.json)
    return Exit.NO


def _fact(record: AuditRecord) -> dict[str, Any]:
    detail = ", ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for name, value in record.detail.items()
    )
    about = "" if record.count is None else f"{record.count:,}"
    which = "; ".join(filter(None, (record.letter_id[:SHORT], record.selection, detail)))
    return {**asdict(record), "about": about, "which": which}
