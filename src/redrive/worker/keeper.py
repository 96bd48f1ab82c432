"""The keeper: copies a DLQ into the store and leaves it as it is."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from redrive.core.errors import BrokerError, LetterNotFound
from redrive.core.outcome import RetryLater
from redrive.core.ports import Clock, NativeDeadLetters
from redrive.worker.intake import Intake

BATCH = 500
LOOK = timedelta(seconds=1)


class Keeper:
    """Reads a DLQ from its beginning and then on from where it was. Begins anew in each process: nothing is lost by it.

    What it has read before, the store knows by letter and generation. `tell` hears of what goes wrong.
    """

    def __init__(
        self, dead_letters: NativeDeadLetters, intake: Intake, *, clock: Clock, tell: Callable[[Exception], None]
    ) -> None:
        self._dead_letters = dead_letters
        self._intake = intake
        self._clock = clock
        self._tell = tell
        self._trouble = ""
        self._read_to: str | None = None
        self._task: asyncio.Task[None] | None = None
        self.caught_up = False

    def start(self) -> None:
        """Begin to read, in a task of the running loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            more = False
            try:
                more = await self._read_on()
                self._trouble = ""
            except BrokerError:  # the collector, which looks for DLQs, tells of it
                pass
            except LetterNotFound:  # retention has taken the entry that it was at
                self._read_to = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._tell_once(error)
            if not more:
                await self._clock.sleep(LOOK)

    def _tell_once(self, error: Exception) -> None:
        """Once for each trouble: it is tried every second."""
        why = f"{type(error).__name__}: {error}"
        if why != self._trouble:
            self._trouble = why
            self._tell(error)

    async def _read_on(self) -> bool:
        """Copy the next entries; False if there is nothing to do just now."""
        entries = await self._dead_letters.peek(BATCH + 1, start=self._read_to)
        new = [entry for entry in entries if entry.entry_id != self._read_to]
        if not new:
            self.caught_up = True
            return False
        taken = await self._intake.take([self._intake.found(one.letter, one.entry_id) for one in new])
        if any(isinstance(answer, RetryLater) for answer in taken):
            return False
        self._read_to = new[-1].entry_id
        return True
