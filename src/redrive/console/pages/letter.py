"""A letter: what died, why, and all that is known of it; look closer, note, and tell what became of it."""

import re
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from redrive.console.fields import number_in, text_in
from redrive.console.letter_view import bounded, can_be_sent, masks, view_of
from redrive.console.pages import letter_edit
from redrive.console.render import FRAGMENT
from redrive.console.snippets import snippets_of
from redrive.console.story import story_of
from redrive.console.visit import Visit, act, page
from redrive.core.errors import ConfigError, DeadLetterError
from redrive.core.life import LetterState
from redrive.core.stored import StoredLetter
from redrive.triage import audit, letters, masking, reporting

LONGEST_NOTE = 10_000
_LONGEST_NAME = 300
_HISTORY = 20
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@page("/letters/{letter_id}", "letter")
async def _show(visit: Visit) -> Response:
    stored = await letters.show(visit.desk, visit.part("letter_id"))
    shown = await run_in_threadpool(masking.masked, bounded(stored))
    return await _render(visit, shown, stored, view=visit.request.query_params.get("view", ""))


@act("/letters/{letter_id}/reveal", "letter_reveal", may="reveal")
async def _reveal(visit: Visit) -> Response:
    stored = await masking.reveal(visit.desk, visit.caller, visit.part("letter_id"))
    return await _render(visit, stored, stored, view=visit.form.get("view", ""), is_revealed=True)


@act("/letters/{letter_id}/payload", "letter_download", may="reveal")
async def _download(visit: Visit) -> Response:
    found = await letters.show(visit.desk, visit.part("letter_id"))
    if found.letter.payload is None:
        raise DeadLetterError(f"letter {found.letter.letter_id} keeps no payload")
    stored = await masking.reveal(visit.desk, visit.caller, found.letter.letter_id)
    name = _UNFIT.sub("_", stored.letter.letter_id)[:100]
    headers = {"Content-Disposition": f'attachment; filename="{name}.bin"'}
    return Response(stored.letter.payload, media_type="application/octet-stream", headers=headers)


@act("/letters/{letter_id}/note", "letter_note", may="note")
async def _note(visit: Visit) -> Response:
    text = text_in(visit.form, "text", most=LONGEST_NOTE)
    await letters.note(visit.desk, visit.part("letter_id"), text)
    return visit.go(_address(visit), said="The note is kept." if text else "The note is taken away.")


@act("/letters/{letter_id}/outcome", "letter_outcome", may="outcome")
async def _outcome(visit: Visit) -> Response:
    succeeded = {"true": True, "false": False}.get(visit.form.get("succeeded", ""))
    version = text_in(visit.form, "app_version")
    if succeeded is None:
        raise ConfigError("succeeded: expected whether it succeeded or failed")
    said = reporting.Report(succeeded=succeeded, generation=number_in(visit.form, "generation"), app_version=version)
    life = await reporting.report(visit.desk, visit.part("letter_id"), said)
    return visit.go(_address(visit), said=f"Told that it {'succeeded' if succeeded else 'failed'}: it is {life.state}.")


def _address(visit: Visit) -> str:
    return visit.url("letter", letter_id=visit.part("letter_id"))


def _unless_long(name: str, address: str) -> str:
    """An address, unless what it names is nothing, or longer than any name that a person gave."""
    return address if 0 < len(name) <= _LONGEST_NAME else ""


def _trace(visit: Visit, trace_id: str) -> str:
    """Where a trace is shown, if the settings say so."""
    pattern = visit.service.settings.trace_url
    return _unless_long(trace_id, pattern.replace("{trace_id}", quote(trace_id, safe=""))) if pattern else ""


async def _render(
    visit: Visit, shown: StoredLetter, stored: StoredLetter, *, view: str, is_revealed: bool = False
) -> Response:
    history = await audit.find(visit.desk, letter_id=stored.letter.letter_id)
    facts: dict[str, Any] = {
        "letter": shown.letter,
        "life": shown.life,
        "story": story_of(shown, history.rows),
        "can_be_sent": can_be_sent(stored),
        "can_be_discarded": stored.life.state in letters.UNSETTLED,
        "can_be_told": stored.life.generation > 0 and stored.life.state is LetterState.REDRIVING,
        "edits": len(stored.edits),
    }
    if FRAGMENT in visit.request.headers and not is_revealed:
        return visit.render("letter.html", **facts)
    seen = await run_in_threadpool(view_of, shown, original=stored, view=view)
    letter = stored.letter
    is_masked = not is_revealed and masks(shown, bounded(stored))
    request = visit.request
    snippets = snippets_of(
        shown if is_masked else stored,
        service=f"{request.url.scheme}://{request.url.netloc}",
        needs_token=request.app.state.guard.needs_token,
        is_hidden=is_masked,
    )
    return visit.render(
        "letter.html",
        **facts,
        seen=seen,
        queue_address=_unless_long(letter.queue, visit.url("letters", {"queue": letter.queue})),
        trace_address=_trace(visit, letter.trace_id or ""),
        incident_address=_unless_long(letter.fingerprint, visit.url("incident", incident_id=letter.fingerprint)),
        snippets=snippets,
        has_api=not visit.request.scope.get("root_path"),  # mounted elsewhere, nobody knows where it is
        note=shown.note,
        is_masked=is_masked,
        is_revealed=is_revealed,
        history=history.rows[:_HISTORY],
        has_more_history=history.after is not None or len(history.rows) > _HISTORY,
    )


routes = [*letter_edit.routes, _reveal, _download, _note, _outcome, _show]
