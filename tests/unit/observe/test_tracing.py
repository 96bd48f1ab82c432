"""Spans, as OpenTelemetry's own SDK sees them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import redrive
from redrive import testing, wiring
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.observe.tracing import OpenTelemetryTracing
from redrive.worker.traced import answered, spans, traced, traced_call

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Spans:
    """A provider that keeps what it is told."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> Sequence[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Spans:
    kept = Spans()
    made = lambda broker: OpenTelemetryTracing(broker.name, provider=kept.provider)  # noqa: E731
    monkeypatch.setattr(wiring, "tracing", made)
    return kept


def an_app(**options: Any) -> redrive.App:
    return redrive.App("memory://", name="shop", tracing=True, **options)


def context_of(span: ReadableSpan) -> trace.SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


def trace_of(span: ReadableSpan) -> str:
    return f"{context_of(span).trace_id:032x}"


def attribute(span: ReadableSpan, name: str) -> object:
    assert span.attributes is not None
    return span.attributes.get(name)


async def test_an_attempt_is_a_consumer_span_that_goes_on_with_the_trace_in_the_headers(seen: Spans) -> None:
    app = an_app()

    @app.consumer("orders")
    async def charge(body: bytes) -> None:
        pass

    async with testing.run(app) as shop:
        message_id = await shop.publish("orders", b"four", headers=TRACEPARENT)
        await shop.drain()

    span = seen.only("process orders")
    assert span.kind is trace.SpanKind.CONSUMER
    assert span.parent is not None
    assert (trace_of(span), f"{span.parent.span_id:016x}") == (TRACE, SPAN)
    assert span.status.status_code is trace.StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "messaging.system": "memory",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": "orders",
        "messaging.consumer.group.name": "shop",
        "messaging.message.id": message_id,
        "messaging.message.body.size": 4,
        "redrive.attempt": 1,
        "redrive.generation": 0,
    }


async def test_publishing_is_a_producer_span_whose_context_travels_with_the_message(seen: Spans) -> None:
    app = an_app()
    found: list[str | None] = []

    @app.consumer("orders")
    async def charge(message: redrive.Message) -> None:
        found.append(message.header("traceparent"))

    async with testing.run(app) as shop:
        await shop.publish("orders", b"", headers={"tenant": "7"})
        await shop.drain()

    sent, processed = seen.only("publish orders"), seen.only("process orders")
    assert (sent.kind, attribute(sent, "messaging.operation.type")) == (trace.SpanKind.PRODUCER, "send")
    assert processed.parent is not None
    assert processed.parent.span_id == context_of(sent).span_id
    (header,) = found
    assert header is not None
    assert header.startswith(f"00-{trace_of(sent)}-{context_of(sent).span_id:016x}-")


async def test_a_message_that_a_handler_publishes_belongs_to_its_attempt(seen: Spans) -> None:
    app = an_app()

    @app.consumer("orders")
    async def charge(body: bytes) -> None:
        await shop.publish("mails", body)

    @app.consumer("mails")
    def send(body: bytes) -> None:
        with trace.get_tracer("user", tracer_provider=seen.provider).start_as_current_span("smtp"):
            pass

    async with testing.run(app) as shop:
        await shop.publish("orders", b"", headers=TRACEPARENT)
        await shop.drain()

    attempt, published, inside = (seen.only(name) for name in ("process orders", "publish mails", "smtp"))
    assert published.parent is not None
    assert published.parent.span_id == context_of(attempt).span_id
    assert inside.parent is not None
    assert inside.parent.span_id == context_of(seen.only("process mails")).span_id
    assert {trace_of(attempt), trace_of(published), trace_of(inside)} == {TRACE}


@pytest.mark.parametrize("kind", ["value", "message"])
async def test_what_a_handler_returns_goes_on_in_the_trace_of_what_it_answers(seen: Spans, kind: str) -> None:
    app = an_app()
    found: list[str | None] = []

    @app.consumer("orders", output="mails")
    async def charge(body: bytes) -> bytes | redrive.Message:
        return body if kind == "value" else Message(id="", queue="", body=body, headers=(("tenant", b"7"),))

    @app.consumer("mails")
    async def send(message: redrive.Message) -> None:
        found.append(message.header("tenant"))

    async with testing.run(app) as shop:
        await shop.publish("orders", b"1", headers=TRACEPARENT)
        await shop.drain()

    published, handled = seen.only("publish mails"), seen.only("process mails")
    assert published.parent is not None
    assert f"{published.parent.span_id:016x}" == SPAN
    assert handled.parent is not None
    assert handled.parent.span_id == context_of(published).span_id
    assert {trace_of(published), trace_of(handled)} == {TRACE}
    assert found == [None if kind == "value" else "7"]


