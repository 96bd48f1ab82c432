"""Traces by OpenTelemetry: a span for each attempt and each publishing, named as its messaging conventions say.

Retries are spans in the trace of whoever published the message. A redrive, which may come days later, begins a trace of
its own that is linked to it. No payload, and no text of an exception, is in a span.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from redrive.core.delivery import Delivery
from redrive.core.errors import MissingExtra
from redrive.core.message import Headers

try:
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
except ImportError as error:
    raise MissingExtra("tracing", extra="tracing") from error

_Attributes = Mapping[str, str | int]


class OpenTelemetryTracing:
    """The port `Tracing`, on the tracer provider and the propagator that the program has set up.

    `system` is the broker, as the conventions name it: redis, kafka. Without a provider nothing is recorded.
    """

    def __init__(self, system: str, *, provider: trace.TracerProvider | None = None) -> None:
        self._system = system
        self._tracer = trace.get_tracer("redrive", tracer_provider=provider)

    @contextmanager
    def attempt(self, deliveries: Sequence[Delivery]) -> Iterator[None]:
        first = deliveries[0]
        origins = [_origin(delivery) for delivery in deliveries]
        continued = len(deliveries) == 1 and not first.generation
        name = f"process {first.message.queue}"
        with self._tracer.start_as_current_span(
            name,
            context=origins[0] if continued else Context(),
            kind=trace.SpanKind.CONSUMER,
            attributes=self._of(first) if len(deliveries) == 1 else self._of_many(deliveries),
            links=[] if continued else _links(origins),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(trace.StatusCode.ERROR)
                raise

    @contextmanager
    def publish(self, queue: str, headers: Headers, *, answers: Delivery | None = None) -> Iterator[Headers]:
        origin = None if answers is None else _origin(answers)
        is_redriven = answers is not None and answers.generation > 0
        with self._tracer.start_as_current_span(
            f"publish {queue}",
            context=Context() if is_redriven else origin,
            kind=trace.SpanKind.PRODUCER,
            attributes=self._done("send", "publish", queue),
            links=_links([origin]) if is_redriven and origin is not None else [],
        ):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            present = {name.lower() for name, _ in headers}
            added = [(name, value.encode()) for name, value in carrier.items() if name.lower() not in present]
            yield (*headers, *added)

    def _of(self, delivery: Delivery) -> _Attributes:
        message = delivery.message
        found: dict[str, str | int] = {
            **self._done("process", "process", message.queue),
            "messaging.consumer.group.name": delivery.group,
            "messaging.message.id": message.id,
            "messaging.message.body.size": len(message.body),
            "redrive.attempt": delivery.attempt,
            "redrive.generation": delivery.generation,
        }
        if delivery.letter_id is not None:
            found["redrive.letter_id"] = delivery.letter_id
        return found

    def _of_many(self, deliveries: Sequence[Delivery]) -> _Attributes:
        return {
            **self._done("process", "process", deliveries[0].message.queue),
            "messaging.consumer.group.name": deliveries[0].group,
            "messaging.batch.message_count": len(deliveries),
        }

    def _done(self, kind: str, name: str, queue: str) -> _Attributes:
        return {
            "messaging.system": self._system,
            "messaging.operation.type": kind,
            "messaging.operation.name": name,
            "messaging.destination.name": queue,
        }


def _origin(delivery: Delivery) -> Context:
    """Where a message comes from, as its headers tell; nothing that surrounds the worker itself."""
    carrier = {name.lower(): value.decode("utf-8", "replace") for name, value in reversed(delivery.message.headers)}
    return propagate.extract(carrier, context=Context())


def _links(origins: Sequence[Context]) -> list[trace.Link]:
    spans = (trace.get_current_span(origin).get_span_context() for origin in origins)
    return [trace.Link(span) for span in spans if span.is_valid]
