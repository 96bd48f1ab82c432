"""What belongs to a queue on the server, and what it is called.

The queue itself has its own name, so that anybody can publish to it and read from it. Whatever else we need has two
dots in its name, which no queue of a user has.
"""

from typing import Final, NamedTuple

from redrive.brokers.names import check_names
from redrive.core.errors import ConfigError

BOOK: Final = "redrive..book"
_ROOM: Final = 200  # of the 255 bytes that AMQP has for a name


def check(*, queue: str, group: str | None = None) -> None:
    """Raise `ConfigError` with every mistake in these names."""
    check_names(queue=queue, group=group)
    if len(queue) + len(group or "") > _ROOM:
        raise ConfigError(f"queue: expected at most {_ROOM} characters together with its group, got {queue!r}")


def fan_of(queue: str) -> str:
    """The exchange that gives each group its copy."""
    return f"{queue}..fan"


def once_of(queue: str) -> str:
    """The stream that remembers what was sent back, and which letters were written by hand."""
    return f"{queue}..once"


class Place(NamedTuple):
    """A group of a queue. The group that was the first reads the queue itself; the others have one of their own."""

    queue: str
    group: str

    @property
    def beside(self) -> str:
        """The name of the queue of a group that was not the first; what belongs to any group begins with it."""
        return f"{self.queue}..{self.group}"

    @property
    def suspects(self) -> str:
        return f"{self.beside}.suspects"

    @property
    def held(self) -> str:
        return f"{self.beside}.held"

    @property
    def paused(self) -> str:
        return f"{self.beside}.paused"

    @property
    def notes(self) -> str:
        return f"{self.beside}.notes"

    @property
    def alive(self) -> str:
        return f"{self.beside}.alive"

    def hold(self, milliseconds: int) -> str:
        """Where messages wait for so long; without a group, those that were published with a delay."""
        return f"{self.beside}.hold.{milliseconds}" if self.group else f"{self.queue}..hold.{milliseconds}"
