"""RabbitMQ: written, confirmed, then acked. Never zero places, sometimes two, resolved by key."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("aiormq") is None:
    raise MissingExtra("rabbitmq", extra="rabbitmq")

from redrive.brokers.rabbitmq.broker import RabbitBroker

__all__ = ["RabbitBroker"]
