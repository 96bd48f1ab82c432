"""What a group's queue should hold, as a dict: the whole truth in a page."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from redrive.core.delivery import Delivery


class Place(StrEnum):
    READY = "ready"
    IN_FLIGHT = "in flight"
    SUSPECT = "suspect"
    HELD = "held"
    DEAD = "dead"
    GONE = "gone"  # done, or removed from the DLQ


@dataclass
class Record:
    due_at: datetime
    place: Place = Place.READY
    failures: int = 0
    crashes: int = 0
    generation: int = 0
    alone: bool = False


@dataclass
class Model:
    """Records by the body of their message: unique, and the same through every redrive."""

    records: dict[bytes, Record] = field(default_factory=dict)

    def publish(self, due_at: datetime) -> bytes:
        body = b"%d" % len(self.records)
        self.records[body] = Record(due_at)
        return body

    def fetchable(self, now: datetime) -> set[bytes]:
        return {body for body in self.at(Place.READY) if self.records[body].due_at <= now}

    def at(self, place: Place) -> list[bytes]:
        return [body for body, record in self.records.items() if record.place is place]

    def take(self, delivery: Delivery) -> None:
        record = self.records[delivery.message.body]
        record.place, record.alone = Place.IN_FLIGHT, delivery.alone

    def move(self, body: bytes, place: Place) -> None:
        self.records[body].place = place

    def retry(self, body: bytes, due_at: datetime) -> None:
        record = self.records[body]
        self.records[body] = replace(
            record, place=Place.READY, due_at=due_at, failures=record.failures + 1, alone=False
        )

    def release(self, body: bytes) -> None:
        record = self.records[body]
        record.place = Place.SUSPECT if record.alone else Place.READY

    def die(self, body: bytes) -> None:
        record = self.records[body]
        record.place = Place.SUSPECT
        record.crashes += record.alone

    def begin_again(self, body: bytes, now: datetime, *, generations: int) -> None:
        self.records[body] = Record(now, generation=self.records[body].generation + generations)

    def counts(self, now: datetime) -> dict[str, int]:
        found = Counter(record.place for record in self.records.values())
        scheduled = sum(self.records[body].due_at > now for body in self.at(Place.READY))
        return {
            "waiting": found[Place.READY] - scheduled + found[Place.SUSPECT],
            "in_flight": found[Place.IN_FLIGHT],
            "scheduled": scheduled,
            "held": found[Place.HELD],
            "dead": found[Place.DEAD],
        }
