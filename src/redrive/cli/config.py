"""`redrive config`: the settings, and where each comes from."""

from datetime import timedelta
from typing import Any

from cyclopts import App

from redrive.cli.desk import BOTH, AtBoth
from redrive.cli.output import Column, show, span

config = App(name="config", help="Show the settings, and where each comes from.")


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={queue}" if queue else name for name, queue in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "-" if value is None else str(value)


_COLUMNS = (
    Column("key", "key", style=lambda _: "bold"),
    Column("value", "value", shown=_said, wraps=True),
    Column("from", "origin", style=lambda origin: "dim" if origin == "default" else ""),
)


@config.default
@config.command(name="show")
def show_config(*, at: AtBoth = BOTH) -> None:
    """Show every setting with the value that holds and where it comes from; passwords are masked."""
    from redrive.config import read_settings
    from redrive.config.origins import shown

    found = shown(read_settings(flags={"broker": at.broker, "store": at.store}))
    show((one._asdict() for one in found), _COLUMNS, as_json=at.json, empty="")
