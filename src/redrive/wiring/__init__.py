"""The only place that knows adapters: from a URL to a broker or a store, and what is made of the two.

Each adapter is imported when a URL asks for it; a missing extra names the exact pip command.
"""

from redrive.wiring.around import cipher, notifiers, tracing
from redrive.wiring.brokers import connect, connect_existing, is_embedded
from redrive.wiring.counting import attempt_counter
from redrive.wiring.gateway import answering, answers
from redrive.wiring.kafka import consumer_defaults
from redrive.wiring.process import event_loop_factory, freeze_startup
from redrive.wiring.returning import collector, way_back
from redrive.wiring.stores import open_existing_store, open_store
from redrive.wiring.wrapping import KafkaDeadLetterQueue, RedisDeadLetterQueue, WrapperOptions, dead_letter

__all__ = [
    "KafkaDeadLetterQueue",
    "RedisDeadLetterQueue",
    "WrapperOptions",
    "answering",
    "answers",
    "attempt_counter",
    "cipher",
    "collector",
    "connect",
    "connect_existing",
    "consumer_defaults",
    "dead_letter",
    "event_loop_factory",
    "freeze_startup",
    "is_embedded",
    "notifiers",
    "open_existing_store",
    "open_store",
    "tracing",
    "way_back",
]
