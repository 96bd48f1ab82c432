"""The letters of redrives: where each of them is."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, case, exists, func, select, update

from redrive.core.redrive import ENDED, ItemStatus, Planned, Progress, answered, left
from redrive.stores.hearing import Answer
from redrive.stores.sql.among import among_given
from redrive.stores.sql.bulk import fetch_rows, run_rows
from redrive.stores.sql.chunks import CHUNK, chunks
from redrive.stores.sql.tables import OUT, outcome, redrive, redrive_item
from redrive.stores.sql.upsert import insert

_AT = and_(redrive_item.c.redrive_id == bindparam("of_redrive"), redrive_item.c.letter_id == bindparam("of_letter"))
_ITEM = ("of_redrive", "of_letter")
_ANSWER = update(redrive_item).where(_AT).values(status=bindparam("status"), app_version=bindparam("app_version"))
_CLAIM = (
    update(redrive_item)
    .where(_AT)
    .values(status=ItemStatus.CLAIMED.value, generation=bindparam("spent"), fingerprint=bindparam("had"))
)
_SENT = (
    update(redrive_item)
    .where(_AT, redrive_item.c.generation.is_not(None))
    .values(
        message_id=bindparam("message"),
        sent_at=bindparam("published_at"),
        status=case(
            (redrive_item.c.status == ItemStatus.CLAIMED.value, ItemStatus.SENT.value), else_=redrive_item.c.status
        ),
    )
)
_PLAN = insert(redrive_item).on_conflict_do_nothing()
_PLANNED = tuple(column.name for column in redrive_item.columns)
_HEARD = select(*(redrive_item.c[name] for name in ("redrive_id", "letter_id", "generation", "status")))
_HEARD = _HEARD.add_columns(redrive_item.c.fingerprint, redrive_item.c.app_version).where(
    among_given(redrive_item.c.letter_id, "letter_ids"), redrive_item.c.generation.is_not(None)
)
_WAITED_FOR = (
    select(redrive_item.c.letter_id, redrive_item.c.redrive_id, redrive.c.state)
    .join_from(redrive_item, redrive, redrive.c.redrive_id == redrive_item.c.redrive_id)
    .where(OUT, among_given(redrive_item.c.letter_id, "letter_ids"))  # as its index says it, so that it is used
)
_STATUSES = {status.value: status for status in ItemStatus}
_LEFT = {status.value: left(status) for status in ItemStatus if left(status) is not status}


def plan(connection: Connection, redrive_id: str, chosen: Sequence[Planned], *, place: int) -> None:
    """Write a part of a frozen selection, once."""
    begin = (ItemStatus.PLANNED.value, None, "", "", None, "")
    rows = (
        (redrive_id, item.letter_id, item.step, number, item.version, *begin)
        for number, item in sorted(enumerate(chosen, place), key=lambda one: one[1].letter_id)
    )
    run_rows(connection, _PLAN, _PLANNED, rows)


def answer(connection: Connection, answers: Sequence[Answer]) -> None:
    """Move the items of messages that were heard of."""
    if not answers:
        return
    by_message: dict[tuple[str, int], list[Answer]] = {}
    for one in answers:
        by_message.setdefault((one.letter_id, one.generation), []).append(one)
    moved = []
    for some in chunks(sorted({one.letter_id for one in answers})):
        rows = fetch_rows(connection, _HEARD, letter_ids=some)
        for redrive_id, letter_id, generation, was, fingerprint, app_version in rows:
            status, version = _STATUSES[was], app_version
            for one in by_message.get((letter_id, generation), ()):
                same = one.fingerprint == fingerprint
                status, version = answered(status, succeeded=one.fingerprint is None, same=same), one.app_version
            if (status.value, version) != (was, app_version):
                moved.append((redrive_id, letter_id, status.value, version))
    run_rows(connection, _ANSWER, (*_ITEM, "status", "app_version"), moved)


def claim(connection: Connection, redrive_id: str, letters: Sequence[tuple[str, int, str]]) -> None:
    """Letters whose generation is spent: id, that generation, and the fingerprint they have."""
    rows = ((redrive_id, *one) for one in letters)
    run_rows(connection, _CLAIM, (*_ITEM, "spent", "had"), rows)


def skip(connection: Connection, redrive_id: str, letter_ids: Sequence[str]) -> None:
    """Items that have changed since the preview."""
    _put(connection, redrive_id, letter_ids, ItemStatus.SKIPPED)


def sent(connection: Connection, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
    """Record message ids; what was heard of already stays what it is."""
    rows = ((redrive_id, letter_id, message_id, at) for letter_id, message_id in sorted(messages.items()))
    run_rows(connection, _SENT, (*_ITEM, "message", "published_at"), rows)


def expire_some(connection: Connection, redrive_id: str, *, before: datetime, quiet: bool) -> int:
    """Items sent before then and not heard of: failed if that was reported, else unconfirmed or quiet."""
    here = redrive_item.c.redrive_id == redrive_id
    late = (here, redrive_item.c.status == ItemStatus.SENT.value, redrive_item.c.sent_at < before)
    reported = exists().where(
        outcome.c.letter_id == redrive_item.c.letter_id, outcome.c.generation == redrive_item.c.generation
    )
    found = connection.execute(select(redrive_item.c.letter_id, reported).where(*late).limit(CHUNK)).all()
    lost = ItemStatus.QUIET if quiet else ItemStatus.UNCONFIRMED
    for status, failed in ((ItemStatus.FAILED, True), (lost, False)):
        names = [letter_id for letter_id, was_reported in found if was_reported is failed]
        _put(connection, redrive_id, names, status)
    return len(found)


def leave_some(connection: Connection, redrive_id: str) -> int:
    """What a redrive has not heard of at its end: where `left` says that it is."""
    some = (redrive_item.c.redrive_id == redrive_id, redrive_item.c.status.in_(_LEFT))
    found = connection.execute(select(redrive_item.c.letter_id, redrive_item.c.status).where(*some).limit(CHUNK)).all()
    for was, becomes in _LEFT.items():
        _put(connection, redrive_id, [letter_id for letter_id, status in found if status == was], becomes)
    return len(found)


def out(connection: Connection, letter_ids: Sequence[str]) -> set[str]:
    """Those of these letters that a redrive waits for. One that has ended does not, even if its end was cut short."""
    found = fetch_rows(connection, _WAITED_FOR, letter_ids=letter_ids)
    for letter_id, redrive_id, state in found:
        if state in ENDED:
            _put(connection, redrive_id, [letter_id], ItemStatus.UNCONFIRMED)
    return {letter_id for letter_id, _, state in found if state not in ENDED}


def _put(connection: Connection, redrive_id: str, letter_ids: Sequence[str], status: ItemStatus) -> None:
    if letter_ids:
        where = (redrive_item.c.redrive_id == redrive_id, redrive_item.c.letter_id.in_(letter_ids))
        connection.execute(update(redrive_item).where(*where).values(status=status.value))


def progress(connection: Connection, redrive_id: str, *, steps: int) -> Progress:
    """Items by status and step."""
    columns = (redrive_item.c.step, redrive_item.c.status, redrive_item.c.app_version)
    statement = select(*columns, func.count()).where(redrive_item.c.redrive_id == redrive_id).group_by(*columns)
    counted: list[dict[ItemStatus, int]] = [{} for _ in range(steps)]
    versions = set()
    for step, name, version, number in connection.execute(statement):
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
