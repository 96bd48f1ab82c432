"""The dead letters of requests: the same as those of messages, of the kind `llm`."""

import asyncio
import logging
import os
import platform
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from redrive.core.errors import BadAnswer, GatewayError
from redrive.core.event import LetterRefused, LetterWritten
from redrive.core.failure import Failure
from redrive.core.letter import DeadLetter, Source, write_letter
from redrive.core.ports import DeadLetterQueue
from redrive.core.privacy import PrivacyFilter
from redrive.core.reason import Reason
from redrive.gateway.surroundings import Surroundings
from redrive.gateway.ticket import Ticket

log = logging.getLogger(__name__)

KIND: Final = "llm"
PATIENCE: Final = timedelta(seconds=30)
"""How long a dead letter queue may take for one letter, before its caller is told that there is none."""

_PRIVACY: Final = PrivacyFilter()

Written = Callable[[str | None, str], None]
"""Told when a letter is written, with its id; or refused, with None and why."""


class LetterWriter:
    """Writes the letters of requests to a dead letter queue, each in a task of its own. Belongs to one event loop."""

    def __init__(self, dlq: DeadLetterQueue, around: Surroundings) -> None:
        self._dlq = dlq
        self._around = around
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, ticket: Ticket, error: GatewayError, *, reason: Reason, then: Written) -> None:
        """Write the letter of a request that is given up with `error`; `then` is always called, once, and later."""
        loop = asyncio.get_running_loop()
        try:
            letter = letter_of(ticket, error, reason=reason, now=self._around.clock.now())
        except Exception as mistake:  # a caller can still change what is in its request: it must end all the same
            log.exception("a request of the gateway cannot be said in a letter")
            loop.call_soon(then, None, _words(mistake))
            return
        task = loop.create_task(self._dlq.send(letter))
        self._tasks.add(task)
        alarm = self._around.alarms.at(self._around.clock.now() + PATIENCE, task.cancel)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._around.alarms.call_off(alarm)
            refused = "it took too long" if task.cancelled() else _words(task.exception())
            self._tell(letter, refused)
            then(None if refused else letter.letter_id, refused)

        task.add_done_callback(ended)

    async def settle(self) -> None:
        """Wait until no letter is under way."""
        await asyncio.sleep(0)  # of one that could not be written is told in the next turn of the loop
        while self._tasks:
            await asyncio.wait(self._tasks)
            await asyncio.sleep(0)  # what is to be done then is done in callbacks

    def _tell(self, letter: DeadLetter, refused: str) -> None:
        now = self._around.clock.now()
        where: dict[str, Any] = {"at": now, "queue": letter.queue, "group": letter.group}
        if not refused:
            self._around.sink.emit(LetterWritten(**where, letter=letter))
            return
        self._around.sink.emit(
            LetterRefused(
                **where,
                message_id=letter.original_message_id,
                payload_sha256=letter.payload_sha256,
                why=refused,
                failure_reason=refused.partition(":")[0],
                letter=letter,
                dropped=True,
            )
        )


def letter_of(ticket: Ticket, error: GatewayError, *, reason: Reason, now: datetime) -> DeadLetter:
    """The dead letter of a request; its payload is the whole request, to be sent again."""
    request = ticket.request
    source = Source("", "", handler="redrive.gateway", node=platform.node(), pid=os.getpid(), own_ids=False, kind=KIND)
    letter = write_letter(
        ticket.delivery(request.to_json()),
        source=source,
        failure=Failure.of(error),
        reason=reason,
        trail=ticket.trail,
        now=now,
    )
    context: dict[str, Any] = {
        "agent_id": request.agent_id,
        "model": request.model,
        **facts_of(error),
        "possibly_executed": ticket.possibly_executed,
        **_PRIVACY.mask(dict(request.metadata)),
    }
    return replace(letter, context=context)


def facts_of(error: GatewayError) -> dict[str, Any]:
    """What a letter tells of an error beside its words."""
    facts: dict[str, Any] = {"possibly_executed": error.possibly_executed}
    if isinstance(error, BadAnswer) and error.answer:
        facts["answer"] = error.answer
    if error.provider_request_id:
        facts["provider_request_id"] = error.provider_request_id
    return facts


def _words(error: BaseException | None) -> str:
    if error is None:
        return ""
    failure = Failure.of(error)
    return f"{failure.error_type}: {failure.error_message}"
