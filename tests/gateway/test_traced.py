"""Traces: a request and its attempts are one trace, in memory and across processes."""

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redrive import connect
from redrive.core.errors import RetriesExhausted
from redrive.gateway import Gateway, Outside
from redrive.observe.tracing import OpenTelemetryTracing
from redrive.testing import RecordingDeadLetterQueue
from redrive.wiring import answering
from tests.unit.gateway.stage import Provider, a_model, a_request, answer, refusal


class Spans:
    """A tracing that keeps what it is told."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracing = OpenTelemetryTracing("llm", provider=provider)

    @property
    def names(self) -> list[tuple[str, object]]:
        """What each span is called, and how it failed."""
        return [(span.name, (span.attributes or {}).get("error.type")) for span in self._kept.get_finished_spans()]

    @property
    def traces(self) -> set[int]:
        return {span.context.trace_id for span in self._kept.get_finished_spans() if span.context is not None}


async def test_a_request_and_its_attempts_are_one_trace_which_the_letter_knows() -> None:
    spans, dlq = Spans(), RecordingDeadLetterQueue()
    outside = Outside(transport=Provider(always=refusal(500)), tracing=spans.tracing)
    async with Gateway({"fast": a_model()}, policy=[0], dlq=dlq, outside=outside) as gateway:
        with pytest.raises(RetriesExhausted):
            await gateway.ask(a_request())

    failed = ("process llm.fast", "ServerFault")
    assert spans.names == [("publish llm.fast", None), failed, failed]
    (trace,) = spans.traces
    assert dict(dlq.last.headers)["traceparent"].startswith(f"00-{trace:032x}-".encode())


async def test_the_attempts_of_a_worker_are_in_the_trace_of_whoever_submitted(tmp_path: Path) -> None:
    spans, broker = Spans(), connect(f"sqlite:///{tmp_path}/llm.db")
    outside = Outside(transport=Provider(refusal(500), always=answer()), tracing=spans.tracing)
    gateway = Gateway({"fast": a_model()}, policy=[0], broker=broker, outside=outside)
    async with gateway, answering(gateway):
        await gateway.ask(a_request())
    await broker.aclose()

    assert [name for name, _ in spans.names] == ["publish llm.fast", "process llm.fast", "process llm.fast"]
    assert len(spans.traces) == 1
