"""The letters that are measured: the same queues, types, incidents and hours whatever their number."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from redrive.core.attempt import Attempt
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)  # pages ask for the last day
HOURS = 30 * 24
QUEUES = [f"queue-{number}" for number in range(8)]
TYPES = [f"shop.errors.Error{number}" for number in range(24)]
INCIDENTS = 200
REASONS = [Reason.ATTEMPTS_EXHAUSTED, Reason.REJECTED, Reason.INVALID, Reason.DEADLINE]
BATCH = 500
RESOLVED = 10  # every tenth letter, where some are


def letters(first: int, count: int, *, of: int) -> Iterator[DeadLetter]:
    """Letters with these numbers, of so many that failed one after the other within 30 days."""
    for number in range(first, first + count):
        yield _letter(number, share=number / of)


def longest_fill(size: int) -> float:
    """Seconds after which a store that is filled with so many is not waited for any more."""
    return 300 + size / 200


def success(letter_id: str) -> RedriveOutcome:
    """The report that a letter's first redrive went well."""
    return RedriveOutcome(letter_id, 1, succeeded=True, reported_at=NOW, queue="", group="shop", message_id="")


def _letter(number: int, *, share: float) -> DeadLetter:
    random = Random(number)
    incident = random.randrange(INCIDENTS)
    failed_at = NOW - timedelta(hours=HOURS) * (1 - share)
    body = b'{"order": %d, "customer": "%032x", "note": "%s"}' % (number, random.getrandbits(128), b"x" * 120)
    attempt = Attempt(1, failed_at, failed_at, TYPES[incident % len(TYPES)], f"order {number} was refused")
    return DeadLetter(
        letter_id=f"{random.getrandbits(128):032x}",
        broker="sqlite",
        queue=QUEUES[incident % len(QUEUES)],
        group="shop",
        handler="shop.charge",
        app_version="4f2c",
        node="worker-1",
        pid=4711,
        original_message_id=str(number),
        payload=body,
        payload_sha256=payload_hash(body),
        content_type="application/json",
        headers=(("content-type", b"application/json"), ("traceparent", b"00-%032x-0000000000000001-01" % number)),
        reason=REASONS[incident % len(REASONS)],
        error_type=attempt.error_type,
        error_message=attempt.error_message,
        fingerprint=f"{incident:016x}",
        attempts=(attempt,) * 4,
        retry_count=4,
        first_failed_at=failed_at,
        failed_at=failed_at,
        received_at=failed_at,
        dlq_published_at=failed_at,
        user_id=f"user-{random.randrange(5000)}",
        tenant_id=f"tenant-{random.randrange(5000)}",
        context={"order": number},
        dlq_entry_id=f"{number}-0",
    )
