"""The front door: an OpenAI-compatible endpoint, so that any client gets the gateway's manners by its base URL."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from aiohttp import web

from redrive.core.errors import GatewayClosed, GatewayError, RequestRejected
from redrive.gateway.forms import AnthropicForm, Form
from redrive.gateway.gateway import Gateway
from redrive.gateway.http_errors import problem_of, status_of
from redrive.gateway.request import LLMRequest, encode
from redrive.gateway.streams import AnswerStream

PORT: Final = 8801
LARGEST: Final = 32 * 1024 * 1024

_JSON: Final = "application/json"
_PRIORITY: Final = re.compile(r"-?[0-9]{1,9}")
_OURS: Final = frozenset({"model", "messages", "stream"})
_ENDED: Final = b"data: [DONE]\n\n"


class FrontDoor:
    """Answers `POST /v1/chat/completions` (streams too), `GET /v1/models` and `GET /health` for an open gateway.

    Whoever asks is known by `X-Agent-Id`, and may say `X-Request-Id`, `X-Priority` and `X-Deadline`. A client that
    leaves calls its request off. Errors say `x-should-retry: false`: what could be retried was, and one owner of
    retries is enough. Loopback unless another `host` is given: there is no key to this door.
    """

    def __init__(self, gateway: Gateway, *, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._gateway = gateway
        self._host = host
        self._port = port
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        self._asked: set[str] = set()
        self._closing = False
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=5)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close. What is in flight has five seconds to be answered; what was not sent ends at once."""
        self._closing = True
        for request_id in [*self._asked]:
            self._gateway.withdraw(request_id)
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where clients find it."""
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}/v1"

    async def _complete(self, call: web.Request) -> web.StreamResponse:
        try:
            if call.content_type != _JSON:  # which a page in a browser cannot send to another site unasked
                raise RequestRejected(f"Content-Type: expected {_JSON}, got {call.content_type[:80]}")
            body = _decoded(await call.read())
            form = self._form(body)
            request = _request(form.ask(body), call.headers)
            with self._known(request):
                if body.get("stream"):
                    async with self._gateway.stream(request) as stream:
                        return await _streamed(call, request, stream, form)
                answer = await self._gateway.ask(request, keep=False)
        except GatewayError as error:
            return _refused(error)
        return web.Response(
            body=encode(form.answer(answer.raw)),
            content_type=_JSON,
            headers={"X-Request-Id": answer.request_id, "X-Redrive-Attempts": str(answer.attempts)},
        )

    @contextmanager
    def _known(self, request: LLMRequest) -> Iterator[None]:
        """While it is asked here; from the moment on in which the door closes none is."""
        if self._closing:
            raise GatewayClosed("the gateway is about to be closed")
        self._asked.add(request.request_id)
        try:
            yield
        finally:
            self._asked.discard(request.request_id)

    def _form(self, body: Mapping[str, Any]) -> Form:
        model = str(body.get("model", ""))
        return AnthropicForm(model, body) if self._gateway.wire_of(model) == "anthropic" else Form()

    async def _models(self, _: web.Request) -> web.Response:
        rows = [{"id": name, "object": "model", "owned_by": "redrive"} for name in self._gateway.stats()]
        return web.Response(body=encode({"object": "list", "data": rows}), content_type=_JSON)

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(body=encode(self._gateway.stats()), content_type=_JSON)


async def _streamed(call: web.Request, request: LLMRequest, stream: AnswerStream, form: Form) -> web.StreamResponse:
    """The answer as it comes. What fails before its first words is an error like any other."""
    bits = aiter(stream)
    first = await anext(bits, None)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Request-Id": request.request_id}
    )
    await response.prepare(call)
    try:
        for chunk in () if first is None else form.chunks(first.raw):
            await response.write(_event(chunk))
        async for delta in bits:
            for chunk in form.chunks(delta.raw):
                await response.write(_event(chunk))
        await response.write(_ENDED)
    except GatewayError as error:
        await response.write(_event(problem_of(error)))  # and no end: a cut answer is never a success
    await response.write_eof()
    return response


def _event(raw: Mapping[str, Any]) -> bytes:
    return b"data: " + encode(raw) + b"\n\n"


def _refused(error: GatewayError) -> web.Response:
    headers = {"x-should-retry": "false", "X-Request-Id": error.request_id}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(min(error.retry_after.total_seconds(), 1e9))))
    return web.Response(status=status_of(error), body=encode(problem_of(error)), content_type=_JSON, headers=headers)


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRejected(f"the body is no JSON object: {error}") from error


def _request(body: Mapping[str, Any], headers: Mapping[str, str]) -> LLMRequest:
    """The request that a call makes. Raises `RequestRejected`."""
    priority = headers.get("X-Priority", "0")
    if not _PRIORITY.fullmatch(priority):
        raise RequestRejected(f"X-Priority: expected a whole number, got {priority[:40]!r}")
    return LLMRequest(
        agent_id=headers.get("X-Agent-Id") or str(body.get("user") or "anonymous"),
        model=body.get("model", ""),
        messages=body.get("messages", ()),
        params={name: value for name, value in body.items() if name not in _OURS},
        request_id=headers.get("X-Request-Id"),
        priority=int(priority),
        deadline=headers.get("X-Deadline"),
    )


async def serve(gateway: Gateway, *, host: str = "127.0.0.1", port: int = PORT) -> None:
    """Keep the front door open until cancelled."""
    async with FrontDoor(gateway, host=host, port=port):
        await asyncio.Event().wait()
