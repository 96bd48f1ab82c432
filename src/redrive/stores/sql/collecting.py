"""Taking in letters and outcomes: one transaction for a batch, a handful of statements whatever its size."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, update

from redrive.core.attempt import Trail, from_rows, join_trails
from redrive.core.audit import Act
from redrive.core.letter import DeadLetter, changed
from redrive.core.life import LetterState
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.stores.hearing import Heard, News, Standing, Tale, answers, by_letter, hear
from redrive.stores.ledger import Ledger, Spot
from redrive.stores.sql import auditing, edits, items, lives, outcomes, past_deaths, tallies, texts
from redrive.stores.sql.among import among_given
from redrive.stores.sql.bulk import fetch_rows, insert_columns
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.rows import (
    COLD,
    HOT,
    SPOT,
    Place,
    attempts_column,
    cold_columns,
    cold_values,
    hot_columns,
    hot_values,
    life_of,
    place_of,
    spot_at,
)
from redrive.stores.sql.tables import letter, letter_body, tombstone
from redrive.stores.witness import Touched

_STANDING = select(*(letter.c[name] for name in ("letter_id", "seq", "generation", "version", "died_in")), *SPOT).where(
    among_given(letter.c.letter_id, "letter_ids")
)
_BURIED = select(tombstone.c.letter_id, tombstone.c.generation).where(among_given(tombstone.c.letter_id, "letter_ids"))


class _Known(NamedTuple):
    seq: int
    standing: Standing


class _Change(NamedTuple):
    """What was heard of a letter, and what was known of it before: nothing, if it is new."""

    letter_id: str
    known: _Known | None
    before: Standing | None
    heard: Heard


def collect(
    connection: Connection, letters: Sequence[DeadLetter], told: Sequence[RedriveOutcome], *, act: Act | None
) -> Collected:
    """Take in a batch, once per (letter_id, generation), in any order."""
    news = by_letter(letters, told)
    heard = _hear(connection, news, told)
    tale, ledger = Tale(letters, told), Ledger()
    for one in heard:
        tale.add(one.before, one.heard)
    ledger.arrive(death for one in heard for death in one.heard.first)
    for (before, state, place), times in Counter(map(_moved, heard)).items():
        ledger.move(before, _after(before, state, place), times=times)
    collected = replace(tale.result(), incidents=tallies.opened(connection, ledger))
    changes = [one for one in heard if one.heard.changes(one.before)]
    if act is None:
        _write(connection, changes)
    else:
        told_act = replace(act, detail=act.detail | asdict(collected))
        auditing.record(connection, told_act, _write_watched(connection, changes), count=len(letters))
    tallies.write(connection, ledger)
    items.answer(connection, answers(news))
    return collected


def _hear(connection: Connection, news: Mapping[str, News], told: Sequence[RedriveOutcome]) -> list[_Change]:
    known = _known(connection, [*news])
    unknown = [letter_id for letter_id in news if letter_id not in known]
    late = [
        letter_id
        for letter_id, one in known.items()
        if (deaths := news[letter_id].deaths) and min(death.generation for death in deaths) < one.standing.died_in
    ]
    past = past_deaths.of_letters(connection, late)
    buried = _buried(connection, [*unknown, *late])
    earlier = outcomes.of_letters(connection, unknown)
    kept = [one for one in told if one.letter_id in known or one.generation > buried.get(one.letter_id, -1)]
    outcomes.keep(connection, kept)
    changes = []
    for letter_id, about in news.items():
        one = known.get(letter_id)
        before = None if one is None else one.standing
        if before is not None and letter_id in past:
            before = before._replace(died_before=past[letter_id])
        whole = News(about.deaths, [*earlier[letter_id], *about.outcomes]) if letter_id in earlier else about
        heard = hear(whole, before, buried_in=buried.get(letter_id))
        if heard is not None:
            changes.append(_Change(letter_id, one, before, heard))
    return changes


def _known(connection: Connection, letter_ids: Sequence[str]) -> dict[str, _Known]:
    found = {}
    for some in chunks(letter_ids):
        rows = fetch_rows(connection, _STANDING, letter_ids=some)
        for letter_id, seq, generation, version, died_in, queue, name, error_type, reason, fingerprint in rows:
            life = life_of(name, generation, version)
            standing = Standing(life, died_in, Spot(queue, life.state, error_type, reason, fingerprint))
            found[letter_id] = _Known(seq, standing)
    return found


def _buried(connection: Connection, letter_ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in chunks(letter_ids):
        found.update(fetch_rows(connection, _BURIED, letter_ids=some))
    return found


def _moved(change: _Change) -> tuple[Spot | None, LetterState, Place | None]:
    """Where a letter was counted before; its state from now on, and its place if that is told anew."""
    _, _, before, (life, shown, _, _) = change
    return None if before is None else before.spot, life.state, None if shown is None else place_of(shown)


def _after(before: Spot | None, state: LetterState, place: Place | None) -> Spot | None:
    if place is not None:
        return spot_at(place, state)
    return None if before is None else before.in_state(state)


def _write_watched(connection: Connection, changes: Sequence[_Change]) -> list[Touched]:
    """Write changes; what they did to each letter, for the audit."""
    names = [change.letter_id for change in changes]
    before = edits.sent_hashes_of(connection, names)
    _write(connection, changes)
    after = edits.sent_hashes_of(connection, names)
    return [
        Touched(name, before.get(name, ""), after[name], change.heard.in_words(change.before))
        for name, change in zip(names, changes, strict=True)
    ]


def _write(connection: Connection, changes: Sequence[_Change]) -> None:
    news = [change.letter_id for change in changes if change.heard.is_news(change.before)]
    first = tallies.next_numbers(connection, "letter", len(news)) if news else 0
    numbers = {letter_id: number for number, letter_id in enumerate(news, first)}
    fresh: dict[int, Heard] = {}
    others: dict[int, Heard] = {}
    again: dict[int, int] = {}
    for letter_id, known, _, heard in changes:
        if known is None:
            fresh[numbers[letter_id]] = heard
        else:
            others[known.seq] = heard
            if letter_id in numbers:
                again[known.seq] = numbers[letter_id]
    _insert(connection, fresh)
    _update(connection, others)
    lives.put_news(connection, again.items())
    past = ((one.letter_id, generation) for one in changes for generation in one.heard.died_before(one.before))
    past_deaths.keep(connection, past)


def _insert(connection: Connection, fresh: Mapping[int, Heard]) -> None:
    shown = [(seq, _with_past(heard.shown, heard), heard.life) for seq, heard in fresh.items() if heard.shown]
    if not shown:
        return
    seqs, letters, lives_ = ([*column] for column in zip(*shown, strict=True))
    hot = [seqs, seqs, [""] * len(seqs), *hot_columns(letters, lives_)]
    insert_columns(connection, letter, ("seq", "news", "note", *HOT), hot)
    insert_columns(connection, letter_body, ("seq", *COLD), [seqs, *cold_columns(letters)])
    texts.add(connection, seqs, letters)


def _with_past(told: DeadLetter, heard: Heard) -> DeadLetter:
    return changed(told, attempts=join_trails(heard.past, told.attempts)) if heard.past else told


def _update(connection: Connection, changes: Mapping[int, Heard]) -> None:
    lives.put(connection, ((seq, heard.life) for seq, heard in changes.items() if heard.shown is None))
    longer = {seq: heard for seq, heard in changes.items() if heard.shown is not None or heard.past}
    trails = _trails(connection, [*longer])
    for seq, heard in longer.items():
        past = join_trails(trails[seq], heard.past)
        if heard.shown is None:
            values: dict[str, Any] = {"attempts": attempts_column(past)}
        else:
            shown = changed(heard.shown, attempts=join_trails(past, heard.shown.attempts))
            hot = hot_values(shown, heard.life)
            connection.execute(update(letter).where(letter.c.seq == seq).values(hot))
            values = cold_values(shown)
            texts.replace(connection, seq, shown)
        connection.execute(update(letter_body).where(letter_body.c.seq == seq).values(values))


def _trails(connection: Connection, seqs: Sequence[int]) -> dict[int, Trail]:
    found: dict[int, Trail] = {}
    for some in chunks(seqs):
        statement = select(letter_body.c.seq, letter_body.c.attempts).where(letter_body.c.seq.in_(some))
        found.update((row.seq, from_rows(row.attempts)) for row in connection.execute(statement))
    return found
