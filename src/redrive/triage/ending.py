"""The end of a redrive: what it has not heard of by then is told, as what it waited for in vain is."""

from datetime import datetime

from redrive.core.audit import Act
from redrive.core.event import RedriveUnheard
from redrive.core.ports import EventSink
from redrive.core.ports.store import Store
from redrive.core.redrive import ENDED, ItemStatus, Redrive, RedriveState, Target


async def mark(
    store: Store,
    redrive: Redrive,
    state: RedriveState,
    *,
    why: str,
    act: Act,
    accepted: int | None = None,
    sink: EventSink | None,
) -> Redrive:
    """Put a redrive into a state; if that ends it, `sink` hears how many letters were out. Raises as the store."""
    if state not in ENDED or sink is None:
        return await store.mark(redrive.redrive_id, state, why=why, act=act, accepted=accepted)
    before = (await store.progress(redrive.redrive_id)).count(ItemStatus.UNCONFIRMED)
    marked = await store.mark(redrive.redrive_id, state, why=why, act=act, accepted=accepted)
    left = (await store.progress(redrive.redrive_id)).count(ItemStatus.UNCONFIRMED) - before
    if left > 0:
        sink.emit(unheard(redrive, left, at=act.at))
    return marked


def unheard(redrive: Redrive, letters: int, *, at: datetime, quiet: bool = False) -> RedriveUnheard:
    """What there is to tell of letters that a redrive has not heard of."""
    only = redrive.targets[0] if len(redrive.targets) == 1 else Target("", "")
    return RedriveUnheard(
        at=at,
        broker=only.broker,
        queue=only.queue,
        group=only.group,
        redrive_id=redrive.redrive_id,
        letters=letters,
        quiet=quiet,
    )
