"""Commands at a service: its API does what is asked for, there."""

from redrive.cli.at_service.alerts import AlertsThere
from redrive.cli.at_service.audit import AuditThere
from redrive.cli.at_service.client import Client
from redrive.cli.at_service.incidents import IncidentsThere
from redrive.cli.at_service.letters import LettersThere
from redrive.cli.at_service.redrives import RedrivesThere
from redrive.cli.at_service.tokens import TokensThere
from redrive.cli.clerk import Clerk


def clerk_at(url: str, *, token: str | None) -> Clerk:
    """Who answers at a service. Nothing is asked yet. Raises `ConfigError` for a URL that is none."""
    client = Client(url, token=token)
    return Clerk(
        letters=LettersThere(client),
        incidents=IncidentsThere(client),
        redrives=RedrivesThere(client),
        audit=AuditThere(client),
        tokens=TokensThere(client),
        alerts=AlertsThere(client),
    )
