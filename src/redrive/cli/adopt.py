"""`redrive adopt`: take over a DLQ that exists, whoever wrote it."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from redrive.cli.desk import BOTH, AtBoth, open_desk
from redrive.cli.output import Exit, complain, preview
from redrive.cli.sheet import Part, tell_sheet
from redrive.cli.target import open_broker
from redrive.config import BrokerSettings
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.place import DeadLetterPlace, queue_of
from redrive.core.ports import Broker
from redrive.core.stored import Collected

if TYPE_CHECKING:
    from redrive.triage.adoption import Survey


async def adopt(
    *,
    dlq: Annotated[str, Parameter(help="The DLQ's name on the broker, such as orders:dlq.")],
    queue: Annotated[str | None, Parameter(help="The queue of letters that do not say which they came from.")] = None,
    keep: Annotated[bool, Parameter(help="Copy letters and leave their entries in the DLQ.")] = False,
    yes: Annotated[bool, Parameter(help="Do it; without, it is only said what would be done.")] = False,
    at: AtBoth = BOTH,
) -> Exit:
    """Take over a DLQ that exists: its letters, of whatever form, go into the store. First only looks.

    May be done again: what was taken over is known. At the end it says which setting keeps the DLQ collected.
    """
    from redrive.triage.adoption import survey

    if queue == dlq:
        raise ConfigError(f"--queue: expected another than the DLQ itself, got {dlq!r} for both")
    async with open_broker(at) as broker:
        orphan = Orphan(dlq, queue, usual=queue_of(broker.capabilities.dlq, dlq), keep=keep)
        found = await survey(broker.dead_letters(orphan.letters_of, place=DeadLetterPlace(name=dlq)))
        if not found.entries and not await _is_listed(broker, dlq):
            raise QueueNotFound(f"no DLQ {dlq!r} on {broker.name}, or it is empty and nobody reads it")
        if not yes or found.homeless:
            _tell_survey(found, as_json=at.json)
        if found.homeless:
            complain([f"--queue: {found.homeless:,} entries do not say which queue they came from; say it"])
            return Exit.USAGE
        if yes:
            done = await _take_over(broker, orphan, at)
            lines = orphan.settings(at.place, listed=await _is_listed(broker, dlq))
            _tell_done(dlq, done, lines, as_json=at.json)
    return Exit.OK


@dataclass(frozen=True)
class Orphan:
    """A DLQ to be taken over. `queue` is what a person says, `usual` what its name says of the queue it belongs to."""

    name: str
    queue: str | None
    usual: str | None
    keep: bool

    @property
    def letters_of(self) -> str:
        """The queue of letters that do not say it; the DLQ's own name if nobody does."""
        return self.queue or self.usual or self.name

    @property
    def explicit(self) -> dict[str, str | None]:
        """As the setting `dlqs` has it."""
        return {self.name: None if self.queue == self.usual else self.queue}

    def settings(self, place: BrokerSettings, *, listed: bool) -> list[str]:
        """The lines of redrive.toml without which collectors would pass it over, or move what is to stay.

        `listed` says whether the broker has it among its queues, where collectors find it by its name.
        """
        lines = []
        found = self.usual is not None and not self.explicit[self.name]
        if found and place.queues is not None:
            if self.usual not in place.queues and self.name not in place.dlqs:
                lines.append(f"queues = {json.dumps([*place.queues, self.usual])}")
        elif self.name not in place.dlqs and not (found and listed):
            lines.append(f"dlqs = {_toml({**place.dlqs, **self.explicit})}")
        if self.keep and not place.keep:
            lines.append("keep = true")
        head = "[collect]" if place.name is None else f"[brokers.{place.name}]"
        return [head, *lines] if lines else []


def _toml(dlqs: dict[str, str | None]) -> str:
    return json.dumps([f"{name}={queue}" if queue else name for name, queue in dlqs.items()])


async def _is_listed(broker: Broker, name: str) -> bool:
    return any(name == queue for queue, _ in await broker.queues())


async def _take_over(broker: Broker, orphan: Orphan, at: AtBoth) -> Collected:
    from redrive.wiring import collector

    async with open_desk(at, create=True) as desk:
        await desk.store.unfinished()  # a store that cannot be used is told before anything is begun
        async with collector(
            broker, desk.store, queues=(), dlqs=orphan.explicit, keep=orphan.keep, clock=desk.clock
        ) as collecting:
            await collecting.drained()
        return collecting.collected


def _tell_survey(found: "Survey", *, as_json: bool) -> None:
    fact = {
        "dlq": found.dlq,
        "dry_run": True,
        "entries": found.entries,
        "forms": {form.name.lower(): number for form, number in found.by_form.items()},
        "queues": dict(found.by_queue),
        "homeless": found.homeless,
    }
    some = "" if found.looked_at >= found.entries else f"; of the first {found.looked_at:,}:"
    ending = "" if found.homeless else "; add --yes to take it over"
    sample = [(one.entry_id, f"{one.letter.error_type}  {preview(one.letter.payload)}") for one in found.sample]
    parts = [
        Part("what they are", [(form.value, f"{number:,}") for form, number in found.by_form.items()]),
        Part("where they came from", _queues(found)),
        Part("the oldest", sample),
    ]
    head = f"{found.dlq} holds {found.entries:,} entr{'y' if found.entries == 1 else 'ies'}{some}{ending}"
    tell_sheet(fact, head, parts, as_json=as_json)


def _queues(found: "Survey") -> list[tuple[str, str]]:
    known = [(queue, f"{number:,}") for queue, number in found.by_queue.items() if queue != found.dlq]
    return [*known, *([("not known", f"{found.homeless:,}")] if found.homeless else [])]


def _tell_done(dlq: str, done: Collected, lines: list[str], *, as_json: bool) -> None:
    head = f"taken over: {done.new:,} new, {done.reopened:,} reopened, {done.known:,} known already"
    settings = Part("to keep it collected, put into redrive.toml", [("", line) for line in lines])
    tell_sheet({"dlq": dlq, **asdict(done), "settings": lines}, head, [settings], as_json=as_json)
