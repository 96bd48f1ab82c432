"""Redrives as the API says them: what may be asked for, and what is answered."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError
from redrive.core.query import Query
from redrive.core.redrive import Redrive
from redrive.door.filters import A_NUMBER, NO_NUL, Length, LetterFilter, Word
from redrive.triage import incidents
from redrive.triage.desk import Desk
from redrive.triage.redrives import Plan, Shown, Terms
from redrive.triage.selection import Wanted

MOST_LETTERS = 100_000
MOST_IDS = 1000
MOST_STEPS = 20


class RedriveOrder(BaseModel):
    """Which letters to send back, and how.

    Letters are named in one way: by `filter`, `letter_ids`, `incident_id` or `all`. A dry run, which is what happens
    unless `dry_run` is false, answers with a `preview`; given back, it begins a redrive of exactly the letters that
    were previewed, on the same terms. Only letters named by id need none.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"filter": {"queue": "orders", "error_type": "KeyError"}, "canary": [1, 5, 25], "rate": 200},
                {
                    "filter": {"queue": "orders", "error_type": "KeyError"},
                    "canary": [1, 5, 25],
                    "rate": 200,
                    "dry_run": False,
                    "preview": "1000.51234.0f343b0931126a20f133d67c2b018a3b.5f0c2a91d7e4",
                },
            ]
        },
    )

    filter: LetterFilter | None = None
    letter_ids: list[Word] = Field([], max_length=MOST_IDS)
    incident_id: Word | None = None
    all: StrictBool = Field(default=False, description="Every letter that may be sent back.")

    canary: list[Annotated[int, Field(ge=1, le=MOST_LETTERS), A_NUMBER]] = Field(
        [], max_length=MOST_STEPS, description="How many of each queue and type of error go first, step by step."
    )
    rate: float | None = Field(None, strict=True, gt=0, le=1e6, allow_inf_nan=False, description="Messages per second.")
    to: Literal["lane", "queue"] | None = Field(
        None, description="Only to the group that failed, or to the queue, where every group sees them."
    )
    target_queue: Word | None = Field(None, description="Another queue than their own.")
    confirm: Literal["reported", "quiet", "manual"] = Field("reported", description="How success is known.")
    report_within: Length = Field("5m", description="How long an answer may take: seconds, or as in 5m.")
    over_cap: StrictBool = Field(default=False, description="Parked letters too.")
    again: StrictBool = Field(default=False, description="Letters too that are out and were not heard of.")

    dry_run: StrictBool = Field(default=True, description="Only say what would happen.")
    preview: str | None = Field(None, max_length=80, pattern=NO_NUL, description="What the dry run answered.")

    def terms(self) -> Terms:
        """How. Raises `ConfigError`."""
        try:
            report_within = as_duration(self.report_within)
        except ValueError as error:
            raise ConfigError(f"report_within: {error}") from error
        return Terms(
            canary=tuple(self.canary),
            rate=self.rate,
            to=self.to,
            target_queue=self.target_queue,
            confirm=self.confirm,
            report_within=report_within,
            over_cap=self.over_cap,
            again=self.again,
        )

    async def wanted(self, desk: Desk, terms: Terms) -> Wanted:
        """Which. Raises `ConfigError`, and `LetterNotFound` for an incident that is none."""
        ways = [self.filter is not None, bool(self.letter_ids), self.incident_id is not None, self.all]
        if sum(ways) != 1:
            raise ConfigError("filter: expected one of filter, letter_ids, incident_id or all, and only one")
        if self.filter is not None and self.filter.is_empty:
            raise ConfigError("filter: expected at least one condition; for every letter say all")
        if self.incident_id is not None:
            query = await incidents.query_of(desk, self.incident_id)
        else:
            query = self.filter.query() if self.filter is not None else Query()
        return Wanted(
            query=query,
            letter_ids=self.letter_ids,
            everything=self.all,
            states=terms.states,
            limit=MOST_LETTERS,
        )


class Goal(BaseModel):
    """Where letters go: a group's lane, or without a group the queue itself."""

    model_config = ConfigDict(from_attributes=True)

    broker: str
    queue: str
    group: str


class CountedGoal(Goal):
    """The same, and how many go there."""

    letters: int


