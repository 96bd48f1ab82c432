"""Planted bugs inside the Kafka adapter: mistakes that consumers of topics make. Those of `bugs.py` come on top."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from redrive.brokers.kafka.notes import Noted, Notes
from redrive.brokers.kafka.record import Record
from redrive.brokers.kafka.window import Window


def commit_beside_the_transaction() -> None:
    """Write the letter first, and commit the offset when that is done."""

    def carry_out(self: Notes, found: Noted, records: Sequence[Record], *, then: Callable[[], object]) -> None:
        self._pen.carry_out(records)
        self.commit((Window.finish, found))
        then()

    Notes.carry_out = carry_out  # type: ignore[method-assign]


def commit_the_highest() -> None:
    """Commit the offset after the last message that is done, whatever is still at work before it."""

    def finish(self: Window, offsets: Iterable[int]) -> Window:
        return Window(max(self.end, self.low, *(offset + 1 for offset in offsets)))

    Window.finish = finish  # type: ignore[method-assign]


BUGS: Final[Mapping[str, Callable[[], None]]] = {
    bug.__name__: bug for bug in (commit_beside_the_transaction, commit_the_highest)
}
