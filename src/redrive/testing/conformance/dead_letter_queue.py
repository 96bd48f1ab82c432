"""A place for dead letters apart from the queue's own broker."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from redrive.core.errors import DeadLetterQueueClosed
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadLetterQueue
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.testing.conformance.suite import needs

AT = datetime(2030, 1, 1, tzinfo=UTC)
LETTER = DeadLetter(
    letter_id="0123456789abcdef",
    queue="orders",
    payload=b"\x00\xff",
    payload_sha256=hashlib.sha256(b"\x00\xff").hexdigest(),
    headers=(("colour", b"\xff"), ("colour", b"")),
    reason=Reason.REJECTED,
    failed_at=AT,
)
OUTCOME = RedriveOutcome(
    letter_id=LETTER.letter_id,
    generation=1,
    succeeded=True,
    reported_at=AT,
    queue="orders",
    group="shop",
    message_id="1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterQueueUnderTest:
    """What an adapter brings: the queue, and a way to see what was written; None for one that forgets."""

    queue: DeadLetterQueue
    written: Callable[[], Awaitable[Sequence[DeadLetter]]] | None


class DeadLetterQueueSuite:
    """The promises of `DeadLetterQueue`. The test module brings the fixture `dead_letter_queue_under_test`."""

    @pytest.fixture
    def place(self, dead_letter_queue_under_test: DeadLetterQueueUnderTest) -> DeadLetterQueueUnderTest:
        """The queue under test."""
        return dead_letter_queue_under_test

    async def test_a_letter_sent_is_written_byte_for_byte(self, place: DeadLetterQueueUnderTest) -> None:
        needs(place.written is not None, "what is written cannot be seen")
        assert place.written is not None
        await place.queue.send(LETTER)
        (found,) = await place.written()

        assert replace(found, dlq_published_at=None, collected_at=None) == LETTER

    async def test_what_was_written_outlives_closing(self, place: DeadLetterQueueUnderTest) -> None:
        needs(place.written is not None, "what is written cannot be seen")
        assert place.written is not None
        await place.queue.send(LETTER)
        await place.queue.aclose()

        assert [letter.letter_id for letter in await place.written()] == [LETTER.letter_id]

    async def test_an_outcome_is_no_letter(self, place: DeadLetterQueueUnderTest) -> None:
        await place.queue.report(OUTCOME)

        assert place.written is None or list(await place.written()) == []

    async def test_closing_twice_is_closing_once(self, place: DeadLetterQueueUnderTest) -> None:
        await place.queue.aclose()
        await place.queue.aclose()

    async def test_sending_afterwards_raises_closed(self, place: DeadLetterQueueUnderTest) -> None:
        await place.queue.aclose()
        with pytest.raises(DeadLetterQueueClosed):
            await place.queue.send(LETTER)
        with pytest.raises(DeadLetterQueueClosed):
            await place.queue.report(OUTCOME)
