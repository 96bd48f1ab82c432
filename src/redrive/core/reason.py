"""Why a message was given up: the closed list that letters, metrics and people use."""

from enum import StrEnum


class Reason(StrEnum):
    """Why a message became a dead letter."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    REJECTED = "rejected"  # the handler, or a rule about its exception, said that no retry can help
    INVALID = "invalid"  # the payload is not what the handler asks for
    EXPIRED = "expired"  # the message's own expiry passed before it could run
    DEADLINE = "deadline"  # the policy's budget, or the request's deadline, is spent
    WORKER_CRASH = "worker_crash"  # its process died crash_limit times while it ran alone
    VANISHED = "vanished"  # the broker lost the body while the message was pending
    UNKNOWN = "unknown"  # a foreign letter that does not say

    __hash__ = str.__hash__  # that of a name, as for any text: deaths are counted by it
