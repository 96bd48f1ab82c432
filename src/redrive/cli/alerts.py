"""`redrive alerts`: who is told, and whether they hear it."""

from cyclopts import App

from redrive.cli.anywhere import STORE, Anywhere, open_clerk
from redrive.cli.output import Column, Exit, show

alerts = App(name="alerts", help="Whether those who are told of alerts hear them.")

_COLUMNS = (
    Column("notifier", "notifier", style=lambda _: "bold"),
    Column("place", "place", wraps=True),
    Column("taken", "taken", style=lambda taken: "green" if taken else "red", shown=lambda taken: ("no", "yes")[taken]),
    Column("why", "why", wraps=True),
)


_NOBODY = "nobody is told: [alerts] names neither a webhook nor an Alertmanager"


@alerts.command(name="test")
async def send_test(*, at: Anywhere = STORE) -> int:
    """Send every notifier an alert that says it is a test. Those of redrive.toml, or those of a service."""
    async with open_clerk(at, create=True) as clerk:
        found = await clerk.alerts.test()
    facts = [{"notifier": one.notifier, "place": one.place, "taken": not one.why, "why": one.why} for one in found]
    show(facts, _COLUMNS, as_json=at.json, empty=_NOBODY)
    return Exit.OK if found and not any(one.why for one in found) else Exit.NO
