"""`redrive config`: the settings, and where each comes from."""

from datetime import timedelta
from typing import Any

from cyclopts import App

from redrive.cli.desk import BOTH, AtBoth
from redrive.cli.output import Column, show, span

config = App(name="config", help="Show the settings, and where each comes from.")


def _said(key: str, value: Any) -> str:
    """A value as it is written in redrive.toml, and in the documentation."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={queue}" if queue else name for name, queue in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if value is None:
        return _NONE.get(key, "none")
    return _size(value) if key in _SIZES else _number(value)


_NONE = {
    "kafka.dlq.retention": "unlimited",
    "alerts.repeat_every": "never",
    **{f"alerts.{rule}": "off" for rule in ("growth", "threshold", "size", "age")},
}
"""What a value that is none is called, where that is something to say."""

_SIZES = ("service.body_limit", "kafka.dlq.max_message")


def _number(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _size(number: int) -> str:
    for unit, length in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number % length == 0:
            return f"{number // length}{unit}"
    return f"{number}B"


_COLUMNS = (
    Column("key", "key", style=lambda _: "bold"),
    Column("value", "value", wraps=True),
    Column("from", "origin", style=lambda origin: "dim" if origin == "default" else ""),
)


@config.default
@config.command(name="show")
def show_config(*, at: AtBoth = BOTH) -> None:
    """Show every setting with the value that holds and where it comes from; passwords are masked."""
    from redrive.config import read_settings
    from redrive.config.origins import shown

    found = shown(read_settings(flags={"broker": at.broker, "store": at.store}))
    facts = (one._asdict() if at.json else {**one._asdict(), "value": _said(one.key, one.value)} for one in found)
    show(facts, _COLUMNS, as_json=at.json, empty="")
