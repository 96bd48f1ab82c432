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
    ├─ MissingExtra           names the exact pip command
    └─ NotAllowed

Adapters turn foreign exceptions into these in one place each.
"""

from collections.abc import Sequence


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


class MissingExtra(RedriveError):
    """An optional dependency is not installed; the message is the pip command that installs it."""

    def __init__(self, what: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs an optional dependency: pip install 'redrive[{extra}]'")


class NotAllowed(RedriveError):
    """The caller's role does not permit this."""
