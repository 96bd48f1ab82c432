"""Discard letters: look at what that would be, then do exactly that."""

from collections import Counter
from http import HTTPStatus

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response

from redrive.console.breakdown import breakdown
from redrive.console.choice import MOST_LETTERS, choice_in
from redrive.console.fields import WHY, text_in
from redrive.console.visit import Visit, act, page
from redrive.console.words import several
from redrive.core.errors import StateConflict
from redrive.core.life import LetterState
from redrive.triage import letters
from redrive.triage.aside import aside
from redrive.triage.selection import Preview, Selection, kinds_of, recall, select


@page("/discard", "discard_new", may="discard")
async def _new(visit: Visit) -> Response:
    return await _preview(visit, visit.request.query_params)


@act("/discard", "discard", may="discard")
async def _discard(visit: Visit) -> Response:
    choice = choice_in(visit.form)
    why = text_in(visit.form, "why")
    try:
        asked = await recall(visit.desk, choice.wanted(letters.UNSETTLED), visit.form.get("preview", ""))
    except StateConflict as error:
        return await _preview(visit, visit.form, said=str(error), status=HTTPStatus.CONFLICT)
    done = await letters.discard(visit.desk, _unsettled(asked), why=why)
    said = f"Discarded {several(done.discarded, 'letter')}."
    if done.changed:
        said += f" {done.changed:,} had changed meanwhile and were left alone."
    if len(choice.letter_ids) == 1:
        return visit.go(visit.url("letter", letter_id=choice.letter_ids[0]), said=said)
    shown = {} if choice.letter_ids or choice.everything else choice.address()
    return visit.go(visit.url("letters", {**shown, "state": LetterState.DISCARDED.value}), said=said)


async def _preview(
    visit: Visit, given: ImmutableMultiDict[str, str], *, said: str = "", status: HTTPStatus = HTTPStatus.OK
) -> Response:
    choice = choice_in(given)
    asked = await select(visit.desk, choice.wanted(letters.UNSETTLED))
    preview, left, token = await aside(asked.rows, _shown, asked)
    return visit.render(
        "discard.html",
        status=status,
        choice=choice.address(),
        preview=preview,
        token=token,
        parts=breakdown(preview),
        left=left,
        is_full=len(asked.rows) == MOST_LETTERS,
        most=MOST_LETTERS,
        why=given.get("why", "")[:WHY],
        longest_why=WHY,
        said_about=said,
    )


def _shown(asked: Selection) -> tuple[Preview, Counter[str], str]:
    """What would be discarded, how many stay in which state, and the name of the selection."""
    kinds = kinds_of(asked.rows)
    going = {kind: number for kind, number in kinds.items() if kind.state in letters.UNSETTLED}
    left = Counter[str]()
    for kind, number in kinds.items():
        if kind not in going:
            left[kind.state.value] += number
    return _unsettled(asked).preview(going), left, asked.token()


def _unsettled(asked: Selection) -> Selection:
    """Those that can be discarded: what is out may still succeed, and what is settled is no trouble."""
    return Selection([row for row in asked.rows if row.life.state in letters.UNSETTLED], asked.words)


routes = [_new, _discard]
