"""A letter to try things with."""

import hashlib
from datetime import UTC, datetime

from redrive.core.letter import DeadLetter
from redrive.core.reason import Reason

AT = datetime(2030, 1, 1, tzinfo=UTC)


def letter(queue: str, *, payload: bytes = b'{"id": 1}') -> DeadLetter:
    return DeadLetter(
        letter_id="a1",
        generation=0,
        broker="redis",
        queue=queue,
        group="shop",
        original_message_id="1-1",
        payload=payload,
        payload_sha256=hashlib.sha256(payload).hexdigest(),
        headers=(("colour", b"\xff"),),
        reason=Reason.REJECTED,
        error_type="ValueError",
        error_message="no",
        retry_count=3,
        failed_at=AT,
        user_id="u7",
    )
