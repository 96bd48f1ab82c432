"""What stands at the root: whether the service is well, what it counts, and what it can do."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from redrive.api.auth import PermittedRoute, ServiceOf, allowed
from redrive.api.docs import page_of
from redrive.triage.desk import Desk

router = APIRouter(tags=["service"])
guarded = APIRouter(tags=["service"], route_class=PermittedRoute)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the process answers."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service can work; by dependency, `ok` or what is wrong."""

    status: Literal["ready", "not ready"]
    dependencies: dict[str, str]


@router.get("/healthz")
async def health() -> Health:
    """Whether the process answers: if it does, it is well. Whether it can work is what /readyz says."""
    return Health()


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Something that it needs is away."}})
async def readiness(request: Request, service: ServiceOf, response: Response) -> Readiness:
    """Whether store and brokers answer; 503 if one does not. Where tokens are needed it does not say why."""
    # This is open to everybody, and what is wrong may name hosts and files.
    hidden = "does not answer" if request.app.state.guard.needs_token else None
    found = {name: (hidden or trouble) if trouble else "ok" for name, trouble in (await service.ready()).items()}
    if all(said == "ok" for said in found.values()):
        return Readiness("ready", found)
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return Readiness("not ready", found)


@guarded.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(_: Annotated[Desk, Depends(allowed("read"))], service: ServiceOf) -> Response:
    """What is counted, for Prometheus."""
    return Response(generate_latest(service.metrics), headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Every operation, on one page without scripts."""
    return page_of(request.app.openapi())


router.include_router(guarded)
