"""What is known of a message that did not simply succeed. One that did has no story."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from redrive.brokers.nats.heading import from_micros, to_micros
from redrive.core.attempt import Attempt, append_attempt
from redrive.core.outcome import Settlement


class State(StrEnum):
    """Where a message with a story is. All of them are pending for the server."""

    OUT = "out"  # in the hands of a worker, among others
    RETRY = "retry"  # waits until it is due
    RELEASED = "released"  # handed back: was not run, or not to its end
    SUSPECT = "suspect"  # may have been running when its worker died
    ALONE = "alone"  # a suspect that is being run
    HELD = "held"  # given up, and there is no DLQ


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One message of one group. `reply` is the subject on which it can be answered, by whomever."""

    state: State
    reply: str
    failures: int = 0
    crashes: int = 0
    trail: bytes = b""
    first_attempt_at: datetime | None = None
    due_at: datetime | None = None
    owner: str = ""
    process: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def failed(self, item: Settlement, *, due_at: datetime) -> "Story":
        """The same after one more failed attempt."""
        began = self.first_attempt_at or (item.attempt.started_at if item.attempt else None)
        return replace(
            self.parked(State.RETRY),
            failures=self.failures + 1,
            trail=item.trail or self.trail,
            first_attempt_at=began,
            due_at=due_at,
        )

    def is_in_hand(self, now: datetime) -> bool:
        """Whether somebody has it. Of one among others only the server knows when its lease ends."""
        if self.state is State.ALONE:
            return self.until is not None and now < self.until
        return self.state is State.OUT

    def parked(self, state: State) -> "Story":
        """The same in nobody's hands."""
        return replace(self, state=state, owner="", process="", since=None, until=None, due_at=None)

    def crashed(self, *, why: str, generation: int) -> "Story":
        """The same after its worker died while it ran alone."""
        since = self.since or from_micros(0)
        attempt = Attempt(
            number=self.failures + self.crashes + 1,
            started_at=since,
            ended_at=max(since, self.until or since),
            error_type="WorkerCrash",
            error_message=why,
            crash=True,
            node=self.owner,
            generation=generation,
        )
        return replace(
            self,
            crashes=self.crashes + 1,
            trail=append_attempt(self.trail, attempt),
            first_attempt_at=self.first_attempt_at or since,
        )

    def dump(self) -> bytes:
        """As it is kept: a line of JSON, and the trail."""
        told: dict[str, Any] = {
            "state": self.state,
            "reply": self.reply,
            "failures": self.failures,
            "crashes": self.crashes,
            "first": _micros(self.first_attempt_at),
            "due": _micros(self.due_at),
            "owner": self.owner,
            "process": self.process,
            "since": _micros(self.since),
            "until": _micros(self.until),
        }
        line = json.dumps({name: value for name, value in told.items() if value}, separators=(",", ":"))
        return line.encode() + b"\n" + self.trail

    @classmethod
    def load(cls, raw: bytes) -> "Story":
        """What `dump` wrote."""
        line, _, trail = raw.partition(b"\n")
        told = json.loads(line)
        return cls(
            state=State(told["state"]),
            reply=told["reply"],
            failures=told.get("failures", 0),
            crashes=told.get("crashes", 0),
            trail=trail,
            first_attempt_at=_instant(told.get("first")),
            due_at=_instant(told.get("due")),
            owner=told.get("owner", ""),
            process=told.get("process", ""),
            since=_instant(told.get("since")),
            until=_instant(told.get("until")),
        )


def _micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def _instant(number: int | None) -> datetime | None:
    return None if number is None else from_micros(number)
