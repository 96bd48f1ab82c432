"""Redrives: plan one and see what it would do, begin it, look at it, pause, resume, cancel."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Literal, NamedTuple
from uuid import uuid4

from redrive.core.canary import draw, step_sizes
from redrive.core.errors import ConfigError, LetterNotFound, StateConflict
from redrive.core.life import LetterState
from redrive.core.redrive import ENDED, ItemStatus, Planned, Progress, Redrive, RedriveState, Target, target_of
from redrive.core.stored import Page
from redrive.core.verdict import verdict
from redrive.triage import remarks
from redrive.triage.aside import aside
from redrive.triage.desk import Desk
from redrive.triage.ending import mark
from redrive.triage.remarks import Brokers
from redrive.triage.selection import Preview, Selection, Wanted, kinds_of, of_kinds, recall

_ID_LENGTH = 12
_ID = rf"[0-9a-f]{{{_ID_LENGTH}}}"
REPORT_WITHIN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How letters are sent back.

    `canary`: how many of each queue and type of error go first, step by step. `rate`: messages per second. `to`: the
    lane of the group that failed, or the queue itself; None is the lane, and the queue where `target_queue` names
    another one. `confirm`: how success is known. Parked letters need `over_cap`, those without an answer `again`.
    Raises `ConfigError` with every mistake at once.
    """

    canary: Sequence[int] = ()
    rate: float | None = None
    to: Literal["lane", "queue"] | None = None
    target_queue: str | None = None
    confirm: Literal["reported", "quiet", "manual"] = "reported"
    report_within: timedelta = REPORT_WITHIN
    over_cap: bool = False
    again: bool = False

    def __post_init__(self) -> None:
        mistakes = []
        if any(size < 1 for size in self.canary):
            mistakes.append(f"canary: expected steps of 1 or more, such as 1,5,25, got {[*self.canary]}")
        if self.rate is not None and not self.rate > 0:
            mistakes.append(f"rate: expected more than 0 messages per second, got {self.rate!r}")
        if self.to not in (None, "lane", "queue"):
            mistakes.append(f"to: expected lane or queue, got {self.to!r}")
        if self.confirm not in ("reported", "quiet", "manual"):
            mistakes.append(f"confirm: expected reported, quiet or manual, got {self.confirm!r}")
        if not self.report_within:
            mistakes.append("report_within: expected more than zero")
        if mistakes:
            raise ConfigError(mistakes)

    @property
    def place(self) -> Literal["lane", "queue"]:
        """Where letters go."""
        return self.to or ("queue" if self.target_queue else "lane")

    @property
    def states(self) -> tuple[LetterState, ...]:
        """The states of letters that may be sent back on these terms."""
        parked = (LetterState.PARKED,) if self.over_cap else ()
        return (LetterState.OPEN, *parked, *((LetterState.REDRIVING,) if self.again else ()))


