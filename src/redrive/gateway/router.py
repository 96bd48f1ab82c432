"""The response router: every caller's future has one owner, and ends exactly once."""

import asyncio
from collections.abc import Callable
from functools import partial

from redrive.core.errors import GatewayError
from redrive.gateway.endings import own_copy
from redrive.gateway.request import LLMResponse

Pending = asyncio.Future[LLMResponse]


def refused(error: GatewayError) -> Pending:
    """The future of a request that was not accepted. Who never asks for it is not reminded by the garbage collector."""
    future: Pending = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    future.exception()
    return future


class ResponseRouter:
    """Gives each request's answer, or its error, to those who wait for it. Belongs to one event loop.

    A request may have several callers: each has a future of its own, and an error object of its own. A caller who
    leaves (cancels its future) is forgotten at once; when the last one has left, `abandoned` is told. What comes for
    nobody is counted: `late`. After `close` nobody waits.
    """

    def __init__(self, abandoned: Callable[[str], None] = lambda _: None) -> None:
        self._waiting: dict[str, list[Pending]] = {}
        self._abandoned = abandoned
        self.resolved = 0
        self.late = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._waiting

    def names(self) -> list[str]:
        """The requests that somebody waits for."""
        return [*self._waiting]

    def register(self, request_id: str) -> Pending:
        """A future for a request: of a new one, or one more of a request that others wait for already."""
        future: Pending = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(request_id, []).append(future)
        future.add_done_callback(partial(self._left, request_id))
        return future

    def is_wanted(self, request_id: str) -> bool:
        """Whether somebody still waits: a future may be cancelled, and its callback not have run yet."""
        return any(not future.done() for future in self._waiting.get(request_id, ()))

    def resolve(self, request_id: str, response: LLMResponse) -> bool:
        """Give the answer to all who wait; False, and nothing else, if nobody does."""
        futures = self._take(request_id)
        for future in futures:
            future.set_result(response)
        return bool(futures)

    def resolve_error(self, request_id: str, error: GatewayError) -> bool:
        """Give the error to all who wait, to each one of their own; False, and nothing else, if nobody does."""
        futures = self._take(request_id)
        for index, future in enumerate(futures):
            own = error if index == 0 else own_copy(error)
            future.set_exception(own)
            future.exception()  # who never asks for it is not to be reminded by the garbage collector
        return bool(futures)

    def cancel(self, request_id: str) -> bool:
        """Cancel every future of a request; False if nobody waits for it."""
        cancelled = [future.cancel() for future in self._waiting.get(request_id, ())]
        return any(cancelled)

    def pending(self) -> list[Pending]:
        """Every future that has not ended."""
        return [future for futures in self._waiting.values() for future in futures if not future.done()]

    def close(self, error_of: Callable[[str], GatewayError]) -> int:
        """End every future that is left, each with an error of its own; return how many requests there were."""
        left = [*self._waiting]
        for request_id in left:
            self.resolve_error(request_id, error_of(request_id))
        return len(left)

    def _take(self, request_id: str) -> list[Pending]:
        futures = [future for future in self._waiting.pop(request_id, ()) if not future.done()]
        if futures:
            self.resolved += 1
        else:
            self.late += 1
        return futures

    def _left(self, request_id: str, future: Pending) -> None:
        """A future is done: by us, or cancelled by its caller."""
        futures = self._waiting.get(request_id)
        if futures is None or future not in futures:
            return
        futures.remove(future)
        if not futures:
            del self._waiting[request_id]
            self._abandoned(request_id)
