"""`redrive letters redrive`: send letters back, and hear what becomes of them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from redrive.cli.anywhere import BOTH, AnywhereBoth, letters_named, open_clerk
from redrive.cli.bulk import preview_of
from redrive.cli.clerk import Clerk, Proposed
from redrive.cli.filters import EVERY, UNSURE, Choice, Filter, as_length, as_rate, as_steps, refuse_confusion
from redrive.cli.letters import LetterId
from redrive.cli.output import Exit, Fact, complain
from redrive.cli.sheet import Part

if TYPE_CHECKING:
    from redrive.triage.redrives import Terms
    from redrive.triage.selection import Wanted


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Manner:
    """How letters are sent back."""

    canary: Annotated[
        str | None, Parameter(help="So many of each kind first, each step only if all before went well: 1,5,25.")
    ] = None
    rate: Annotated[str | None, Parameter(help="At most so many, such as 200/s; no limit unless told.")] = None
    to: Annotated[
        Literal["lane", "queue"] | None,
        Parameter(help="Only to the group that failed (lane), or to the queue, where every group sees it."),
    ] = None
    queue_to: Annotated[str | None, Parameter(help="Send them to this queue instead of their own.")] = None
    confirm: Annotated[
        Literal["reported", "quiet", "manual"],
        Parameter(help="How success is known: by reports; by quiet, for consumers that cannot report; or by people."),
    ] = "reported"
    within: Annotated[str, Parameter(help="How long to wait for a letter's answer; 5m unless told.")] = "5m"
    over_cap: Annotated[bool, Parameter(help="Parked letters too, which died as often as the cap allows.")] = False
    again: Annotated[bool, Parameter(help="Letters too that were sent before and never heard of.")] = False

    def terms(self) -> "Terms":
        """The same, read. Raises `ConfigError`."""
        from redrive.triage.redrives import Terms

        return Terms(
            canary=as_steps("--canary", self.canary),
            rate=as_rate("--rate", self.rate),
            to=self.to,
            target_queue=self.queue_to,
            confirm=self.confirm,
            report_within=as_length("--within", self.within),
            over_cap=self.over_cap,
            again=self.again,
        )


USUAL = Manner()


async def redrive(
    *letter_ids: LetterId,
    chosen: Filter = EVERY,
    choice: Choice = UNSURE,
    manner: Manner = USUAL,
    at: AnywhereBoth = BOTH,
) -> Exit:
    """Send letters back, and hear what becomes of them. Many are first shown; --yes sends them.

    Runs here, in the foreground, step by step, until the answer is known; what is interrupted goes on with
    `redrive redrives resume`. With --url the service carries it out, and goes on if nobody looks any more. Exits
    with 0 only if no letter failed, was skipped or went unheard of.
    """
    from redrive.cli.redriving import carry_out

    refuse_confusion(letter_ids, chosen, choice)
    terms = manner.terms()
    async with open_clerk(at) as clerk:
        plan = await clerk.redrives.propose(await _wanted(clerk, letter_ids, chosen, choice, terms), terms)
        if not (choice.yes or letter_ids):
            preview_of(plan.preview, "redrive", as_json=at.json, more=_more(plan), facts=_facts(plan))
            return Exit.OK
        complain(plan.remarks)
        return await carry_out(clerk.redrives, await plan.begin(), as_json=at.json)


async def _wanted(
    clerk: Clerk, letter_ids: tuple[str, ...], chosen: Filter, choice: Choice, terms: "Terms"
) -> "Wanted":
    from redrive.triage.selection import Wanted

    return Wanted(
        query=chosen.query(now=datetime.now(UTC)),
        letter_ids=await letters_named(clerk.letters, letter_ids),
        everything=choice.everything or chosen.any_state,
        states=terms.states,
    )


def _more(plan: Proposed) -> list[Part]:
    sizes = [f"{size:,}" for size in plan.sizes]
    where = [
        (f"{count:,}", f"{target.queue}, {f'only to {target.group}' if target.group else 'every group of it'}")
        for target, count in plan.targets.items()
    ]
    return [
        Part("where to", where),
        Part("in steps", [("", ", then ".join(sizes))] if len(sizes) > 1 else ()),
        Part("beware", [("", remark) for remark in plan.remarks]),
    ]


def _facts(plan: Proposed) -> Fact:
    targets = [{**target._asdict(), "letters": count} for target, count in plan.targets.items()]
    return {"steps": plan.sizes, "targets": targets, "remarks": plan.remarks}
