"""Redrive on Kafka, on the event loop that it is told; the backlog was written by others."""

from typing import Any

from benchmarks import loops, redrive


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    loops.choose(loop)
    return redrive.drain(url, messages)


def drain_batches(url: str, messages: int, *, loop: str, size: int) -> dict[str, Any]:
    loops.choose(loop)
    return redrive.drain_batches(url, messages, size=size)


def drain_typed(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    loops.choose(loop)
    return redrive.drain_typed(url, messages)


def drain_failing(url: str, messages: int, *, loop: str, dead: int, log_level: str) -> dict[str, Any]:
    loops.choose(loop)
    return redrive.drain_failing(url, messages, log_level=log_level, dead=dead)
