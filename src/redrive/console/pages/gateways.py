"""Gateways: the models that requests go to, how much waits for each, and what holds it back."""

from datetime import timedelta
from hashlib import sha256

from starlette.responses import Response

from redrive.console.visit import Visit, page
from redrive.triage.gateways import GatewayRow, gateways

PATIENCE = timedelta(seconds=1)  # with a broker, before the page does without it
SHOWN = 100


@page("/gateways", "gateways")
async def _gateways(visit: Visit) -> Response:
    service = visit.service
    found = await gateways(service.brokers, service.queues, clock=service.clock, patience=PATIENCE)
    return visit.render(
        "gateways.html",
        rows=[(_key(row), row) for row in found[:SHOWN]],
        left_out=len(found) - len(found[:SHOWN]),
        now=visit.now,
    )


def _key(row: GatewayRow) -> str:
    return sha256(f"{row.lane.broker}/{row.lane.queue}/{row.worker.name}".encode()).hexdigest()[:16]


routes = [_gateways]
