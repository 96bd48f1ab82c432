"""NATS JetStream: pull consumers, redelivery as the due index, and a bucket for what a nak cannot carry."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("nats") is None:
    raise MissingExtra("nats", extra="nats")

from redrive.brokers.nats.broker import NatsBroker

__all__ = ["NatsBroker"]
