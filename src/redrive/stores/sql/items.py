"""The letters of redrives: where each of them is, and how many are where."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, select, text, update

from redrive.core.redrive import ENDED, ItemStatus, Planned, Progress, answered, left
from redrive.core.redrive import sent as once_sent
from redrive.stores.hearing import Answer
from redrive.stores.sql import tallies
from redrive.stores.sql.among import among_given
from redrive.stores.sql.bulk import fetch_rows, run_rows
from redrive.stores.sql.chunks import CHUNK, chunks
from redrive.stores.sql.tables import DUE, SENT, outcome, redrive, redrive_item, redrive_tally
from redrive.stores.sql.upsert import insert


class Item(NamedTuple):
    """Which one it is, and where it is counted."""

    seq: int
    redrive_id: str
    step: int
    status: str
    app_version: str


Place = tuple[str, int, str, str]
"""Where an item is counted: its redrive, step, status and version."""

_place: Callable[[Item], Place] = itemgetter(slice(1, None))
_version = attrgetter("app_version")


_ITEM = tuple(redrive_item.c[name] for name in Item._fields)
_SIZE = len(_ITEM)
_AT = update(redrive_item).where(redrive_item.c.seq == bindparam("at"))
_PUT = _AT.values(status=bindparam("status"))
_ANSWER = _AT.values(status=bindparam("status"), app_version=bindparam("app_version"))
_CLAIM = _AT.values(status=ItemStatus.CLAIMED.value, generation=bindparam("spent"), fingerprint=bindparam("had"))
_SEND = _AT.values(status=bindparam("status"), message_id=bindparam("message"), sent_at=bindparam("published_at"))
_PLAN = insert(redrive_item).on_conflict_do_nothing()
_PLANNED = tuple(column.name for column in redrive_item.columns)
_ABOUT = among_given(redrive_item.c.letter_id, "letter_ids")
_SPENT = redrive_item.c.generation.is_not(None)
_HEARD = select(*_ITEM, redrive_item.c.letter_id, redrive_item.c.generation, redrive_item.c.fingerprint)
_HEARD = _HEARD.where(_ABOUT, _SPENT)
_CLAIMED = select(*_ITEM, redrive_item.c.letter_id).where(_ABOUT, _SPENT)
_WAITED_FOR = (
    select(*_ITEM, redrive_item.c.letter_id, redrive.c.state)
    .join_from(redrive_item, redrive, redrive.c.redrive_id == redrive_item.c.redrive_id)
    .where(_ABOUT, text("status IN ('claimed', 'sent')"))
)
_STATUSES = {status.value: status for status in ItemStatus}
_ANSWERED = {
    (status.value, succeeded, same): answered(status, succeeded=succeeded, same=same).value
    for status in ItemStatus
    for succeeded in (True, False)
    for same in (True, False)
}
_ONCE_SENT = {status.value: once_sent(status).value for status in ItemStatus}


def plan(connection: Connection, redrive_id: str, chosen: Sequence[Planned]) -> None:
    """Write a part of a frozen selection, once; its turn is behind those that are written."""
    first = tallies.next_numbers(connection, "item", len(chosen))
    begin = (ItemStatus.PLANNED.value, None, "", "", None, "")
    rows = (
        (number, redrive_id, item.letter_id, item.step, item.version, *begin)
        for number, item in enumerate(chosen, first)
    )
    run_rows(connection, _PLAN, _PLANNED, rows)


def count_planned(connection: Connection, redrive_id: str) -> None:
    """Begin to count the items of a redrive, all of which are planned."""
    columns = (redrive_item.c.redrive_id, redrive_item.c.step, redrive_item.c.status, redrive_item.c.app_version)
    counted = select(*columns, func.count()).where(redrive_item.c.redrive_id == redrive_id, DUE).group_by(*columns)
    connection.execute(insert(redrive_tally).from_select([*redrive_tally.c.keys()], counted))


def answer(connection: Connection, answers: Sequence[Answer]) -> None:
    """Move the items of messages that were heard of."""
    if not answers:
        return
    by_message: dict[tuple[str, int], list[Answer]] = {}
    for one in answers:
        by_message.setdefault((one.letter_id, one.generation), []).append(one)
    rows: list[tuple[int, str, str]] = []
    moved: list[tuple[Place, str, str]] = []
    for some in chunks([*dict.fromkeys(one.letter_id for one in answers)]):
        for row in fetch_rows(connection, _HEARD, letter_ids=some):
            seq, redrive_id, step, was, had, letter_id, generation, fingerprint = row
            status, version = was, had
            for _, _, died_of, told_by in by_message.get((letter_id, generation), ()):
                status, version = _ANSWERED[status, died_of is None, died_of == fingerprint], told_by
            if status != was or version != had:
                rows.append((seq, status, version))
                moved.append(((redrive_id, step, was, had), status, version))
    run_rows(connection, _ANSWER, ("at", "status", "app_version"), rows)
    _count(connection, moved)


def claim(connection: Connection, claimed: Sequence[tuple[Item, int, str]]) -> None:
    """Items whose letters' next generation is spent: that one, and the fingerprint they have."""
    rows = ((item.seq, generation, had) for item, generation, had in claimed)
    run_rows(connection, _CLAIM, ("at", "spent", "had"), rows)
    _count_as(connection, ItemStatus.CLAIMED, [item for item, _, _ in claimed])


