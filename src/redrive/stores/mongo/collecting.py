"""Taking in letters and outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import NamedTuple

from redrive.core.attempt import dump_trail, join_trails, load_trail
from redrive.core.audit import Act
from redrive.core.letter import DeadLetter, changed
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.stores.exact import unescaped
from redrive.stores.hearing import Heard, News, Standing, Tale, answers, by_letter, hear
from redrive.stores.ledger import Ledger
from redrive.stores.mongo import auditing, items, tallies
from redrive.stores.mongo.documents import (
    SPOT,
    Document,
    from_outcome,
    moved,
    spot_of,
    to_document,
    to_life,
    to_outcome,
    to_spot,
)
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import ABSENT, LETTERS
from redrive.stores.mongo.values import texts, to_text
from redrive.stores.witness import Touched

_OWN = ("generation", "version", "died_before", "note", "news", "outcomes", "edits", "sent_sha256", "attempts")
_KNOWN = {**SPOT, "letter_id": 1, "dlq_metadata.generation": 1, **{f"redrive.{name}": 1 for name in _OWN}}


class _Change(NamedTuple):
    """What was heard of a letter, what was known of it before, and all that was ever reported of it."""

    letter_id: str
    known: Document | None
    before: Standing | None
    heard: Heard
    outcomes: list[Document]

    @property
    def sent_sha256(self) -> str:
        """The hash of what would have been sent back."""
        return "" if self.known is None else unescaped(self.known["redrive"]["sent_sha256"])


async def collect(
    draft: Draft, letters: Sequence[DeadLetter], told: Sequence[RedriveOutcome], *, act: Act | None, now: datetime
) -> Collected:
    """Take in a batch, once per (letter_id, generation), in any order."""
    news = by_letter(letters, told)
    tale, ledger = Tale(letters, told), Ledger()
    touched: list[Touched] = []
    for change in await _hear(draft, news):
        tale.add(change.before, change.heard)
        ledger.arrive(change.heard.first)
        one = _write(draft, change, ledger=ledger, now=now)
        if change.heard.changes(change.before):
            touched.append(one)
    collected = replace(tale.result(), incidents=await tallies.write(draft, ledger))
    if act is not None:
        told_act = replace(act, detail=act.detail | asdict(collected))
        await auditing.record(draft, told_act, touched, count=len(letters))
    await items.answer(draft, answers(news))
    return collected


async def _hear(draft: Draft, news: Mapping[str, News]) -> list[_Change]:
    names = texts(news)
    found = await draft.shelves.among(LETTERS, "letter_id", names, fields=_KNOWN)
    known = {unescaped(one["letter_id"]): one for one in found}
    absent = {unescaped(one["_id"]): one for one in await draft.shelves.among(ABSENT, "_id", names)}
    changes = []
    for letter_id, about in news.items():
        one, gone = known.get(letter_id), absent.get(letter_id)
        buried = None if gone is None else gone["buried_in"]
        earlier: list[Document] = (gone or {}).get("outcomes", []) if one is None else one["redrive"]["outcomes"]
        outcomes = _with_new(earlier, about, beyond=buried if one is None else None)
        reported = [to_outcome(kept, letter_id=letter_id) for kept in outcomes]
        before = None if one is None else _standing(one)
        heard = hear(News(about.deaths, reported), before, buried_in=buried)
        if heard is not None:
            changes.append(_Change(letter_id, one, before, heard, outcomes))
        elif len(outcomes) > len(earlier):
            _keep_absent(draft, letter_id, gone, outcomes)
        if heard is not None and gone is not None and gone["outcomes"]:
            draft.set(ABSENT, gone["_id"], {"outcomes": []})
    return changes


def _with_new(kept: Sequence[Document], about: News, *, beyond: int | None) -> list[Document]:
    """What was reported so far and now, each once, in the order of generations."""
    by_key = {(one["generation"], one["succeeded"]): one for one in kept}
    for outcome in about.outcomes:
        if beyond is None or outcome.generation > beyond:
            by_key.setdefault((outcome.generation, outcome.succeeded), from_outcome(outcome))
    return [by_key[key] for key in sorted(by_key)]


def _keep_absent(draft: Draft, letter_id: str, gone: Document | None, outcomes: list[Document]) -> None:
    """Keep what was reported of a letter that is not there: it may still come."""
    if gone is None:
        draft.add(ABSENT, {"_id": to_text(letter_id), "buried_in": None, "outcomes": outcomes})
    else:
        draft.set(ABSENT, gone["_id"], {"outcomes": outcomes})


def _standing(known: Document) -> Standing:
    died_in: int = known["dlq_metadata"]["generation"]
    return Standing(to_life(known), died_in, to_spot(known), frozenset(known["redrive"]["died_before"]))


def _write(draft: Draft, change: _Change, *, ledger: Ledger, now: datetime) -> Touched:
    """Keep a letter as it is now, count it there; how that touched it."""
    number = draft.next_numbers("letter", 1) if change.heard.is_news(change.before) else None
    before = change.sent_sha256
    after = before
    if change.heard.shown is None:
        _write_life(draft, change, number=number, ledger=ledger)
    else:
        after = _write_death(draft, change, number=number, ledger=ledger, now=now)
    return Touched(change.letter_id, before, after, change.heard.in_words(change.before))


def _write_life(draft: Draft, change: _Change, *, number: int | None, ledger: Ledger) -> None:
    """A letter still shows the death that it showed."""
    _, known, before, heard, outcomes = change
    assert known is not None and before is not None  # noqa: S101, PT018 - an unknown letter is heard of by its death
    ledger.move(before.spot, before.spot._replace(state=heard.life.state))
    kept = known["redrive"]
    own: Document = {"outcomes": outcomes, "died_before": sorted({*kept["died_before"], *heard.died_before(before)})}
    if number is not None:
        own["news"] = number
    if heard.past:
        own["attempts"] = dump_trail(join_trails(load_trail(kept["attempts"]), heard.past)).decode()
    if heard.changes(before) or outcomes != kept["outcomes"]:
        draft.set(LETTERS, known["_id"], moved(heard.life) | {f"redrive.{name}": own[name] for name in own})


def _write_death(draft: Draft, change: _Change, *, number: int | None, ledger: Ledger, now: datetime) -> str:
    """A letter shows another death, or its first one; the hash of what would be sent back. What people did stays."""
    _, known, before, heard, outcomes = change
    assert heard.shown is not None  # noqa: S101 - said by the caller
    ledger.move(None if before is None else before.spot, spot_of(heard.shown, heard.life))
    kept = {} if known is None else known["redrive"]
    past = join_trails(load_trail(kept.get("attempts")), heard.past)
    shown = changed(heard.shown, attempts=join_trails(past, heard.shown.attempts)) if past else heard.shown
    place = number if known is None else known["_id"]
    assert place is not None  # noqa: S101 - a new letter is news
    document = to_document(shown, heard.life, number=place, now=now)
    own = document["redrive"]
    own |= {"outcomes": outcomes, "died_before": sorted({*kept.get("died_before", ()), *heard.died_before(before)})}
    if known is None:
        draft.add(LETTERS, document)
    else:
        own |= {"note": kept["note"], "edits": kept["edits"], "news": kept["news"] if number is None else number}
        if kept["edits"]:
            own["sent_sha256"] = kept["sent_sha256"]
        draft.put(LETTERS, document)
    return unescaped(own["sent_sha256"])