class Previewed(BaseModel):
    """What would be sent back. Nothing has happened."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "dry_run": True,
                "preview": "1000.51234.0f343b0931126a20f133d67c2b018a3b.5f0c2a91d7e4",
                "selection": "queue=orders, error_type=KeyError, state=open",
                "total": 1000,
                "by_queue": {"orders": 1000},
                "by_error_type": {"KeyError": 1000},
                "by_state": {"open": 1000},
                "oldest_at": "2026-01-30T22:14:07Z",
                "newest_at": "2026-01-31T08:00:00Z",
                "steps": [1, 5, 25, 969],
                "targets": [{"broker": "redis", "queue": "orders", "group": "shop", "letters": 1000}],
                "remarks": [],
            }
        }
    )

    dry_run: Literal[True] = True
    preview: str = Field(description="Names exactly these letters in their versions, on these terms.")
    selection: str
    total: int
    by_queue: dict[str, int]
    by_error_type: dict[str, int]
    by_state: dict[str, int]
    oldest_at: datetime | None
    newest_at: datetime | None
    steps: list[int] = Field(description="How many letters each step sends.")
    targets: list[CountedGoal]
    remarks: list[str] = Field(description="What a person should know first.")


_VERDICT = "Sent 1, it succeeded on version 4f2c; sent 5, then 25, then 969: 1,000 resolved, 0 unconfirmed"
_FACTS: dict[str, Any] = {
    "redrive_id": "3f1c09ab52de",
    "created_at": "2026-01-31T09:00:00Z",
    "by": "sam",
    "selection": "queue=orders, error_type=KeyError, state=open",
    "total": 1000,
    "steps": [1, 5, 25],
    "rate": 200.0,
    "to": "lane",
    "target_queue": None,
    "confirm": "reported",
    "report_within_seconds": 300.0,
    "over_cap": False,
    "again": False,
    "targets": [{"broker": "redis", "queue": "orders", "group": "shop"}],
    "failed_on": ["4f2b"],
    "accepted": 0,
    "state": "running",
    "why": "",
    "ended_at": None,
}


class RedriveFacts(BaseModel):
    """The record of sending letters back."""

    model_config = ConfigDict(json_schema_extra={"example": _FACTS})

    redrive_id: str
    created_at: datetime
    by: str
    selection: str
    total: int
    steps: list[int] = Field(description="The sizes of the canary steps; the rest is the last step.")
    rate: float | None
    to: str
    target_queue: str | None
    confirm: str
    report_within_seconds: float
    over_cap: bool
    again: bool
    targets: list[Goal]
    failed_on: list[str] = Field(description="The app's versions that its letters died on.")
    accepted: int
    state: str = Field(description="running, paused, stopped, cancelled or done.")
    why: str
    ended_at: datetime | None


class RedriveProgress(RedriveFacts):
    """The same, how far each step is, and the answer in words."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                **_FACTS,
                "state": "done",
                "ended_at": "2026-01-31T09:01:10Z",
                "progress": [{"succeeded": 1}, {"succeeded": 5}, {"succeeded": 25}, {"succeeded": 969}],
                "versions": ["4f2c"],
                "verdict": _VERDICT,
                "waiting": "",
            }
        }
    )

    progress: list[dict[str, int]] = Field(description="For each step: letters by status.")
    versions: list[str] = Field(description="The app's versions on which letters succeeded.")
    verdict: str
    waiting: str = Field(description="Why nothing happens just now; empty if it does.")


class Why(BaseModel):
    """What the next person should know."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"why": "the bank is down again"}})

    why: str = Field(default="", max_length=500, pattern=NO_NUL)


def previewed(plan: Plan) -> Previewed:
    """What a plan would do."""
    preview = plan.preview
    remarks = [*plan.remarks]
    if len(plan.asked.rows) == MOST_LETTERS:
        remarks.append(f"only the oldest {MOST_LETTERS:,} that match: what is left needs another redrive")
    return Previewed(
        preview=plan.token,
        selection=preview.words,
        total=preview.count,
        by_queue=dict(preview.by_queue),
        by_error_type=dict(preview.by_error_type),
        by_state=dict(preview.by_state),
        oldest_at=preview.oldest_at,
        newest_at=preview.newest_at,
        steps=[*plan.sizes],
        targets=[CountedGoal(**target._asdict(), letters=count) for target, count in plan.targets.items()],
        remarks=remarks,
    )


def facts_of(redrive: Redrive) -> RedriveFacts:
    """The record of a redrive."""
    return RedriveFacts.model_validate(_facts(redrive))


def progress_of(shown: Shown, *, waiting: str) -> RedriveProgress:
    """A redrive, how far it is, and why it waits."""
    steps = [{status.value: number for status, number in step.items() if number} for step in shown.progress.steps]
    said = {"progress": steps, "versions": shown.progress.versions, "verdict": shown.verdict, "waiting": waiting}
    return RedriveProgress.model_validate({**_facts(shown.redrive), **said})


def _facts(redrive: Redrive) -> dict[str, Any]:
    same = {name: getattr(redrive, name) for name in RedriveFacts.model_fields if name != "report_within_seconds"}
    return {
        **same,
        "state": redrive.state.value,
        "report_within_seconds": redrive.report_within.total_seconds(),
        "targets": [Goal.model_validate(target) for target in redrive.targets],
    }
