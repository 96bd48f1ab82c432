"""The one place where what NATS says becomes ours."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, DeadLetterQueueFull, QueueNotFound

STREAM_NOT_FOUND: Final = 10059
CONSUMER_NOT_FOUND: Final = 10014
NO_MESSAGE: Final = 10037
WRONG_LAST: Final = 10071
STREAM_NAME_TAKEN: Final = 10058
CONSUMER_EXISTS: Final = 10148
CONSUMER_NAME_TAKEN: Final = 10105
_OVERLAP: Final = 10065
_NOT_ENABLED: Final = frozenset({10076, 10039, 10023})
_FULL: Final = frozenset({10077, 10047, 10028})
_ONE_GROUP: Final = frozenset({10099, 10100, 10101})
_FOR_NOW: Final = 503


class Refused(BrokerError):
    """The server answered no; `code` is its own number for it."""

    def __init__(self, text: str, *, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class TooLarge(BrokerError):
    """A message is larger than the server takes; sending it would make the server cut the connection."""


def error_of(told: Mapping[str, Any], *, what: str) -> Exception:
    """What to raise for the `error` of an answer."""
    status, code = int(told.get("code") or 0), int(told.get("err_code") or 0)
    text = f"nats: {what}: {told.get('description') or 'no reason given'} ({code or status})"
    if code in (STREAM_NOT_FOUND, CONSUMER_NOT_FOUND):
        return QueueNotFound(text)
    if code in _ONE_GROUP:
        return ConfigError(f"{text}: this stream lets one group have a subject; choose interest or limits as retention")
    if code == _OVERLAP:
        return ConfigError(f"{text}: another stream takes a part of these subjects")
    if code in _FULL:
        return DeadLetterQueueFull(text)
    if code in _NOT_ENABLED or status == _FOR_NOW:
        return BrokerUnavailable(text)
    return Refused(text, code=code)


def unavailable(error: BaseException) -> BrokerUnavailable:
    """What to raise when the server cannot be reached, or says nothing."""
    ours = BrokerUnavailable(f"nats: no service for now ({type(error).__name__}: {error})")
    ours.__cause__ = error
    return ours
