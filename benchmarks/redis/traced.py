"""Redrive with a span for every attempt, by OpenTelemetry's SDK; nobody exports them."""

from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.redis import redrive


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    trace.set_tracer_provider(TracerProvider())
    return redrive.drain(url, messages, loop=loop, tracing=True)
