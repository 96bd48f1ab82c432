"""The bench on which a store is tried: what the adapter brings, and the verbs of the scenarios."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.core.attempt import Attempt
from redrive.core.audit import Act
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.life import LetterState
from redrive.core.ports.store import Store
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.redrive import ItemStatus, Planned, Redrive, RedriveOutcome
from redrive.core.stored import Claimed, Edit

AT = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
OPEN, REDRIVING, RESOLVED = LetterState.OPEN, LetterState.REDRIVING, LetterState.RESOLVED
DISCARDED, PARKED = LetterState.DISCARDED, LetterState.PARKED


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUnderTest:
    """What an adapter brings: an empty store, and how to open the same data as another process would."""

    store: Store
    reopen: Callable[[], Awaitable[Store]]


@dataclass(frozen=True, slots=True)
class Bench:
    """One empty store."""

    under_test: StoreUnderTest

    @property
    def store(self) -> Store:
        """The store."""
        return self.under_test.store

    async def dead(self, *names: str, generation: int = 0, **changes: Any) -> list[DeadLetter]:
        """Letters of these names, collected."""
        letters = [letter(name, generation=generation, **changes) for name in names]
        await self.store.collect(letters)
        return letters

    async def state(self, name: str) -> tuple[LetterState, int]:
        """State and generation of a letter."""
        life = (await self.store.get(name)).life
        return life.state, life.generation

    async def edit(self, name: str, edit: Edit) -> int:
        """Edit a letter as it is now."""
        version = (await self.store.get(name)).life.version
        return await self.store.edit(name, edit, version=version, act=an_act("letters.edit"))

    async def names(self, query: Query | None = None, *, limit: int = 50) -> list[str]:
        """The letters that a query finds, page by page."""
        found: list[str] = []
        after: str | None = None
        while True:
            page = await self.store.find(query or Query(), limit=limit, after=after)
            found.extend(row.letter_id for row in page.rows)
            after = page.after
            if after is None:
                return found

    async def plan(self, *names: str, redrive_id: str = "r1", **changes: Any) -> Redrive:
        """A redrive of these letters as they are now; `steps` as given, each letter in its step."""
        redrive = a_redrive(redrive_id, total=len(names), **changes)
        ends = [sum(redrive.steps[: step + 1]) for step in range(len(redrive.steps))]
        items = [
            Planned(name, (await self.store.get(name)).life.version, sum(place >= end for end in ends))
            for place, name in enumerate(names)
        ]
        await self.store.create(redrive, items, act=an_act("letters.redrive"))
        return redrive

    async def claim(self, redrive_id: str = "r1", *, step: int = 0, limit: int = 100) -> Sequence[Claimed]:
        """Claim letters of a step."""
        return await self.store.claim(redrive_id, step=step, limit=limit)

    async def send(self, redrive_id: str = "r1", *, step: int = 0, at: datetime = AT) -> Sequence[Claimed]:
        """Claim the letters of a step, and record them as sent."""
        claimed = await self.claim(redrive_id, step=step)
        await self.store.sent(redrive_id, {one.letter_id: f"m-{one.letter_id}" for one in claimed}, at=at)
        return claimed

    async def counts(self, redrive_id: str = "r1") -> list[dict[ItemStatus, int]]:
        """Items by step and status."""
        return [*(await self.store.progress(redrive_id)).steps]


class Suite:
    """Scenarios on a bench. The adapter's test module brings the fixture `store_under_test`."""

    @pytest.fixture
    def bench(self, store_under_test: StoreUnderTest) -> Bench:
        """An empty store."""
        return Bench(store_under_test)


def letter(name: str, *, generation: int = 0, **changes: Any) -> DeadLetter:
    """A letter that says most things."""
    payload = changes.pop("payload", f'{{"order": "{name}"}}'.encode("utf-8", "surrogatepass"))
    started_at = AT + timedelta(minutes=generation)
    attempt = Attempt(1, started_at, started_at, "ValueError", "no", generation=generation)
    values: dict[str, Any] = {
        "letter_id": name,
        "generation": generation,
        "broker": "sqlite",
        "queue": "orders",
        "group": "shop",
        "original_message_id": f"m-{name}",
        "payload_sha256": payload_hash(payload or b""),
        "reason": Reason.ATTEMPTS_EXHAUSTED,
        "error_type": "ValueError",
        "error_message": "no",
        "fingerprint": "f1",
        "attempts": (attempt,),
        "retry_count": 1,
        "failed_at": started_at,
    }
    return DeadLetter(payload=payload, **(values | changes))


def an_outcome(name: str, generation: int, *, succeeded: bool = True, **changes: Any) -> RedriveOutcome:
    """What became of a redriven message."""
    values: dict[str, Any] = {"queue": "orders", "group": "shop", "message_id": f"m-{name}", "app_version": "v2"}
    return RedriveOutcome(name, generation, succeeded, **({"reported_at": AT} | values | changes))


def an_act(verb: str, **changes: Any) -> Act:
    """An operation by a person."""
    values: dict[str, Any] = {"who": "ann", "verb": verb, "at": AT}
    return Act(**(values | changes))


def a_redrive(redrive_id: str = "r1", *, total: int = 1, **changes: Any) -> Redrive:
    """A redrive that is about to run."""
    values: dict[str, Any] = {"created_at": AT, "by": "ann", "selection": "all open letters"}
    return Redrive(redrive_id=redrive_id, total=total, **(values | changes))
