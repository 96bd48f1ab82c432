"""A broker in memory: the reference for every other adapter, and what `redrive.testing.run` runs on."""

from redrive.brokers.memory.broker import MemoryBroker

__all__ = ["MemoryBroker"]
