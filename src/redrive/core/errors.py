"""Every exception Redrive raises on its own account.

    RedriveError
    ├─ ConfigError            every mistake listed, with the key and what was expected
    ├─ BrokerError
    │   ├─ BrokerUnavailable  the server or file cannot be reached or refuses service for now
    │   ├─ DeliveryExpired    the lease on a delivery has passed to somebody else
    │   └─ QueueNotFound
    ├─ DeadLetterError
    │   ├─ DeadLetterQueueClosed
    │   └─ DeadLetterQueueFull
    ├─ StoreError
    │   ├─ StoreUnavailable
    │   ├─ LetterNotFound
    │   └─ StateConflict
    ├─ GatewayError           what becomes of a request to a model, if it is no answer
    │   ├─ RateLimited        the provider asks for a pause; `until`, if it is longer than the caller can wait
    │   ├─ QuotaExhausted     nothing is left to pay with: waiting does not help
    │   ├─ ServerFault        the provider could not answer for now
    │   ├─ TransportFault     the answer did not arrive
    │   │   └─ AttemptTimeout
    │   ├─ BadAnswer          what arrived is no answer
    │   ├─ StreamInterrupted  an answer broke off after its first words
    │   ├─ RequestRejected    the provider, or the gateway, will not take it
    │   ├─ RetriesExhausted   every attempt failed; the last failure is its cause
    │   ├─ DeadlineExceeded   the request's deadline has passed
    │   ├─ GatewayBusy        the queue of the model is full
    │   ├─ GatewayClosed
    │   └─ RequestIdConflict  another request with this id is under way
    ├─ NotifierError          whoever is told of alerts did not take them
    ├─ MissingExtra           names the exact pip command
    └─ NotAllowed

Adapters turn foreign exceptions into these in one place each.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta


class RedriveError(Exception):
    """The root: catching it catches everything Redrive raises on its own account."""


class ConfigError(RedriveError):
    """Settings that cannot work. All mistakes are reported at once, one line each."""

    def __init__(self, mistakes: str | Sequence[str]) -> None:
        self.mistakes: tuple[str, ...] = (mistakes,) if isinstance(mistakes, str) else tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class BrokerError(RedriveError):
    """The broker said no, or said nothing."""


class BrokerUnavailable(BrokerError):
    """The broker cannot be reached, or refuses service for now; the same call may succeed later."""


class DeliveryExpired(BrokerError):
    """The lease on this delivery has passed to somebody else; what its handler did may happen again."""


class QueueNotFound(BrokerError):
    """No queue of this name exists on the broker."""


class DeadLetterError(RedriveError):
    """A dead letter could not be written. The message it copies must stay where it is."""


class DeadLetterQueueClosed(DeadLetterError):
    """The dead letter queue has been closed."""


class DeadLetterQueueFull(DeadLetterError):
    """The dead letter queue has reached its capacity."""


class StoreError(RedriveError):
    """The letter store said no, or said nothing."""


class StoreUnavailable(StoreError):
    """The letter store cannot be reached for now."""


class LetterNotFound(StoreError):
    """No letter with this id is there."""


class StateConflict(StoreError):
    """The letter has changed since it was looked at."""


class GatewayError(RedriveError):
    """A request to a model has no answer. Each request has an error object of its own.

    `status_code`, `code` and `provider_request_id` are the provider's; `retry_after` is how long it asks to wait.
    `possibly_executed`: a request was written whose answer did not arrive, so the provider may have done and billed it.
    `letter_id` names the dead letter, None if there is none; `refused` says why, if one should have been written.
    """

    request_id: str = ""
    model: str = ""
    letter_id: str | None = None
    refused: str = ""

    def __init__(
        self,
        why: str = "",
        *,
        status_code: int | None = None,
        code: str | None = None,
        retry_after: timedelta | None = None,
        provider_request_id: str = "",
        possibly_executed: bool = False,
    ) -> None:
        super().__init__(why)
        self.status_code = status_code
        self.code = code
        self.retry_after = retry_after
        self.provider_request_id = provider_request_id
        self.possibly_executed = possibly_executed


class RateLimited(GatewayError):
    """The provider asks for a pause. `until` is set if it ends after the request's deadline: ask again then."""

    until: datetime | None = None


class QuotaExhausted(GatewayError):
    """The account has nothing left to pay with. No retry can help."""


class ServerFault(GatewayError):
    """The provider could not answer for now."""


class TransportFault(GatewayError):
    """The connection could not be made, or broke before the answer was there."""


class AttemptTimeout(TransportFault):
    """The whole answer did not arrive within the time of one attempt."""


class BadAnswer(GatewayError):
    """What arrived is no answer: cut, empty, no JSON, an error in a success, too large. `answer` is its beginning."""

    answer: str = ""


class StreamInterrupted(GatewayError):
    """An answer broke off after its first words, `partial`, had been handed out: it is not asked for again."""

    partial: str = ""


class RequestRejected(GatewayError):
    """The provider, or the gateway, will not take this request. No retry can help."""


class RetriesExhausted(GatewayError):
    """Every attempt failed. `attempts` were made; the last failure is `last`, and the cause of this exception."""

    attempts: int = 0
    last: GatewayError | None = None


class DeadlineExceeded(GatewayError):
    """The request's deadline has passed, or would pass before the next attempt. `attempts` were made."""

    attempts: int = 0


class GatewayBusy(GatewayError):
    """The queue of the model is full."""


class GatewayClosed(GatewayError):
    """The gateway is closed, or was closed before the answer was there."""


class RequestIdConflict(GatewayError):
    """Another request with the same id is under way, and it asks for something else."""


class NotifierError(RedriveError):
    """Whoever is told of alerts did not take them; the same ones may be told again.

    `retry_after` is how many seconds they want to be left alone, if they say so.
    """

    def __init__(self, message: str, *, retry_after: str | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class MissingExtra(RedriveError):
    """An optional dependency is not installed; the message is the pip command that installs it."""

    def __init__(self, what: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs an optional dependency: pip install 'redrive[{extra}]'")


class NotAllowed(RedriveError):
    """The caller's role does not permit this."""
