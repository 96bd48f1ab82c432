"""From what the API says to the values that triage has: the other side of what `api` writes.

Whatever cannot be read raises `ValueError`, `TypeError` or `LookupError`; names that are not known are passed over.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from msgspec import convert

from redrive.cli.clerk import Seen
from redrive.core.life import Life
from redrive.core.query import Query
from redrive.core.redrive import ItemStatus, Progress, Redrive, RedriveOutcome, Target
from redrive.core.stored import Edit, IncidentRow, LetterRow, Stats, StoredLetter
from redrive.core.wire import from_json
from redrive.core.wire.plain import from_base64
from redrive.core.wire.record import from_pairs
from redrive.triage.redrives import Shown
from redrive.triage.selection import Preview

Said = Mapping[str, Any]


def filter_of(query: Query) -> dict[str, Any]:
    """A query as the API takes it, in an address or in a document; empty if nothing is asked."""
    named = {field.name: getattr(query, field.name) for field in fields(query)}
    named |= {"q": named.pop("text"), "from": named.pop("from_at"), "to": named.pop("to_at")}
    named["state"] = [*named.pop("states")] or None
    plain = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in named.items()}
    return {name: value for name, value in plain.items() if value is not None}


def letter_row(said: Said) -> LetterRow:
    """A letter in a list."""
    return convert({**said, "life": _life(said)}, LetterRow)


def whole_letter(said: Said) -> Seen:
    """One letter. Its hash is that of the payload, which may be hidden."""
    document = said["letter"]
    letter = from_json(json.dumps(document).encode())
    stored = StoredLetter(
        letter=replace(letter, payload_sha256=document["payload_sha256"]),
        life=_life(said),
        note=said["note"],
        edits=tuple(_edit(edit) for edit in said["edits"]),
        outcomes=convert(said["outcomes"], tuple[RedriveOutcome, ...]),
        redrive_ids=convert(said["redrive_ids"], tuple[str, ...]),
    )
    return Seen(stored, [edit["sha256"] for edit in said["edits"]], masked=said["masked"])


def stats(said: Said) -> Stats:
    """Exact counts."""
    ends = {"oldest_at": said["oldest_message_at"], "newest_at": said["newest_message_at"]}
    return convert({**said, **ends, "total": said["total_messages"]}, Stats)


def preview(said: Said) -> Preview:
    """What a selection holds."""
    return convert({**said, "count": said["total"], "words": said["selection"]}, Preview)


def incident_row(said: Said) -> IncidentRow:
    """An incident."""
    hours = [(hour["at"], hour["deaths"]) for hour in said.get("hours", ())]
    return convert({**said, "fingerprint": said["incident_id"], "hours": hours}, IncidentRow)


def redrive(said: Said) -> Redrive:
    """The record of a redrive."""
    within = timedelta(seconds=said["report_within_seconds"])
    found = convert({**said, "targets": [], "report_within": within}, Redrive)
    return replace(found, targets=tuple(target(one) for one in said["targets"]))


def target(said: Said) -> Target:
    """Where letters go."""
    return Target(said["broker"], said["queue"], said["group"])


def shown_redrive(said: Said) -> Shown:
    """A redrive, and how far it is."""
    steps = tuple({ItemStatus(name): number for name, number in step.items()} for step in said["progress"])
    return Shown(redrive(said), Progress(steps, tuple(said["versions"])), said["verdict"])


def _life(said: Said) -> Life:
    return convert([said["state"], said["generation"], said["version"]], Life)


def _edit(said: Said) -> Edit:
    body = said["body"]
    return Edit(
        body=from_base64(body) if said["body_encoding"] == "base64" else body.encode("utf-8", "surrogatepass"),
        headers=from_pairs(said["headers"]),
        by=said["by"],
        edited_at=datetime.fromisoformat(said["edited_at"]),
    )
