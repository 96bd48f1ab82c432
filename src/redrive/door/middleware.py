"""What stands before every room, in the order in which a request meets it."""

from starlette.middleware import Middleware

from redrive.door.deadline import CHANGE_WITHIN, READ_WITHIN, Deadline
from redrive.door.guard import Guard, LoopbackOnly
from redrive.door.headers import SecurityHeaders
from redrive.door.limits import BodyCap, RateLimit
from redrive.service import Service


def middleware(service: Service, guard: Guard) -> list[Middleware]:
    """For an app that answers from this service, behind this guard."""
    return [
        Middleware(SecurityHeaders),
        Middleware(RateLimit, rate=service.settings.rate_limit, clock=service.clock),
        *([] if guard.needs_token else [Middleware(LoopbackOnly)]),
        Middleware(Deadline, reading=READ_WITHIN, changing=CHANGE_WITHIN),
        Middleware(BodyCap, most=service.settings.body_limit),
    ]
