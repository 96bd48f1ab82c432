"""Try a letter: run the current handler on its bytes, here and now. Nothing is settled, nothing is stored."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from redrive.core.delivery import Delivery
from redrive.core.failure import Failure
from redrive.core.message import Message
from redrive.core.policy import RetryPolicy, decide
from redrive.core.ports import Clock
from redrive.core.stored import StoredLetter
from redrive.triage.editor import draft_of

Run = Callable[[Delivery], Awaitable[object]]
"""Runs the handler on one delivery and raises what it raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What happened. `error` has its traceback, for a debugger; `same` is whether it failed as the letter did."""

    succeeded: bool
    result: object = None
    error: BaseException | None = None
    failure: Failure | None = None
    same: bool = False
    would: str = "it would be acked"


async def try_letter(stored: StoredLetter, run: Run, *, policy: RetryPolicy, clock: Clock) -> Tried:
    """Run the handler once on what would be sent back: the latest edit, or the original.

    Raises `DeadLetterError` if no copy of the message was kept; what the handler raises is in the answer.
    """
    delivery = delivery_of(stored, clock=clock)
    try:
        result = await run(delivery)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
        failure = Failure.of(error)
        decision = decide(policy, error, delivery=delivery, now=clock.now(), random=Random(0))  # noqa: S311 - shown, not used
        same = failure.fingerprint == stored.letter.fingerprint
        return Tried(succeeded=False, error=error, failure=failure, same=same, would=decision.why)
    return Tried(succeeded=True, result=result)


def delivery_of(stored: StoredLetter, *, clock: Clock) -> Delivery:
    """The delivery that a worker would get if the letter were sent back now."""
    letter, draft = stored.letter, draft_of(stored)
    message = Message(
        id=letter.original_message_id,
        queue=letter.queue,
        body=draft.body,
        headers=draft.headers,
        key=letter.key,
        published_at=clock.now(),
        origin=letter.original_message_id,
    )
    return Delivery(
        message,
        group=letter.group,
        received_at=clock.now(),
        generation=stored.life.generation + 1,
        letter_id=letter.letter_id,
    )
