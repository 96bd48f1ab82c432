"""The pages, one module for each part of the console."""

from redrive.console.pages import (
    audit,
    discard,
    gateways,
    incident,
    incidents,
    letter,
    letters,
    overview,
    redrive,
    redrives,
    settings,
    sign_in,
)

ROUTES = [
    *(overview.routes + incidents.routes + incident.routes + letters.routes + letter.routes + redrives.routes),
    *(redrive.routes + discard.routes + gateways.routes + audit.routes + settings.routes + sign_in.routes),
]
