"""Commands at a store that they open themselves: triage does what is asked for, here."""

from redrive.cli.at_store.alerts import AlertsHere
from redrive.cli.at_store.audit import AuditHere
from redrive.cli.at_store.incidents import IncidentsHere
from redrive.cli.at_store.letters import LettersHere
from redrive.cli.at_store.redrives import RedrivesHere
from redrive.cli.at_store.tokens import TokensHere
from redrive.cli.clerk import Clerk
from redrive.core.ports import Broker
from redrive.triage.desk import Desk


def clerk_at(desk: Desk, broker: Broker | None = None) -> Clerk:
    """Who answers at a desk. Only with a broker can letters be sent back from here."""
    return Clerk(
        letters=LettersHere(desk),
        incidents=IncidentsHere(desk),
        redrives=RedrivesHere(desk, broker),
        audit=AuditHere(desk),
        tokens=TokensHere(desk),
        alerts=AlertsHere(desk),
    )
