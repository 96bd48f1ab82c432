"""The gateway's errors as its own clients see them: a status, and a body in the OpenAI form."""

from typing import Any, Final

from redrive.core.errors import (
    DeadlineExceeded,
    GatewayBusy,
    GatewayClosed,
    GatewayError,
    QuotaExhausted,
    RateLimited,
    RequestIdConflict,
    RequestRejected,
    RetriesExhausted,
)

_STATUS: Final[dict[type[GatewayError], int]] = {
    RateLimited: 429,
    QuotaExhausted: 429,
    DeadlineExceeded: 504,
    GatewayBusy: 503,
    GatewayClosed: 503,
    RequestIdConflict: 409,
}
_KEYLESS: Final = (401, 403)
_REJECTED: Final = range(400, 500)


def status_of(error: GatewayError) -> int:
    """The status of an error. That the gateway's own key is refused is the gateway's trouble, not its client's."""
    if isinstance(error, RequestRejected):
        status = error.status_code or 400
        return status if status in _REJECTED and status not in _KEYLESS else 502
    if isinstance(error, RetriesExhausted) and isinstance(error.last, RateLimited):
        return 429
    return _STATUS.get(type(error), 502)


def problem_of(error: GatewayError) -> dict[str, Any]:
    """The body of an error."""
    return {
        "error": {
            "message": str(error),
            "type": type(error).__name__,
            "code": error.code,
            "request_id": error.request_id,
            "letter_id": error.letter_id,
            "possibly_executed": error.possibly_executed,
        }
    }
