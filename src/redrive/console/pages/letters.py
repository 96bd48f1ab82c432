"""Letters: search, choose some or all that match, take them along."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response, StreamingResponse

from redrive.console.choice import Choice, address_of, choice_in, filter_in
from redrive.console.fields import after_in, listed
from redrive.console.filter_form import chips_of, form_of, with_zone
from redrive.console.letter_lines import LetterLine, line_of, seen_row
from redrive.console.visit import Visit, act, page
from redrive.console.when_died import Deaths, deaths_of
from redrive.core.errors import ConfigError
from redrive.core.life import LetterState
from redrive.core.stored import Count, LetterRow, Stats
from redrive.door.filters import LetterFilter
from redrive.triage import export, letters

ROWS = 50
PATIENCE = timedelta(milliseconds=50)  # with what no index answers, before the page says how far it has come
_QUICK = frozenset({"queue", "state", "error_type", "fingerprint"})  # what can be asked for every two seconds
_COUNTED = frozenset({"queue", "state"})  # what the counts of states are exact for


@page("/letters", "letters")
async def _show(visit: Visit) -> Response:
    asked = visit.request.query_params
    given = with_zone(asked)
    if given.multi_items() != asked.multi_items():
        return visit.go(visit.url("letters", _pairs(given.multi_items())))
    try:
        chosen = filter_in(given)
        facts = await _found(visit, chosen, after=after_in(given))
    except ConfigError as error:
        chosen = filter_in(ImmutableMultiDict())
        facts = {**_nothing(), "mistakes": error.mistakes}
    stats, of_queue = await _stats(visit, chosen.queue)
    names = {*address_of(chosen)}
    return visit.render(
        "letters.html",
        status=HTTPStatus.BAD_REQUEST if facts["mistakes"] else HTTPStatus.OK,
        **facts,
        form=form_of(given, stats),
        chips=chips_of(chosen),
        tabs=_tabs(chosen, of_queue if names <= _COUNTED else None),
        choice=Choice(filter=chosen, everything=chosen.is_empty).address(),
        total=stats.total,
        is_live="after" not in given and names <= _QUICK and not facts["mistakes"],
        is_first="after" not in given,
    )


@page("/letters/export", "letters_export")
async def _export(visit: Visit) -> Response:
    choice = choice_in(visit.request.query_params)
    return _download(export.masked_lines(visit.desk, choice.filter.query(), letter_ids=choice.letter_ids))


@act("/letters/export", "letters_export_whole", may="reveal")
async def _export_whole(visit: Visit) -> Response:
    choice = choice_in(visit.form)
    if choice.letter_ids:
        raise ConfigError("letters: expected a filter or all of them; unmasked, letters by id are taken one by one")
    return _download(await export.stream(visit.desk, choice.filter.query()))


def _download(lines: AsyncIterator[bytes]) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="letters.jsonl"'}
    return StreamingResponse(lines, media_type="application/jsonl", headers=headers)


async def _found(visit: Visit, chosen: LetterFilter, *, after: str | None) -> dict[str, Any]:
    query = chosen.query()
    found, count, deaths = await asyncio.gather(
        listed(letters.find(visit.desk, query, limit=ROWS, after=after, patience=PATIENCE)),
        letters.count(visit.desk, query, patience=PATIENCE),
        _deaths(visit, chosen),
    )
    older = None if found.after is None else visit.url("letters", {**address_of(chosen), "after": found.after})
    return {
        "mistakes": (),
        "lines": [_line(visit, row) for row in found.rows],
        "count": count,
        "older": older,
        "is_short": older is not None and len(found.rows) < ROWS,
        "deaths": deaths,
    }


def _nothing() -> dict[str, Any]:
    return {"lines": [], "count": Count(0), "older": None, "is_short": False, "deaths": None}


async def _deaths(visit: Visit, chosen: LetterFilter) -> Deaths | None:
    return await deaths_of(visit.desk, chosen, link=lambda hour: visit.url("letters", {**address_of(chosen), **hour}))


async def _stats(visit: Visit, queue: str | None) -> tuple[Stats, Stats]:
    every = await letters.stats(visit.desk)
    return every, every if queue is None else await letters.stats(visit.desk, queue)


def _line(visit: Visit, row: LetterRow) -> LetterLine:
    return line_of(seen_row(row), address=visit.url("letter", letter_id=row.letter_id))


def _tabs(chosen: LetterFilter, stats: Stats | None) -> Sequence[dict[str, Any]]:
    """A tab for each state and one for all, with counts where they are exact."""
    found = []
    for state in (None, *LetterState):
        wanted = [] if state is None else [state]
        number = None
        if stats is not None:
            number = stats.total if state is None else stats.by_state.get(state.value, 0)
        found.append(
            {
                "label": "any state" if state is None else state.value,
                "address": address_of(chosen.model_copy(update={"state": wanted})),
                "number": number,
                "is_here": chosen.state == wanted,
            }
        )
    return found


def _pairs(items: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    return {name: [value for key, value in items if key == name] for name, _ in items}


routes = [_export, _export_whole, _show]
