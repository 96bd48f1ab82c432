"""The record of redrives in memory."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.life import Life, send
from redrive.core.ports import Clock
from redrive.core.redrive import ENDED, ItemStatus, Planned, Progress, Redrive, RedriveState, left, sent
from redrive.core.stored import Claimed, Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.marking import marked
from redrive.stores.memory.shelf import Item, Kept, Shelf
from redrive.stores.witness import Touched


class MemoryRedrives:
    """A `RedriveStore`."""

    def __init__(self, shelf: Shelf, *, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def create(
        self, redrive: Redrive, items: Sequence[Planned], *, act: Act, owner: str = "", until: datetime | None = None
    ) -> None:
        if redrive.redrive_id in self._shelf.redrives:
            return
        if until is not None:
            self._shelf.leases[redrive.redrive_id] = owner, until
        self._shelf.redrives[redrive.redrive_id] = redrive
        self._shelf.operations[redrive.redrive_id] = act.operation_id
        planned = {item.letter_id: Item(item.letter_id, item.version, item.step) for item in items}
        self._shelf.items[redrive.redrive_id] = planned
        self._shelf.record(act, (), count=len(planned))

    async def redrive(self, redrive_id: str) -> Redrive:
        try:
            return self._shelf.redrives[redrive_id]
        except KeyError:
            raise LetterNotFound(f"no redrive {redrive_id!r} is in the store") from None

    async def redrives(self, *, limit: int = 50, after: str | None = None) -> Page[Redrive]:
        below = number_of(after)
        numbered = [*enumerate(self._shelf.redrives.values(), 1)][::-1]
        older = [pair for pair in numbered if below is None or pair[0] < below]
        page = page_of(older, limit=limit, after=lambda pair: str(pair[0]))
        return Page([redrive for _, redrive in page.rows], page.after)

    async def unfinished(self) -> Sequence[Redrive]:
        return [one for one in self._shelf.redrives.values() if one.state is RedriveState.RUNNING]

    async def claim(self, redrive_id: str, *, step: int, limit: int) -> Sequence[Claimed]:
        redrive = await self.redrive(redrive_id)
        items = [item for item in self._shelf.items[redrive_id].values() if item.step == step]
        claimed = [item for item in items if item.status is ItemStatus.CLAIMED]
        for item in claimed:
            if item.letter_id not in self._shelf.letters:  # removed meanwhile
                item.status = ItemStatus.SKIPPED
        again = [item for item in claimed if item.status is ItemStatus.CLAIMED][:limit]
        fresh: list[tuple[Item, Kept, Life]] = []
        if redrive.state is RedriveState.RUNNING:
            planned = (item for item in items if item.status is ItemStatus.PLANNED)
            fresh = [*self._fresh(redrive, planned, limit=limit - len(again))]
        self._shelf.move((kept, life) for _, kept, life in fresh)
        self._record(redrive, [kept for _, kept, _ in fresh])
        return [self._claimed(item) for item in (*again, *(item for item, _, _ in fresh))]

    def _fresh(self, redrive: Redrive, planned: Iterator[Item], *, limit: int) -> Iterator[tuple[Item, Kept, Life]]:
        while limit > 0 and (item := next(planned, None)) is not None:
            kept = self._shelf.letters.get(item.letter_id)
            life = None
            if kept is not None and kept.can_be_sent() and not self._shelf.is_out(item.letter_id):
                life = send(kept.life, previewed=item.version, over_cap=redrive.over_cap, again=redrive.again)
            if kept is None or life is None:
                item.status = ItemStatus.SKIPPED
                continue
            item.status, item.generation = ItemStatus.CLAIMED, life.generation
            item.fingerprint = kept.letter.fingerprint
            limit -= 1
            yield item, kept, life

    def _record(self, redrive: Redrive, claimed: Sequence[Kept]) -> None:
        touched = [
            Touched(
                kept.letter.letter_id,
                kept.letter.payload_sha256,
                kept.sent_sha256(),
                {"redrive": redrive.redrive_id, "generation": kept.life.generation},
            )
            for kept in claimed
        ]
        operation_id = self._shelf.operations[redrive.redrive_id]
        act = Act(who=redrive.by, verb="letters.redrive", at=self._clock.now(), operation_id=operation_id)
        self._shelf.record(act, touched)

    def _claimed(self, item: Item) -> Claimed:
        kept = self._shelf.letters[item.letter_id]
        letter, edit = kept.letter, kept.edits[-1] if kept.edits else None
        return Claimed(
            letter_id=letter.letter_id,
            generation=item.generation or 0,
            step=item.step,
            broker=letter.broker,
            queue=letter.queue,
            group=letter.group,
            body=letter.payload if edit is None else edit.body,
            headers=letter.headers if edit is None else edit.headers,
            key=letter.key,
            origin=letter.original_message_id,
            edits=len(kept.edits),
        )

    async def take(self, redrive_id: str, *, owner: str, now: datetime, until: datetime) -> bool:
        await self.redrive(redrive_id)
        holder, held_until = self._shelf.leases.get(redrive_id, (owner, until))
        if holder != owner and held_until > now:
            return False
        self._shelf.leases[redrive_id] = owner, until
        return True

    async def sent(self, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
        await self.redrive(redrive_id)
        for letter_id, message_id in messages.items():
            item = self._shelf.items[redrive_id].get(letter_id)
            if item is None or item.generation is None:
                continue
            item.message_id, item.sent_at, item.status = message_id, at, sent(item.status)

    async def progress(self, redrive_id: str) -> Progress:
        redrive = await self.redrive(redrive_id)
        items = self._shelf.items[redrive_id].values()
        counted = [Counter[ItemStatus]() for _ in range(len(redrive.steps) + 1)]
        for item in items:
            counted[item.step][item.status] += 1
        versions = {item.app_version for item in items if item.status is ItemStatus.SUCCEEDED and item.app_version}
        return Progress(tuple(dict(step) for step in counted), tuple(sorted(versions)))

    async def expire(self, redrive_id: str, *, before: datetime, quiet: bool) -> int:
        await self.redrive(redrive_id)
        late = [
            item
            for item in self._shelf.items[redrive_id].values()
            if item.status is ItemStatus.SENT and item.sent_at is not None and item.sent_at < before
        ]
        for item in late:
            failed = (item.generation, False) in self._shelf.outcomes.get(item.letter_id, {})
            lost = ItemStatus.QUIET if quiet else ItemStatus.UNCONFIRMED
            item.status = ItemStatus.FAILED if failed else lost
        return len(late)

    async def mark(
        self, redrive_id: str, state: RedriveState, *, why: str, act: Act, accepted: int | None = None
    ) -> Redrive:
        redrive = await self.redrive(redrive_id)
        after = marked(redrive, state, why=why, at=act.at, accepted=accepted)
        self._shelf.redrives[redrive_id] = after
        if state in ENDED:
            for item in self._shelf.items[redrive_id].values():
                item.status = left(item.status)
        if state is not redrive.state:
            told = {"redrive": redrive_id, "state": [redrive.state.value, state.value], "why": why}
            self._shelf.record(replace(act, detail=act.detail | told), (), count=redrive.total)
        return after
