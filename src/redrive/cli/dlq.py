"""`redrive dlq`: the broker's own dead letter queue of one queue."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from cyclopts import App, Parameter

from redrive.cli.output import Column, Exit, age, complain, count_up, preview, show, tell
from redrive.cli.target import HERE, Target, open_broker
from redrive.core.errors import ConfigError, LetterNotFound, QueueNotFound
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Broker, DeadEntry, NativeDeadLetters

dlq = App(name="dlq", help="Look into a dead letter queue; send letters back or remove them.")

PAGE = 200

EntryId = Annotated[str, Parameter(help="An entry, as peek shows it.")]
Queue = Annotated[str, Parameter(help="The queue whose dead letters these are.")]
Name = Annotated[str | None, Parameter(name="--dlq", help="The DLQ's own name, where it is not the usual one.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which letters: those named, or all of them after a look."""

    everything: Annotated[bool, Parameter(name="--all", help="Every letter there is now; shown first, not done.")] = (
        False
    )
    yes: Annotated[bool, Parameter(help="With --all: do it.")] = False


NAMED = Choice()


_COLUMNS = (
    Column("entry", "entry_id", style=lambda _: "bold"),
    Column("age", "failed_at", right=True, style=lambda _: "dim", shown=lambda at: age(at, now=datetime.now(UTC))),
    Column("group", "group"),
    Column("reason", "reason", style=lambda _: "dim"),
    Column("error", "error", wraps=True, style=lambda _: "red"),
    Column("payload", "payload", wraps=True, shown=preview),
)


@dlq.command
async def peek(
    *,
    queue: Queue,
    name: Name = None,
    count: Annotated[int, Parameter(help="How many, the oldest first; 10 unless told.")] = 10,
    start: Annotated[str | None, Parameter(help="The entry to start with.")] = None,
    target: Target = HERE,
) -> None:
    """Show the oldest dead letters; nothing is claimed or changed."""
    if count < 1:
        raise ConfigError(f"--count: expected at least 1, got {count}")
    async with open_broker(target) as broker:
        letters = await _letters(broker, queue, name)
        entries = await letters.peek(count, start=start)
    if start is not None and not entries:
        raise LetterNotFound(f"no entry {start!r} in {letters.name}")
    facts = map(_json_fact if target.json else _fact, entries)
    show(facts, _COLUMNS, as_json=target.json, empty=f"{letters.name} is empty")


@dlq.command
async def length(*, queue: Queue, name: Name = None, target: Target = HERE) -> None:
    """Count the dead letters of a queue."""
    async with open_broker(target) as broker:
        letters = await _letters(broker, queue, name)
        count = await letters.length()
    tell({"queue": queue, "dlq": letters.name, "length": count}, str(count), as_json=target.json)


@dlq.command
async def redrive(
    *entry_ids: EntryId, queue: Queue, name: Name = None, choice: Choice = NAMED, target: Target = HERE
) -> Exit:
    """Send letters back to the group that gave them up, each in one step."""
    async with open_broker(target) as broker:
        letters = await _letters(broker, queue, name)
        return await _Act("redrive", "redriven", letters.redrive, queue, target).on(letters, entry_ids, choice)


@dlq.command
async def remove(
    *entry_ids: EntryId, queue: Queue, name: Name = None, choice: Choice = NAMED, target: Target = HERE
) -> Exit:
    """Remove letters for good."""
    async with open_broker(target) as broker:
        letters = await _letters(broker, queue, name)
        return await _Act("remove", "removed", letters.remove, queue, target).on(letters, entry_ids, choice)


@dataclass(frozen=True)
class _Act:
    """Something done to chosen letters, one after the other, with a count at the end."""

    verb: str
    done: str
    carry_out: Callable[[str], Awaitable[str | None]]
    queue: str
    target: Target

    async def on(self, letters: NativeDeadLetters, entry_ids: tuple[str, ...], choice: Choice) -> Exit:
        if choice.everything == bool(entry_ids):
            raise ConfigError("expected entries or --all, not both" if entry_ids else "expected entries, or --all")
        if choice.everything:
            entry_ids = await _entry_ids(letters, self.queue)
            if not choice.yes:
                self._preview(letters, entry_ids)
                return Exit.OK
        gone = await self._each(letters, entry_ids)
        if gone and choice.everything:
            complain([f"{_letters_of(letters, len(gone))} had gone already"])
        else:
            complain(gone)
        return Exit.NOT_FOUND if gone else Exit.OK

    def _preview(self, letters: NativeDeadLetters, entry_ids: tuple[str, ...]) -> None:
        fact = {"dlq": letters.name, "dry_run": True, "letters": len(entry_ids)}
        text = f"would {self.verb} {_letters_of(letters, len(entry_ids))}; add --yes to do it"
        tell(fact, text if entry_ids else f"{letters.name} has no letters of {self.queue}", as_json=self.target.json)

    async def _each(self, letters: NativeDeadLetters, entry_ids: tuple[str, ...]) -> list[str]:
        """Return what the broker says of those that were not there."""
        done = 0
        gone = []
        try:
            for number, entry_id in enumerate(entry_ids, 1):
                count_up(number, total=len(entry_ids))
                try:
                    message_id = await self.carry_out(entry_id)
                except LetterNotFound as error:
                    gone.append(f"{error}")
                    continue
                done += 1
                if self.target.json:
                    tell({"entry_id": entry_id, self.done: True, "message_id": message_id}, "", as_json=True)
        finally:
            if not self.target.json:
                tell({}, f"{self.done} {done} of {_letters_of(letters, len(entry_ids))}", as_json=False)
        return gone


def _letters_of(letters: NativeDeadLetters, count: int) -> str:
    return f"{count} letter{'s' * (count != 1)} of {letters.name}"


async def _letters(broker: Broker, queue: str, name: str | None) -> NativeDeadLetters:
    """The DLQ, which need not be there yet. Raises `QueueNotFound` if its queue is known not to be there either."""
    letters = broker.dead_letters(queue, place=None if name is None else DeadLetterPlace(name=name))
    if broker.capabilities.lists_all and not {queue, letters.name} & {found for found, _ in await broker.queues()}:
        raise QueueNotFound(f"no such queue: {queue!r}")
    return letters


async def _entry_ids(letters: NativeDeadLetters, queue: str) -> tuple[str, ...]:
    """The queue's entries that are there now, in a DLQ that others may share.

    One that comes back while it is redriven is a new one, and not meant.
    """
    count = await letters.length()
    found: dict[str, bool] = {}
    start: str | None = None
    while len(found) < count:
        page = await letters.peek(PAGE, start=start)
        fresh = {entry.entry_id: entry.letter.queue == queue for entry in page if entry.entry_id not in found}
        if not fresh:
            break
        found.update(fresh)
        start = page[-1].entry_id
    return tuple(entry_id for entry_id, ours in islice(found.items(), count) if ours)


def _fact(entry: DeadEntry) -> dict[str, Any]:
    letter = entry.letter
    error = f"{letter.error_type}: {letter.error_message}" if letter.error_message else letter.error_type
    return {
        "entry_id": entry.entry_id,
        "failed_at": letter.failed_at,
        "group": letter.group,
        "reason": letter.reason.value,
        "error": preview(error.encode("utf-8", "surrogatepass")),
        "payload": letter.payload,
    }


def _json_fact(entry: DeadEntry) -> dict[str, Any]:
    import json

    from redrive.core.wire import to_json

    return {"entry_id": entry.entry_id, **json.loads(to_json(entry.letter))}
