"""A file of requests answered into a file of answers: again and again, until nothing is left that failed."""

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from redrive.core.errors import ConfigError, GatewayError, RequestRejected
from redrive.gateway.gateway import Gateway
from redrive.gateway.request import LLMRequest, LLMResponse

AT_ONCE: Final = 1000
"""So many requests of a file are under way at a time, whatever its size."""

_TOLD: Final = 10  # mistakes of one kind at a time
_STATUSES: Final = ("answered", "failed")
_BEGINNING: Final = b'{"request_id":'

_OURS: Final = frozenset({"request_id", "custom_id", "agent_id", "model", "messages", "priority", "deadline"})


@dataclass(slots=True)
class Tally:
    """How far a file is: requests in it, answered before, answered now, and failed."""

    total: int = 0
    before: int = 0
    answered: int = 0
    failed: int = 0


class BatchFile:
    """The requests of one JSON Lines file, and the file of their answers.

    A line is a request: `messages`, and if need be `request_id` (else the line's number), `model`, `agent_id`,
    `priority`, `deadline`; whatever else it has are parameters. For the gateway the line's number is not enough: other
    files have a first line, too, so the fingerprint is added there. A line of answers has the request's id, and the
    answer or the error. Run again, it sends only what has no answer yet: an answers file has one line for a request at
    most, and one that a crash has cut short counts as none. A file that holds anything else is left as it is.
    """

    def __init__(self, requests: Path, answers: Path, *, model: str) -> None:
        self._requests = requests
        self._answers = answers
        self._model = model

    async def run(self, gateway: Gateway, *, progress: Callable[[Tally], None] = lambda _: None) -> Tally:
        """Send what has no answer; return how it went.

        Raises `ConfigError` for a file that cannot be read or written, for two requests with one id, for answers that
        are none, and for a file of answers that another run is writing.
        """
        asked = await asyncio.to_thread(self._asked)
        with self._alone():
            return await self._run(gateway, asked, progress)

    async def _run(self, gateway: Gateway, asked: set[str], progress: Callable[[Tally], None]) -> Tally:
        known = await asyncio.to_thread(self._answered)
        tally = Tally(total=len(asked), before=len(asked & known))
        try:
            with self._opened() as lines, self._answers.open("ab") as out:
                async with asyncio.TaskGroup() as group:
                    slots = asyncio.Semaphore(AT_ONCE)
                    for number, row in _rows(lines):
                        request_id = _id_of(row, number)
                        if request_id in known:
                            continue
                        await slots.acquire()
                        task = group.create_task(self._one(gateway, row, request_id, out, tally))
                        task.add_done_callback(lambda _: slots.release())
                        task.add_done_callback(lambda _: progress(tally))
        except OSError as error:
            raise self._unwritten(error) from error
        except ExceptionGroup as errors:
            disk = next((error for error in errors.exceptions if isinstance(error, OSError)), None)
            if disk is None:
                raise
            raise self._unwritten(disk) from errors
        progress(tally)
        return tally

    async def _one(
        self, gateway: Gateway, row: dict[str, Any] | None, request_id: str, out: IO[bytes], tally: Tally
    ) -> None:
        try:
            response = await gateway.ask(self._request(row, request_id), keep=False)
        except GatewayError as error:
            tally.failed += 1
            said = _failed(request_id, error)
        else:
            tally.answered += 1
            said = _said(request_id, response)
        out.write(msgspec.json.encode(said) + b"\n")
        out.flush()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other runs away from the file of answers, which is replaced: so a file beside it is locked.

        The lock goes with its process, however that ends.
        """
        path = self._answers.with_name(f"{self._answers.name}.lock")
        with self._opened_lock(path) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise self._taken() from error
            if not os.fstat(lock.fileno()).st_nlink:  # the other run ended just now, and took it away
                raise self._taken()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def _opened_lock(self, path: Path) -> IO[bytes]:
        try:
            return path.open("ab")
        except OSError as error:
            raise self._unwritten(error) from error

    def _taken(self) -> ConfigError:
        return ConfigError(f"{self._answers}: another run writes this file: expected one at a time")

    def _request(self, row: dict[str, Any] | None, request_id: str) -> LLMRequest:
        if row is None:
            raise RequestRejected("the line is no JSON object")
        request = LLMRequest(
            request_id=request_id,
            agent_id=row.get("agent_id", "file"),
            model=row.get("model", self._model),
            messages=row.get("messages", ()),
            priority=row.get("priority", 0),
            deadline=row.get("deadline"),
            params={name: value for name, value in row.items() if name not in _OURS},
        )
        return request if _own_id(row) else request.named(f"{request_id}-{request.fingerprint}")

    def _opened(self) -> IO[bytes]:
        if self._requests.exists() and not self._requests.is_file():
            raise ConfigError(f"{self._requests}: expected a file: it is read twice")
        try:
            return self._requests.open("rb")
        except OSError as error:
            raise ConfigError(f"{self._requests}: cannot be read: {error.strerror}") from error

    def _asked(self) -> set[str]:
        """The ids of all requests."""
        asked: set[str] = set()
        mistakes: list[str] = []
        with self._opened() as lines:
            for number, row in _rows(lines):
                request_id = _id_of(row, number)
                if request_id in asked and len(mistakes) < _TOLD:
                    mistakes.append(f"{self._requests}: line {number}: expected an id of its own, got {request_id!r}")
                asked.add(request_id)
        if mistakes:
            raise ConfigError(mistakes)
        return asked

    def _answered(self) -> set[str]:
        """The requests that have an answer; errors and lines cut short are taken out of the file of answers."""
        if not self._answers.exists():
            return set()
        if not self._answers.is_file():
            raise ConfigError(f"{self._answers}: expected a file of answers")
        known: set[str] = set()
        new = self._answers.with_name(f"{self._answers.name}.new")
        try:
            with self._answers.open("rb") as file, new.open("wb") as kept:
                for number, line in enumerate(file, 1):
                    row = self._checked(line, number)
                    request_id = str(row.get("request_id"))
                    if row.get("status") == "answered" and request_id not in known:
                        known.add(request_id)
                        kept.write(line)
                kept.flush()
                os.fsync(kept.fileno())
            new.replace(self._answers)
        except OSError as error:
            raise self._unwritten(error) from error
        finally:
            new.unlink(missing_ok=True)
        return known

    def _checked(self, line: bytes, number: int) -> dict[str, Any]:
        """What a line of ours says; nothing, if it was cut short. Raises `ConfigError` for one that is not ours."""
        row = _row(line) if line.endswith(b"\n") else None
        if row is not None and "request_id" in row and row.get("status") in _STATUSES:
            return row
        if not line.endswith(b"\n") and line[: len(_BEGINNING)] == _BEGINNING[: len(line)]:
            return {}
        raise ConfigError(f"{self._answers}: line {number} is no answer: expected a file of answers, or none yet")

    def _unwritten(self, error: OSError) -> ConfigError:
        return ConfigError(f"{self._answers}: cannot be written: {error.strerror}")


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """What the lines say that are not empty, with their numbers."""
    return ((number, _row(line)) for number, line in enumerate(lines, 1) if line.strip())


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _id_of(row: dict[str, Any] | None, number: int) -> str:
    return str(_own_id(row or {}) or f"line-{number}")


def _own_id(row: dict[str, Any]) -> Any:
    """The id that a line says itself; nothing, if it says none."""
    return row.get("request_id") or row.get("custom_id")


def _said(request_id: str, response: LLMResponse) -> dict[str, Any]:
    usage = response.usage
    return {
        "request_id": request_id,
        "status": "answered",
        "text": response.text,
        "finish_reason": response.finish_reason,
        "usage": None if usage is None else usage._asdict(),
        "attempts": response.attempts,
        "response": response.raw,
    }


def _failed(request_id: str, error: GatewayError) -> dict[str, Any]:
    return {
        "request_id": request_id,
        "status": "failed",
        "error_type": type(error).__name__,
        "error": str(error),
        "code": error.code,
        "letter_id": error.letter_id,
        "possibly_executed": error.possibly_executed,
    }
