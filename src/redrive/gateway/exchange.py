"""One call to a provider: requests in, for each an answer or an error of its own out."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from redrive.core.errors import BadAnswer, GatewayError
from redrive.core.ports import Clock
from redrive.gateway.classify import error_inside, fault_of, provider_id, read_reply, success_of
from redrive.gateway.model import ModelConfig
from redrive.gateway.request import LLMRequest, encode
from redrive.gateway.sse import EventReader
from redrive.gateway.streams import Channel, Delta, StreamedAnswer
from redrive.gateway.ticket import Ticket
from redrive.gateway.transport import Post, Reply, Transport
from redrive.gateway.wire import WIRES, Answer

Heard = tuple[Answer | GatewayError, str]
"""What was heard of one request, and the provider's name for the call."""

_OK = 200


class Exchange:
    """Writes the calls of one model, and reads the replies. Knows nothing of retries, limits and callers."""

    def __init__(self, config: ModelConfig, *, key: str, transport: Transport, clock: Clock) -> None:
        self._config = config
        self._wire = WIRES[config.wire]
        self._transport = transport
        self._clock = clock
        self._headers = self._wire.headers(key)
        base = config.base_url.rstrip("/")
        self._url = base + self._wire.path
        self._connect_timeout = config.connect_timeout.total_seconds()
        self._batch_url = None if config.batch_path is None else base + config.batch_path

    def body(self, request: LLMRequest, *, stream: bool = False) -> bytes:
        """What is sent for a request. Raises `RequestRejected`."""
        body = self._wire.body(self._config, request)
        return encode({**body, "stream": True} if stream else body)

    async def send(self, tickets: Sequence[Ticket], beat: Callable[[], None]) -> Sequence[Heard]:
        """Make one call; what was heard, in the order of the tickets. Raises the `GatewayError` of the whole call.

        `beat` is called when something has come of a streamed answer.
        """
        if tickets[0].channel is not None:
            return [await self._send_stream(tickets[0], tickets[0].channel, beat)]
        if self._batch_url is not None:
            return await self._send_together(self._batch_url, tickets)
        (ticket,) = tickets
        reply = await self._post(self._url, ticket.body, ticket.request_id)
        answer = read_reply(reply, wire=self._wire, now=self._clock.now())
        return [(answer, provider_id(reply.headers))]

    async def _send_together(self, url: str, tickets: Sequence[Ticket]) -> Sequence[Heard]:
        rows = [{"custom_id": ticket.request_id, "body": msgspec.Raw(ticket.body)} for ticket in tickets]
        key = "+".join(f"{ticket.request_id}/{ticket.failures}" for ticket in tickets)
        reply = await self._post(url, encode({"requests": rows}), key)
        now = self._clock.now()
        found = self._rows(success_of(reply, now=now))
        call = provider_id(reply.headers)
        return [(self._read(found.get(ticket.request_id)), call) for ticket in tickets]

    async def _send_stream(self, ticket: Ticket, channel: Channel, beat: Callable[[], None]) -> Heard:
        channel.begin()
        post = self._written(self._url, ticket.body, ticket.request_id)
        async with self._transport.stream(post) as reply:
            call = provider_id(reply.headers)
            if reply.status != _OK or "event-stream" not in reply.headers.get("content-type", "").lower():
                body = b"".join([chunk async for chunk in reply.chunks])
                whole = Reply(reply.status, reply.headers, body)
                answer = read_reply(whole, wire=self._wire, now=self._clock.now())
                channel.put(Delta(answer.text, answer.raw), words=True)  # it did not want to stream
                return answer, call
            events = EventReader()
            streamed = StreamedAnswer(self._wire, channel, headers=reply.headers)
            async for chunk in reply.chunks:
                for event in events.feed(chunk):
                    if streamed.take(event, now=self._clock.now()):
                        beat()
            return streamed.answer(), call

    async def _post(self, url: str, body: bytes, key: str) -> Reply:
        return await self._transport.post(self._written(url, body, key))

    def _written(self, url: str, body: bytes, key: str) -> Post:
        config, headers = self._config, self._headers
        if config.idempotency:
            headers = {**headers, "Idempotency-Key": hashlib.sha256(key.encode()).hexdigest()}
        return Post(url, headers, body, self._connect_timeout, config.max_answer_bytes)

    @staticmethod
    def _rows(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """The results by id, whatever their order; of two for one id the first counts."""
        rows = body.get("results")
        if not isinstance(rows, list):
            raise BadAnswer("the answer has no results")
        found: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
                found.setdefault(row["custom_id"], row)
        return found

    def _read(self, row: Mapping[str, Any] | None) -> Answer | GatewayError:
        """What one result says; a request that has none was not answered."""
        if row is None:
            return BadAnswer("the answer has no result for this request", possibly_executed=True)
        now = self._clock.now()
        response = row.get("response") if isinstance(row.get("response"), dict) else row
        status, headers, body = (response.get(name) for name in ("status_code", "headers", "body"))  # type: ignore[union-attr]
        told = {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
        try:
            if isinstance(status, int) and not _OK <= status < _OK + 100:
                return fault_of(status, told, body if isinstance(body, dict) else row, now=now)
            if row.get("error"):
                return error_inside(row, told, now=now)
            if not isinstance(body, dict):
                return BadAnswer("the result has no body")
            return error_inside(body, told, now=now) if body.get("error") else self._wire.read(body)
        except BadAnswer as error:
            return error
