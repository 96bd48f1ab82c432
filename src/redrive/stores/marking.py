"""A redrive after it was paused, resumed, stopped, cancelled or ended."""

from dataclasses import replace
from datetime import datetime

from redrive.core.errors import StateConflict
from redrive.core.redrive import ENDED, Redrive, RedriveState


def marked(redrive: Redrive, state: RedriveState, *, why: str, at: datetime, accepted: int | None) -> Redrive:
    """The redrive in its new state. Raises `StateConflict` for one that has ended in another way."""
    if redrive.state in ENDED:
        if redrive.state is not state:
            raise StateConflict(f"redrive {redrive.redrive_id} is {redrive.state}: it can no longer become {state}")
        return redrive
    return replace(
        redrive,
        state=state,
        why=why,
        ended_at=at if state in ENDED else None,
        accepted=redrive.accepted if accepted is None else accepted,
    )
