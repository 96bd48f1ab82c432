"""Redrive: a message is never lost, and a failed one finds its way back."""

from redrive.app import App
from redrive.core.backoff import Additive, Constant, Exponential, Jitter, Table
from redrive.core.classify import Classifier
from redrive.core.context import ContextRule
from redrive.core.delivery import Delivery
from redrive.core.errors import (
    BrokerError,
    BrokerUnavailable,
    ConfigError,
    DeadLetterError,
    DeadLetterQueueClosed,
    DeadLetterQueueFull,
    DeliveryExpired,
    LetterNotFound,
    MissingExtra,
    NotAllowed,
    QueueNotFound,
    RedriveError,
    StateConflict,
    StoreError,
    StoreUnavailable,
)
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import ACK, GiveUp, RetryLater
from redrive.core.place import DeadLetterPlace
from redrive.core.policy import RetryPolicy
from redrive.core.ports import DeadLetterQueue
from redrive.core.privacy import PrivacyFilter
from redrive.core.reason import Reason
from redrive.wiring import KafkaDeadLetterQueue, RedisDeadLetterQueue, connect, dead_letter
from redrive.worker.breaker import BreakerRules
from redrive.worker.dead_letter_queues import BrokerDeadLetterQueue
from redrive.worker.payload import InvalidPayload
from redrive.worker.validation import Validation

__all__ = [
    "ACK",
    "Additive",
    "App",
    "BreakerRules",
    "BrokerDeadLetterQueue",
    "BrokerError",
    "BrokerUnavailable",
    "Classifier",
    "ConfigError",
    "Constant",
    "ContextRule",
    "DeadLetter",
    "DeadLetterError",
    "DeadLetterPlace",
    "DeadLetterQueue",
    "DeadLetterQueueClosed",
    "DeadLetterQueueFull",
    "Delivery",
    "DeliveryExpired",
    "Exponential",
    "GiveUp",
    "InvalidPayload",
    "Jitter",
    "KafkaDeadLetterQueue",
    "LetterNotFound",
    "Message",
    "MissingExtra",
    "NotAllowed",
    "PrivacyFilter",
    "QueueNotFound",
    "Reason",
    "RedisDeadLetterQueue",
    "RedriveError",
    "RetryLater",
    "RetryPolicy",
    "StateConflict",
    "StoreError",
    "StoreUnavailable",
    "Table",
    "Validation",
    "connect",
    "dead_letter",
]
