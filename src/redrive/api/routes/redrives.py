"""Redrives over HTTP: plan one and see what it would do, begin exactly that, look at it, pause, resume, cancel."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from redrive.api.auth import CallerOf, PermittedRoute, ServiceOf, allowed
from redrive.api.pages import LINKED, USUAL, After, Limit, asked, link_next
from redrive.api.redriving import (
    Previewed,
    RedriveFacts,
    RedriveOrder,
    RedriveProgress,
    Why,
    facts_of,
    previewed,
    progress_of,
)
from redrive.core.errors import ConfigError
from redrive.door.filters import NO_NUL
from redrive.triage import redrives as verbs
from redrive.triage.desk import Desk
from redrive.triage.masking import masked_operation
from redrive.triage.selection import select
from redrive.triage.watch import waiting

router = APIRouter(prefix="/redrives", tags=["redrives"], route_class=PermittedRoute)

RedriveId = Annotated[str, Path(max_length=1024, pattern=NO_NUL, description="The redrive's id.")]


NO_REASON = Why()

_CREATED: dict[int | str, dict[str, Any]] = {
    201: {
        "model": RedriveFacts,
        "description": "It has begun: a redriver takes it up.",
        "headers": {"Location": {"description": "Where to look how far it is.", "schema": {"type": "string"}}},
    }
}


@router.post("", responses=_CREATED)
async def plan_or_create(
    order: RedriveOrder,
    request: Request,
    response: Response,
    service: ServiceOf,
    desk: Annotated[Desk, Depends(allowed("redrive"))],
) -> Previewed | RedriveFacts:
    """Say what a redrive would send, or begin the one that was previewed.

    Letters that came since the preview are left alone. If one of those previewed has changed, or another request is
    made with its `preview`, nothing is begun: 409. A preview is begun once: whoever asks again gets the same redrive.
    """
    terms = order.terms()
    wanted = await order.wanted(desk, terms)
    brokers = service.brokers
    if order.dry_run:
        return previewed(await verbs.plan(await select(desk, wanted), terms, brokers=brokers))
    if order.preview is not None:
        redrive = await verbs.begin(desk, wanted, terms, order.preview, brokers=brokers)
    elif order.letter_ids:
        redrive = await verbs.create(desk, await verbs.plan(await select(desk, wanted), terms, brokers=brokers))
    else:
        raise ConfigError("preview: expected what a dry run of the same request has answered")
    response.status_code = HTTPStatus.CREATED
    response.headers["Location"] = f"{request.scope['path']}/{redrive.redrive_id}"
    return facts_of(redrive)


@router.get("", responses=LINKED)
async def list_redrives(
    request: Request,
    response: Response,
    desk: Annotated[Desk, Depends(allowed("read"))],
    caller: CallerOf,
    *,
    limit: Limit = USUAL,
    after: After = None,
) -> list[RedriveFacts]:
    """Redrives, the latest first."""
    page = await asked(verbs.find(desk, limit=limit, after=after))
    link_next(request, response, page.after)
    return [facts_of(masked_operation(one, caller)) for one in page.rows]


@router.get("/{redrive_id}")
async def show_redrive(
    redrive_id: RedriveId, service: ServiceOf, desk: Annotated[Desk, Depends(allowed("read"))], caller: CallerOf
) -> RedriveProgress:
    """One redrive: what was asked for, how far each step is, why it waits, and the answer in words."""
    found = await verbs.show(desk, redrive_id)
    shown = found._replace(redrive=masked_operation(found.redrive, caller))
    return progress_of(shown, waiting=await waiting(found.redrive, found.progress, service.brokers))


@router.post("/{redrive_id}/pause")
async def pause(
    redrive_id: RedriveId, desk: Annotated[Desk, Depends(allowed("redrive"))], said: Why = NO_REASON
) -> RedriveFacts:
    """Send nothing more until it is resumed; what is out stays out, and is heard."""
    return facts_of(await verbs.pause(desk, redrive_id, why=said.why))


@router.post("/{redrive_id}/resume")
async def resume(redrive_id: RedriveId, desk: Annotated[Desk, Depends(allowed("redrive"))]) -> RedriveFacts:
    """Go on, also past canaries that failed in another way or were not heard of: they have been seen now."""
    return facts_of(await verbs.resume(desk, redrive_id))


@router.post("/{redrive_id}/cancel")
async def cancel(
    redrive_id: RedriveId, desk: Annotated[Desk, Depends(allowed("redrive"))], said: Why = NO_REASON
) -> RedriveFacts:
    """End it: what was not sent stays as it was, what is out is still heard."""
    return facts_of(await verbs.cancel(desk, redrive_id, why=said.why))
