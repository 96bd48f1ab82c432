"""Asking again while the answer is one that will pass."""

import time
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from redrive.brokers.kafka.errors import PASSING, UNKNOWN, code_of, translate

T = TypeVar("T")

IN_ALL: Final = 30.0  # seconds for an answer that will come when something has passed
NEWS: Final = 5.0  # seconds until every broker of a cluster has heard of a topic that was begun


def ask(call: Callable[[], T]) -> T:
    """The answer of a client, with our exceptions."""
    try:
        return call()
    except KafkaException as error:
        raise translate(error) from error


def insist(call: Callable[[], T], *, patience: float = IN_ALL, passing: Collection[int] = PASSING) -> T:
    """The answer of a client, with our exceptions; asked again while the cluster says that this will pass.

    Of topics that are there: a broker that was not asked before may hear of a new one later than the others.
    """
    began = time.monotonic()
    while True:
        try:
            return call()
        except KafkaException as error:
            code, passed = code_of(error), time.monotonic() - began
            if passed > patience or not (code in passing or (code in UNKNOWN and passed <= NEWS)):
                raise translate(error) from error
        time.sleep(0.01)
