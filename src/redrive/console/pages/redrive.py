"""One redrive: how far it is, why it waits, and at the end whether it worked."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from redrive.console.charts import shares
from redrive.console.fields import text_in
from redrive.console.render import FRAGMENT
from redrive.console.selected import filter_address, letter_ids_in
from redrive.console.visit import Visit, act, page
from redrive.core.redrive import ENDED, ItemStatus, Progress, Redrive
from redrive.door.problems import shown
from redrive.triage import redrives as verbs
from redrive.triage.masking import masked_operation
from redrive.triage.redrives import Shown
from redrive.triage.watch import waiting

PATIENCE = 1.0  # seconds for the brokers to say why a redrive waits
_TARGETS = 10


class Step(NamedTuple):
    """One step, or all of them together: how many letters, how many of them were sent, and what became of each."""

    name: str
    size: int
    sent: int
    parts: Mapping[str, int]

    @property
    def bar(self) -> Markup:
        """The parts of it as parts of a bar."""
        return shares(self.parts, self.name)


@page("/redrives/{redrive_id}", "redrive")
async def _show(visit: Visit) -> Response:
    found = await verbs.show(visit.desk, visit.part("redrive_id"))
    if visit.request.headers.get(FRAGMENT) == "acts":
        return visit.render("redrive.html", **_facts(visit, found), why="")
    why = await waiting(found.redrive, found.progress, visit.service.brokers, patience=PATIENCE)
    return visit.render("redrive.html", **_facts(visit, found), why=shown(why))


def _facts(visit: Visit, found: Shown) -> dict[str, Any]:
    redrive, progress = masked_operation(found.redrive, visit.caller), found.progress
    parts = _parts(redrive)
    steps = [_step(f"Step {number}", Progress((counts,)), parts) for number, counts in enumerate(progress.steps, 1)]
    return {
        "redrive": redrive,
        "is_ended": redrive.state in ENDED,
        "verdict": found.verdict,
        "steps": steps,
        "whole": _step("All steps", progress, parts),
        "versions": progress.versions,
        "to_go": progress.count(ItemStatus.PLANNED),
        "out": progress.count(*_OUT),
        "accepting": progress.count(ItemStatus.FAILED_OTHERWISE, ItemStatus.UNCONFIRMED) - redrive.accepted,
        "targets_shown": _TARGETS,
        **_about(visit, redrive),
    }


def _parts(redrive: Redrive) -> Mapping[str, tuple[ItemStatus, ...]]:
    """What may become of a letter, as columns that stay the same while it runs."""
    quiet = {"quiet": (ItemStatus.QUIET,)} if redrive.confirm == "quiet" else {}
    return {
        "succeeded": (ItemStatus.SUCCEEDED,),
        **quiet,
        "failed again": (ItemStatus.FAILED,),
        "failed otherwise": (ItemStatus.FAILED_OTHERWISE,),
        "unconfirmed": (ItemStatus.UNCONFIRMED,),
        "skipped": (ItemStatus.SKIPPED,),
        "still out": _OUT,
        "untouched" if redrive.state in ENDED else "to go": (ItemStatus.PLANNED, ItemStatus.UNTOUCHED),
    }


def _step(name: str, counts: Progress, parts: Mapping[str, tuple[ItemStatus, ...]]) -> Step:
    size = counts.count(*ItemStatus)
    found = {part: counts.count(*statuses) for part, statuses in parts.items()}
    return Step(name, size, size - counts.count(*_NEVER_SENT), found)


_OUT = (ItemStatus.CLAIMED, ItemStatus.SENT)
_NEVER_SENT = (ItemStatus.PLANNED, ItemStatus.CLAIMED, ItemStatus.UNTOUCHED, ItemStatus.SKIPPED)


def _about(visit: Visit, redrive: Redrive) -> dict[str, Any]:
    """The pages of its letters and of its incident, where its words name them."""
    address = filter_address(redrive.selection) or {}
    fingerprint = address.get("fingerprint")
    return {
        "letters_page": visit.url("letters", address) if address else "",
        "incident_page": visit.url("incident", incident_id=str(fingerprint)) if fingerprint else "",
        "letter_ids": letter_ids_in(redrive.selection),
    }


@act("/redrives/{redrive_id}/pause", "redrive_pause", may="redrive")
async def _pause(visit: Visit) -> Response:
    await verbs.pause(visit.desk, visit.part("redrive_id"), why=text_in(visit.form, "why"))
    return _back(visit, "Paused: nothing more is sent; what is out is still heard.")


@act("/redrives/{redrive_id}/resume", "redrive_resume", may="redrive")
async def _resume(visit: Visit) -> Response:
    await verbs.resume(visit.desk, visit.part("redrive_id"))
    return _back(visit, "It goes on.")


@act("/redrives/{redrive_id}/cancel", "redrive_cancel", may="redrive")
async def _cancel(visit: Visit) -> Response:
    await verbs.cancel(visit.desk, visit.part("redrive_id"), why=text_in(visit.form, "why"))
    return _back(visit, "Cancelled: what was not sent stays as it was.")


def _back(visit: Visit, said: str) -> Response:
    return visit.go(visit.url("redrive", redrive_id=visit.part("redrive_id")), said=said)


routes = [_show, _pause, _resume, _cancel]