async def test_what_a_handler_returns_for_a_redriven_message_is_linked_to_the_original_trace(seen: Spans) -> None:
    headers = tuple((name, value.encode()) for name, value in TRACEPARENT.items())
    message = Message(id="1", queue="orders", body=b"", headers=headers)
    delivery = Delivery(message=message, group="shop", received_at=NOW, generation=1)
    output = Message(id="", queue="mails", body=b"", headers=())

    sent = answered(OpenTelemetryTracing("memory", provider=seen.provider), delivery, output)

    published = seen.only("publish mails")
    assert published.parent is None
    assert [f"{link.context.trace_id:032x}" for link in published.links] == [TRACE]
    assert dict(sent.headers)["traceparent"].decode().split("-")[1] == trace_of(published) != TRACE
    assert answered(None, delivery, output) is output


async def test_retries_are_in_the_original_trace_and_tell_the_type_of_the_error_but_not_its_text(seen: Spans) -> None:
    app = an_app()

    @app.consumer("orders", retry=[1, 2], breaker=None)
    async def charge(body: bytes) -> None:
        raise ValueError("card 4111 1111 1111 1111")

    async with testing.run(app) as shop:
        await shop.publish("orders", b"", headers=TRACEPARENT)
        await shop.drain()

    attempts = seen.named("process orders")
    assert [attribute(span, "redrive.attempt") for span in attempts] == [1, 2, 3]
    assert {trace_of(span) for span in attempts} == {TRACE}
    assert {attribute(span, "error.type") for span in attempts} == {"ValueError"}
    assert {span.status.status_code for span in attempts} == {trace.StatusCode.ERROR}
    assert "4111" not in "".join(span.to_json() for span in attempts)
    assert shop.letters.one().trace_id == TRACE


async def test_a_redrive_is_a_trace_of_its_own_that_is_linked_to_the_original_one(seen: Spans) -> None:
    app = an_app()
    mended = False

    @app.consumer("orders", retry=0, breaker=None)
    async def charge(body: bytes) -> None:
        if not mended:
            raise ValueError

    async with testing.run(app) as shop:
        await shop.publish("orders", b"", headers=TRACEPARENT)
        await shop.drain()
        mended = True
        dlq = shop.broker.dead_letters("orders")
        (entry,) = await dlq.peek(10)
        await dlq.redrive(entry.entry_id)
        await shop.drain()

    died, redriven = seen.named("process orders")
    assert (trace_of(died), redriven.parent) == (TRACE, None)
    assert trace_of(redriven) != TRACE
    assert [f"{link.context.trace_id:032x}" for link in redriven.links] == [TRACE]
    assert attribute(redriven, "redrive.generation") == 1
    assert attribute(redriven, "redrive.letter_id") == shop.letters.one().letter_id


def test_a_batch_is_one_span_that_is_linked_to_every_message_in_it() -> None:
    seen = Spans()
    deliveries = [
        Delivery(Message(id=number, queue="orders", body=b"", headers=headers), "shop", NOW)
        for number, headers in (("1", (("traceparent", TRACEPARENT["traceparent"].encode()),)), ("2", ()))
    ]
    with OpenTelemetryTracing("redis", provider=seen.provider).attempt(deliveries):
        pass

    span = seen.only("process orders")
    assert (span.parent, attribute(span, "messaging.batch.message_count")) == (None, 2)
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [TRACE]


async def test_batches_of_a_worker_lead_back_to_every_message(seen: Spans) -> None:
    app = an_app()

    @app.batch_consumer("orders", size=10)
    async def charge(bodies: list[bytes]) -> None:
        pass

    async with testing.run(app) as shop:
        for _ in range(3):
            await shop.publish("orders", b"")
        await shop.drain()

    batches = seen.named("process orders")
    linked = {link.context.span_id for batch in batches for link in batch.links}
    continued = {batch.parent.span_id for batch in batches if batch.parent is not None}  # a batch of one
    assert linked | continued == {context_of(span).span_id for span in seen.named("publish orders")}


@pytest.mark.parametrize("header", [b"", b"\xff\xfe", b"00-0-0-01", b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01"])
async def test_a_header_that_is_no_context_begins_a_trace(seen: Spans, header: bytes) -> None:
    app = an_app()

    @app.consumer("orders")
    async def charge(body: bytes) -> None:
        pass

    async with testing.run(app) as shop:
        await shop.publish("orders", b"", headers={"Traceparent": header})
        await shop.drain()

    assert seen.only("process orders").parent is None


def test_what_surrounds_the_worker_is_not_the_parent_of_its_attempts() -> None:
    seen = Spans()
    tracing = OpenTelemetryTracing("redis", provider=seen.provider)
    delivery = Delivery(Message(id="1", queue="orders", body=b""), "shop", NOW)
    with trace.get_tracer("user", tracer_provider=seen.provider).start_as_current_span("main"):
        with tracing.attempt([delivery]):
            pass
        assert trace.get_current_span().is_recording()

    assert seen.only("process orders").parent is None


def test_without_tracing_nothing_stands_around_an_attempt() -> None:
    async def begin(delivery: Delivery) -> None:
        pass

    def call(delivery: Delivery) -> None:
        pass

    assert traced(None, begin) is begin
    assert traced_call(None, call) is call
    with spans(None)([]) as nothing:
        assert nothing is None
