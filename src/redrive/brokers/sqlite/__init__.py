"""A broker in one SQLite file: no server, many processes, nothing lost to a kill or a power cut."""

from redrive.brokers.sqlite.broker import SqliteBroker

__all__ = ["SqliteBroker"]
