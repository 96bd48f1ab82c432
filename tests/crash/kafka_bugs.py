"""Planted bugs inside the Kafka adapter: mistakes that consumers of topics make. Those of `bugs.py` come on top."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer

from redrive.brokers.kafka.notes import Note, Noted, Notes
from redrive.brokers.kafka.record import Record
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import Window
from tests.crash.journal import Reader, Word
from tests.crash.scenario import Site

BEYOND = "committed beyond what is at work"


def commit_beside_the_transaction(_: Site) -> None:
    """Write the letter first, and commit the offset when that is done."""

    def carry_out(self: Notes, found: Noted, records: Sequence[Record], *, then: Callable[[], object]) -> None:
        self._pen.carry_out(records)
        self.commit((Window.finish, found))
        then()

    Notes.carry_out = carry_out  # type: ignore[method-assign]


def commit_the_highest(site: Site) -> None:
    """Commit the offset after the last message that is done, whatever is still at work before it.

    Has a point of its own, passed when something is: a death elsewhere may find every hand empty.
    """
    reader = Reader(site.folder / "journal")
    commit = Notes._commit  # noqa: SLF001 - between the commit and its answer

    def finish(self: Window, offsets: Iterable[int]) -> Window:
        return Window(max(self.end, self.low, *(offset + 1 for offset in offsets)))

    def staged_commit(self: Notes, wanted: Sequence[Note], consumer: Consumer) -> None:
        commit(self, wanted, consumer)
        at_work = _at_work(reader)
        if any(_is_before(share, name) for _, found in wanted for share in found for name in at_work):
            site.points.reach(BEYOND)

    Window.finish = finish  # type: ignore[method-assign]
    Notes._commit = staged_commit  # type: ignore[method-assign]  # noqa: SLF001


def _at_work(reader: Reader) -> set[str]:
    """The ids of messages whose handlers run in this process."""
    ended = {entry.origin for word in (Word.DONE, Word.FAIL, Word.CUT) for entry in reader.of(word)}
    return {entry.origin for entry in reader.of(Word.START) if entry.pid == os.getpid()} - ended


def _is_before(share: Share, name: str) -> bool:
    return name.startswith(share.prefix) and int(name.removeprefix(share.prefix)) < share.window.low


BUGS: Final[Mapping[str, Callable[[Site], None]]] = {
    bug.__name__: bug for bug in (commit_beside_the_transaction, commit_the_highest)
}
