"""What a service answers when it cannot do what was asked for, as Redrive's own errors: the one place that knows."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from redrive.core.errors import (
    ConfigError,
    LetterNotFound,
    NotAllowed,
    RedriveError,
    StateConflict,
    StoreError,
    StoreUnavailable,
)

PROBLEM = "application/problem+json"
_BEHIND_A_PROXY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


def away(url: str, why: str) -> StoreUnavailable:
    """Nobody answers, or no longer."""
    return StoreUnavailable(f"no service answers at {url}: {why}")


def stranger(url: str, why: str) -> ConfigError:
    """Somebody answers, but no Redrive of a version that can be understood."""
    return ConfigError(f"--url: no Redrive service is at {url}: {why}")


def error_of(status: int, kind: str, body: bytes, *, url: str, location: str | None) -> RedriveError:
    """The error for an answer that is no success."""
    problem = _problem(kind, body)
    if problem is not None:
        return _error(status, problem, url=url)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return stranger(url, f"it points to {location or 'somewhere else'}, and a token goes only where you send it")
    if status in _BEHIND_A_PROXY:
        return away(url, f"a proxy says {status}")
    return stranger(url, f"the answer is {status}, {kind}")


def _error(status: int, problem: dict[str, Any], *, url: str) -> RedriveError:
    detail = str(problem["detail"])
    if status == HTTPStatus.UNAUTHORIZED:
        return NotAllowed(f"{url} wants a token that is valid: REDRIVE_TOKEN, or --token-file")
    if status == HTTPStatus.METHOD_NOT_ALLOWED or detail == HTTPStatus.NOT_FOUND.phrase:
        return stranger(url, "it does not know what is asked for, and may be of another version")
    if status in _WHAT_IT_SAYS:
        return _WHAT_IT_SAYS[status](detail)
    mistakes = _mistakes(problem)
    if mistakes or status in (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
        return ConfigError(mistakes or detail)
    in_a_while = status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
    return (StoreUnavailable if in_a_while else StoreError)(f"{url}: {detail}")


_WHAT_IT_SAYS: Mapping[int, type[RedriveError]] = {
    HTTPStatus.FORBIDDEN: NotAllowed,
    HTTPStatus.NOT_FOUND: LetterNotFound,
    HTTPStatus.CONFLICT: StateConflict,
}


def _problem(kind: str, body: bytes) -> dict[str, Any] | None:
    if kind != PROBLEM:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "detail" in found else None


def _mistakes(problem: dict[str, Any]) -> Sequence[str]:
    errors = problem.get("errors")
    if not isinstance(errors, list):
        return ()
    told = [(str(one.get("at", "")), str(one.get("detail", ""))) for one in errors if isinstance(one, dict)]
    return [f"{_place(at)}: {detail}" if at else detail for at, detail in told]


def _place(at: str) -> str:
    """`query.from` is where in a request a mistake is; a person knows it as `from`."""
    return at.removeprefix("query.").removeprefix("body.").removeprefix("filter.")