class Plan(NamedTuple):
    """What a redrive would do: nothing has happened yet. `remarks` are sentences that a person should read first.

    `asked` is what was selected, `selection` what of it may be sent on these terms, `steps` how many canaries go in
    each step. `redrive_id` is the redrive's if it is begun: who begins a plan twice begins it once. `token` names the
    plan: how many letters, a hash over them, their versions and the terms, and its redrive.
    """

    asked: Selection
    selection: Selection
    terms: Terms
    preview: Preview
    steps: tuple[int, ...]
    targets: Mapping[Target, int]
    remarks: Sequence[str]
    redrive_id: str
    token: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many letters each step sends, the last included."""
        return (*self.steps, len(self.selection.rows) - sum(self.steps))


async def plan(selection: Selection, terms: Terms, *, brokers: Brokers, redrive_id: str | None = None) -> Plan:
    """Freeze what a redrive would send, where to, and in how large steps; its id decides who goes first.

    A foreign letter may say that it is of a queue whose name none can have: it is left out. Raises `ConfigError` if
    the target queue has such a name.
    """
    draft = await aside(selection.rows, _draft, selection, terms, brokers, redrive_id or uuid4().hex[:_ID_LENGTH])
    return draft._replace(remarks=[*draft.remarks, *await remarks.about(draft.targets, brokers)])


def _draft(selection: Selection, terms: Terms, brokers: Brokers, redrive_id: str) -> Plan:
    """The plan, as far as nobody has to be asked: letters are counted by kind, once."""
    unsendable = selection.unsendable
    kept = [row for row in selection.rows if row.letter_id not in unsendable] if unsendable else selection.rows
    kinds = kinds_of(kept)
    goals = {kind: _target(Target(*kind.home), terms) for kind in kinds if kind.state in terms.states}
    targets = Counter[Target]()
    for kind, goal in goals.items():
        targets[goal] += kinds[kind]
    nowhere = {target for target in targets if _mistake_in(target, brokers)}
    if terms.target_queue and nowhere:
        raise ConfigError(_mistake_in(min(nowhere), brokers))
    going = {kind: kinds[kind] for kind, goal in goals.items() if goal not in nowhere}
    frozen = Selection(kept if len(going) == len(kinds) else of_kinds(kept, going), selection.words)
    said = [*remarks.unsendable(unsendable.values()), *remarks.left_out(kinds, states=terms.states)]
    said += [f"{targets.pop(target):,} left out: no queue can be named {target.queue}" for target in sorted(nowhere)]
    alike = Counter[tuple[str, str]]()
    for kind, number in going.items():
        alike[kind.queue, kind.error_type] += number
    return Plan(
        asked=selection,
        selection=frozen,
        terms=terms,
        preview=frozen.preview(going),
        steps=step_sizes(alike.values(), canary=terms.canary),
        targets=dict(targets.most_common()),
        remarks=said,
        redrive_id=redrive_id,
        token=f"{selection.token(repr(terms))}.{redrive_id}",
    )


async def begin(desk: Desk, wanted: Wanted, terms: Terms, token: str, *, brokers: Brokers) -> Redrive:
    """Begin what was previewed under this token, once: whoever asks again gets the redrive that has begun.

    Raises as `selection.recall`, `plan` and `create`.
    """
    shown, _, redrive_id = token.rpartition(".")
    if re.fullmatch(_ID, redrive_id) is None:
        raise ConfigError(f"preview: expected the token of a dry run, got {token!r}")
    try:
        return await desk.store.redrive(redrive_id)
    except LetterNotFound:
        selection = await recall(desk, wanted, shown, terms=repr(terms))
        return await create(desk, await plan(selection, terms, brokers=brokers, redrive_id=redrive_id))


async def create(desk: Desk, plan: Plan) -> Redrive:
    """Begin a redrive as planned; a redriver takes it up. Raises `StateConflict` for one of no letters."""
    rows, terms = plan.selection.rows, plan.terms
    if not rows:
        raise StateConflict("there is nothing to send back: no letter of this selection is in a state that allows it")
    items = await aside(rows, _drawn, plan)
    redrive = Redrive(
        redrive_id=plan.redrive_id,
        created_at=desk.clock.now(),
        by=desk.who,
        selection=plan.selection.words,
        total=len(rows),
        steps=plan.steps,
        rate=terms.rate,
        to=terms.place,
        target_queue=terms.target_queue,
        confirm=terms.confirm,
        report_within=terms.report_within,
        over_cap=terms.over_cap,
        again=terms.again,
        targets=tuple(plan.targets),
        failed_on=tuple(sorted({row.app_version for row in rows if row.app_version})),
    )
    act = desk.act("letters.redrive", selection=redrive.selection, count=len(rows), redrive_id=redrive.redrive_id)
    await desk.store.create(redrive, items, act=act)
    return redrive


def _drawn(plan: Plan) -> list[Planned]:
    """Its letters, each in its step: canaries are drawn by the id of the redrive."""
    rows, random = plan.selection.rows, Random(plan.redrive_id)  # noqa: S311 - canaries, not secrets
    drawn = draw([(row.queue, row.error_type) for row in rows], canary=plan.terms.canary, random=random)
    return [Planned(row.letter_id, row.life.version, step) for row, step in zip(rows, drawn.steps, strict=True)]


class Shown(NamedTuple):
    """A redrive, how far it is, and that in one sentence."""

    redrive: Redrive
    progress: Progress
    verdict: str


async def find(desk: Desk, *, limit: int = 50, after: str | None = None) -> Page[Redrive]:
    """A page of redrives, the latest first."""
    return await desk.store.redrives(limit=limit, after=after)


async def show(desk: Desk, redrive_id: str) -> Shown:
    """One redrive. Raises `LetterNotFound`."""
    redrive = await desk.store.redrive(redrive_id)
    progress = await desk.store.progress(redrive_id)
    return Shown(redrive, progress, verdict(redrive, progress))


async def pause(desk: Desk, redrive_id: str, *, why: str = "") -> Redrive:
    """Send nothing more until it is resumed; what is out stays out. Raises `LetterNotFound`, `StateConflict`."""
    return await _mark(desk, redrive_id, RedriveState.PAUSED, why or f"by {desk.who}")


async def resume(desk: Desk, redrive_id: str) -> Redrive:
    """Go on, also past canaries that failed in another way or were not heard of: they have been seen now.

    Raises `LetterNotFound`, `StateConflict` for one that has ended.
    """
    progress = await desk.store.progress(redrive_id)
    accepted = progress.count(ItemStatus.FAILED_OTHERWISE, ItemStatus.UNCONFIRMED)
    return await _mark(desk, redrive_id, RedriveState.RUNNING, "", accepted=accepted)


async def cancel(desk: Desk, redrive_id: str, *, why: str = "") -> Redrive:
    """End it: what was not sent stays untouched, what is out is still heard. Raises as `resume`."""
    return await _mark(desk, redrive_id, RedriveState.CANCELLED, why or f"by {desk.who}")


async def _mark(desk: Desk, redrive_id: str, state: RedriveState, why: str, *, accepted: int | None = None) -> Redrive:
    redrive = await desk.store.redrive(redrive_id)
    if redrive.state is state:
        return redrive
    if redrive.state in ENDED:
        raise StateConflict(f"redrive {redrive_id} has ended: {redrive.state}")
    act = desk.act(f"redrives.{_VERBS[state]}", selection=f"redrive={redrive_id}")
    return await mark(desk.store, redrive, state, why=why, act=act, accepted=accepted, sink=desk.sink)


_VERBS = {RedriveState.PAUSED: "pause", RedriveState.RUNNING: "resume", RedriveState.CANCELLED: "cancel"}


def _target(came_from: Target, terms: Terms) -> Target:
    return target_of(came_from, to=terms.place, target_queue=terms.target_queue)


def _mistake_in(target: Target, brokers: Brokers) -> str:
    """Why no queue can have this name; nobody has to answer for that."""
    try:
        if target.broker in brokers:
            brokers[target.broker].dead_letters(target.queue)
    except ConfigError as error:
        return str(error)
    return ""