def skip(connection: Connection, some: Sequence[Item]) -> None:
    """Items that have changed since the preview."""
    _put(connection, some, ItemStatus.SKIPPED)


def sent(connection: Connection, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
    """Record message ids; what was heard of already stays what it is."""
    rows: list[tuple[int, str, str, datetime]] = []
    moved: list[tuple[Place, str, str]] = []
    for some in chunks([*messages]):
        for seq, name, step, was, version, letter_id in fetch_rows(connection, _CLAIMED, letter_ids=some):
            if name == redrive_id:
                rows.append((seq, _ONCE_SENT[was], messages[letter_id], at))
                moved.append(((name, step, was, version), _ONCE_SENT[was], version))
    run_rows(connection, _SEND, ("at", "status", "message", "published_at"), sorted(rows))
    _count(connection, moved)


def expire_some(connection: Connection, redrive_id: str, *, before: datetime, quiet: bool) -> int:
    """Items sent before then and not heard of: failed if that was reported, else unconfirmed or quiet."""
    late = (redrive_item.c.redrive_id == redrive_id, SENT, redrive_item.c.sent_at < before)
    reported = exists().where(
        outcome.c.letter_id == redrive_item.c.letter_id, outcome.c.generation == redrive_item.c.generation
    )
    found = connection.execute(select(*_ITEM, reported).where(*late).limit(CHUNK)).all()
    lost = ItemStatus.QUIET if quiet else ItemStatus.UNCONFIRMED
    for status, failed in ((ItemStatus.FAILED, True), (lost, False)):
        _put(connection, [Item._make(row[:_SIZE]) for row in found if row[_SIZE] is failed], status)
    return len(found)


def leave_some(connection: Connection, redrive_id: str) -> int:
    """What a redrive has not heard of at its end: where `left` says that it is."""
    here = select(*_ITEM).where(redrive_item.c.redrive_id == redrive_id).limit(CHUNK)
    for still in (DUE, SENT):
        found = [Item._make(row) for row in connection.execute(here.where(still))]
        for status in {item.status for item in found}:
            _put(connection, [item for item in found if item.status == status], left(_STATUSES[status]))
        if found:
            return len(found)
    return 0


def out(connection: Connection, letter_ids: Sequence[str]) -> set[str]:
    """Those of these letters that a redrive waits for. One that has ended does not, even if its end was cut short."""
    found = fetch_rows(connection, _WAITED_FOR, letter_ids=letter_ids) if letter_ids else []
    over = [Item._make(row[:_SIZE]) for row in found if row[-1] in ENDED]
    _put(connection, over, ItemStatus.UNCONFIRMED)
    return {row[_SIZE] for row in found if row[-1] not in ENDED}


def _put(connection: Connection, some: Sequence[Item], status: ItemStatus) -> None:
    rows = sorted((item.seq, status.value) for item in some)
    run_rows(connection, _PUT, ("at", "status"), rows)
    _count_as(connection, status, some)


def _count_as(connection: Connection, status: ItemStatus, some: Sequence[Item]) -> None:
    _count(connection, zip(map(_place, some), repeat(status.value), map(_version, some), strict=False))


def _count(connection: Connection, moved: Iterable[tuple[Place, str, str]]) -> None:
    """Count items in another status, and under the version that they were heard of from."""
    counts: Counter[Place] = Counter()
    for ((redrive_id, step, was, had), status, version), times in Counter(moved).items():
        counts[redrive_id, step, was, had] -= times
        counts[redrive_id, step, status, version] += times
    tallies.add(connection, redrive_tally, [(*key, number) for key, number in counts.items() if number])


def progress(connection: Connection, redrive_id: str, *, steps: int) -> Progress:
    """Items by status and step."""
    statement = select(redrive_tally).where(redrive_tally.c.redrive_id == redrive_id, redrive_tally.c.n > 0)
    counted: list[dict[ItemStatus, int]] = [{} for _ in range(steps)]
    versions = set()
    for _, step, name, version, number in connection.execute(statement):
        status = ItemStatus(name)
        counted[step][status] = counted[step].get(status, 0) + number
        if status is ItemStatus.SUCCEEDED and version:
            versions.add(version)
    return Progress(tuple(counted), tuple(sorted(versions)))


def redrives_of(connection: Connection, letter_ids: Sequence[str]) -> dict[str, list[str]]:
    """The redrives that letters, at most a thousand, were planned in, oldest first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    joined = select(redrive_item.c.letter_id, redrive.c.redrive_id).join_from(
        redrive, redrive_item, redrive.c.redrive_id == redrive_item.c.redrive_id
    )
    for row in connection.execute(joined.where(redrive_item.c.letter_id.in_(letter_ids)).order_by(redrive.c.seq)):
        found[row.letter_id].append(row.redrive_id)
    return dict(found)
