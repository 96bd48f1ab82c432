"""Redrive on an SQLite file."""

from typing import Any

from benchmarks import low_load, redrive
from benchmarks.load import marked


def fill(path: str, messages: int) -> None:
    redrive.fill(_url(path), messages)


def drain(path: str, messages: int, *, whole: bool = True) -> dict[str, Any]:
    return redrive.drain(_url(path), messages, whole=whole)


def drain_typed(path: str, messages: int) -> dict[str, Any]:
    return redrive.drain_typed(_url(path), messages)


def drain_failing(path: str, messages: int, *, log_level: str) -> dict[str, Any]:
    return redrive.drain_failing(_url(path), messages, log_level=log_level, dead=marked(messages))


def wait_for_handler(path: str, messages: int, *, apart: bool) -> dict[str, Any]:
    publisher = f"{low_load.__name__}:publish" if apart else None
    return low_load.wait_for_handler(_url(path), messages, publisher=publisher)


def wait_for_retry(path: str, messages: int) -> dict[str, Any]:
    return low_load.wait_for_retry(_url(path), messages)


def _url(path: str) -> str:
    return f"sqlite:///{path}"
