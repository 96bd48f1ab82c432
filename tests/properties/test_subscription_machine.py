"""Random moves on the subscription port, compared with a dict after each: on every broker that needs no server."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings

from redrive.brokers.memory import MemoryBroker
from redrive.brokers.sqlite import SqliteBroker
from redrive.core.ports import Broker, Clock
from tests.properties.machine import SubscriptionMachine


class OnMemory(SubscriptionMachine):
    def open(self, clock: Clock) -> Broker:
        return MemoryBroker(clock=clock)


class OnSqlite(SubscriptionMachine):
    def open(self, clock: Clock) -> Broker:
        self.folder = TemporaryDirectory()
        return SqliteBroker(Path(self.folder.name) / "redrive.db", clock=clock)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestOnMemory = OnMemory.TestCase
TestOnMemory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)

TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
