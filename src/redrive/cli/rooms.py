"""The rooms of the service: the API under its paths, the console everywhere else."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from redrive.door.audience import Audience
    from redrive.door.guard import Guard
    from redrive.service import Service


def furnish(service: "Service", guard: "Guard", audience: "Audience") -> "Mapping[str, ASGIApp]":
    """Both of them, over one service and behind one guard."""
    from redrive.api.app import ROOMS, create_app
    from redrive.console import asgi

    api = create_app(service, guard=guard, audience=audience)
    return {"": asgi(service, guard=guard), **dict.fromkeys(ROOMS, api)}
