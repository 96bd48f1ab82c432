"""Letters in the memory of one process: for tests, and as the reference for every other store."""

from redrive.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
