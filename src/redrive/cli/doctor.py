"""`redrive doctor`: what could lose messages here, and what to do about it."""

from dataclasses import asdict

from redrive.cli.output import Column, Exit, show
from redrive.cli.target import HERE, Target, open_broker

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}

_COLUMNS = (
    Column("", "level", style=lambda level: _STYLES.get(level, "")),
    Column("check", "check"),
    Column("found", "found", wraps=True),
    Column("without it", "prevents", wraps=True, style=lambda _: "dim"),
)
_ADVICE = Column("advice", "advice", wraps=True)


async def doctor(*, target: Target = HERE) -> Exit:
    """Look for what could lose messages here, and say what to do. Exits with 1 if a check fails."""
    async with open_broker(target) as broker:
        findings = await broker.diagnose()
    columns = _COLUMNS if all(finding.level == "ok" for finding in findings) else (*_COLUMNS, _ADVICE)
    show(map(asdict, findings), columns, as_json=target.json, empty="nothing was looked at")
    return Exit.NO if any(finding.level == "fail" for finding in findings) else Exit.OK
