"""Purge: remove old letters for good. What would go is counted first, and what is counted is what goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response

from redrive.console.choice import address_of, filter_in
from redrive.console.visit import Visit, act, page
from redrive.console.words import counted, several
from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError, StateConflict
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.stored import Count
from redrive.door.filters import LetterFilter
from redrive.triage import letters
from redrive.triage.aside import aside
from redrive.triage.selection import Selection, Wanted, in_words, select

STATES = tuple(state for state in LetterState if state is not LetterState.REDRIVING)
"""The states of letters that may go: what is out is kept."""

PATIENCE = timedelta(milliseconds=50)  # with what no index counts
SEEN = 4_000  # letters of which it is noticed that they are others, or have changed


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be removed: letters that match and failed before an instant, and how many they are.

    `token` is what the form carries, to be compared when it is sent: it names the count, if that is exact, and the
    first letters in their versions.
    """

    before: datetime
    count: Count
    words: str
    token: str


@page("/settings/purge", "purge_new", may="purge")
async def _preview(visit: Visit) -> Response:
    asked = visit.request.query_params
    older_than = asked.get("older_than", "").strip()
    if not asked:
        return _form(visit, {}, older_than="")
    try:
        chosen = filter_in(asked)
        found = await _found(visit, chosen, before=visit.now - _age(older_than, chosen))
    except ConfigError as error:
        typed = {"queue": asked.get("queue", ""), "state": asked.getlist("state")}
        return _form(visit, typed, older_than=older_than, mistakes=error.mistakes)
    return _form(visit, address_of(chosen), older_than=older_than, preview=found)


@act("/settings/purge", "purge", may="purge")
async def _purge(visit: Visit) -> Response:
    chosen, before = filter_in(visit.form), _before(visit.form)
    found = await _found(visit, chosen, before=before)
    if found.token != visit.form.get("preview"):
        raise StateConflict(f"this is not what was previewed: {counted(found.count)} match now; look again")
    done = await letters.purge(visit.desk, _query(chosen, before))
    return visit.go(visit.url("settings"), said=f"{several(done.count.number, 'letter')} removed for good.")


async def _found(visit: Visit, chosen: LetterFilter, *, before: datetime) -> Preview:
    query = _query(chosen, before)
    count = await letters.count(visit.desk, query, patience=PATIENCE)
    seen = await select(visit.desk, Wanted(query=query, limit=SEEN)) if count.number else Selection((), "")
    named = await aside(seen.rows, replace(seen, mark="").token, "" if count.capped else str(count.number))
    return Preview(before, count, in_words(query), named)


def _query(chosen: LetterFilter, before: datetime) -> Query:
    """The letters that match, failed before then and may go. Raises `ConfigError` if none may."""
    query = chosen.query()
    states = tuple(state for state in query.states or STATES if state in STATES)
    if not states:
        raise ConfigError("state: letters that are redriving are out, and kept; name another state")
    return replace(query, to_at=before if query.to_at is None else min(before, query.to_at), states=states)


def _age(older_than: str, chosen: LetterFilter) -> timedelta:
    try:
        age = as_duration(older_than)
    except ValueError as error:
        raise ConfigError(f"older than: {error}") from error
    if not age and chosen.is_empty:
        raise ConfigError("older than: expected more than zero where nothing else says which letters")
    return age


def _before(form: ImmutableMultiDict[str, str]) -> datetime:
    try:
        before = datetime.fromisoformat(form.get("before", ""))
    except ValueError:
        before = None
    if before is None or before.tzinfo is None:
        raise ConfigError("before: expected the instant of a preview")
    return before


def _form(
    visit: Visit,
    chosen: Mapping[str, Any],
    *,
    older_than: str,
    preview: Preview | None = None,
    mistakes: Sequence[str] = (),
) -> Response:
    return visit.render(
        "purge.html",
        status=HTTPStatus.BAD_REQUEST if mistakes else HTTPStatus.OK,
        chosen=chosen,
        states=STATES,
        older_than=older_than,
        preview=preview,
        mistakes=mistakes,
    )


routes = [_preview, _purge]
