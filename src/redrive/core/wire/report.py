"""What became of a redriven message, as bytes for the outcomes queue."""

from dataclasses import asdict

from redrive.core.redrive import RedriveOutcome
from redrive.core.wire.plain import as_count, as_instant, as_text, dump, load_object


def dump_outcome(outcome: RedriveOutcome) -> bytes:
    """The outcome as a JSON object."""
    return dump({**asdict(outcome), "reported_at": outcome.reported_at.isoformat()})


def load_outcome(raw: bytes) -> RedriveOutcome:
    """The outcome that `dump_outcome` wrote. Raises `ValueError` for anything else."""
    document = load_object(raw)
    reported_at = as_instant(document.get("reported_at"))
    succeeded = document.get("succeeded")
    letter = document.get("letter_id")
    if reported_at is None or not isinstance(succeeded, bool) or not isinstance(letter, str):
        raise ValueError("not an outcome: expected letter_id, succeeded and reported_at")
    return RedriveOutcome(
        letter_id=letter,
        generation=as_count(document.get("generation")),
        succeeded=succeeded,
        reported_at=reported_at,
        queue=as_text(document.get("queue")),
        group=as_text(document.get("group")),
        message_id=as_text(document.get("message_id")),
        attempts=as_count(document.get("attempts")),
        app_version=as_text(document.get("app_version")),
        node=as_text(document.get("node")),
    )
