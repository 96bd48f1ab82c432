"""Redrives: those there were, and a new one, previewed until it is what is meant."""

from collections.abc import Sequence
from http import HTTPStatus

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response

from redrive.console.breakdown import breakdown, parts_of
from redrive.console.choice import MOST_LETTERS, choice_in
from redrive.console.fields import after_in, listed
from redrive.console.terms_form import ALL_AT_ONCE, PRESET, TermsForm, by_field
from redrive.console.visit import Visit, act, page
from redrive.console.words import several
from redrive.core.errors import ConfigError, StateConflict
from redrive.core.redrive import RedriveState, Target
from redrive.triage import redrives as verbs
from redrive.triage.masking import masked_operation
from redrive.triage.redrives import Plan
from redrive.triage.selection import select

_REMARKS = 20
_PRESETS = {PRESET: PRESET, "only 1": "1", "all at once": ALL_AT_ONCE}
_UNDER_WAY = 5  # redrives of a list of which it is said how far they are
_UNFINISHED = (RedriveState.RUNNING, RedriveState.PAUSED)


@page("/redrives", "redrives")
async def _list(visit: Visit) -> Response:
    given = visit.request.query_params
    found = await listed(verbs.find(visit.desk, after=after_in(given)))
    under_way = [row.redrive_id for row in found.rows if row.state in _UNFINISHED][:_UNDER_WAY]
    return visit.render(
        "redrives.html",
        rows=[masked_operation(row, visit.caller) for row in found.rows],
        verdicts={one: (await verbs.show(visit.desk, one)).verdict for one in under_way},
        older=visit.url("redrives", {"after": found.after}) if found.after else "",
        is_first=not given.get("after"),
    )


@page("/redrives/new", "redrive_new", may="redrive")
async def _new(visit: Visit) -> Response:
    return await _preview(visit, visit.request.query_params)


@act("/redrives", "redrive_create", may="redrive")
async def _create(visit: Visit) -> Response:
    form = TermsForm.of(visit.form)
    try:
        terms = form.terms()
        wanted = choice_in(visit.form).wanted(terms.states)
        token = visit.form.get("preview", "")
        redrive = await verbs.begin(visit.desk, wanted, terms, token, brokers=visit.service.brokers)
    except StateConflict as error:
        return await _preview(visit, visit.form, said=str(error), status=HTTPStatus.CONFLICT)
    except ConfigError as error:
        return await _preview(visit, visit.form, mistakes=error.mistakes, status=HTTPStatus.BAD_REQUEST)
    said = f"Begun: {several(redrive.total, 'letter')} in {several(len(redrive.steps) + 1, 'step')}."
    return visit.go(visit.url("redrive", redrive_id=redrive.redrive_id), said=said)


async def _preview(
    visit: Visit,
    given: ImmutableMultiDict[str, str],
    *,
    said: str = "",
    mistakes: Sequence[str] = (),
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    """What would be sent, and the form; with mistakes in it, the form alone. Raises `ConfigError` for the letters."""
    choice = choice_in(given)
    form = TermsForm.of(given)
    plan = None
    try:
        terms = form.terms()
        selection = await select(visit.desk, choice.wanted(terms.states))
        plan = await verbs.plan(selection, terms, brokers=visit.service.brokers)
    except ConfigError as error:
        mistakes, status = [*mistakes, *error.mistakes], max(status, HTTPStatus.BAD_REQUEST)
    return visit.render(
        "redrive_new.html",
        status=status,
        choice=choice.address(),
        form=form,
        presets=[
            (words, visit.url("redrive_new", {**choice.address(), **form.address(), "canary": steps}))
            for words, steps in _PRESETS.items()
        ],
        mistakes=by_field(tuple(dict.fromkeys(mistakes))),
        said_about=said,
        plan=plan,
        parts=breakdown(plan.preview) if plan else {},
        targets=parts_of({_where(target): count for target, count in plan.targets.items()}) if plan else None,
        remarks=_remarks(plan)[:_REMARKS] if plan else [],
    )


def _where(target: Target) -> str:
    """Where letters go, in words."""
    reader = f"only to {target.group}" if target.group else "every group of it"
    return f"{target.queue}, {reader}"


def _remarks(plan: Plan) -> list[str]:
    remarks = [*plan.remarks]
    if len(plan.asked.rows) == MOST_LETTERS:
        remarks.append(f"only the oldest {MOST_LETTERS:,} that match: what is left needs another redrive")
    return remarks


routes = [_list, _new, _create]
