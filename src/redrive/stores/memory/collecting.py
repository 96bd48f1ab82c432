"""Taking in letters and outcomes, in memory."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from redrive.core.attempt import join_trails
from redrive.core.audit import Act
from redrive.core.letter import DeadLetter
from redrive.core.redrive import RedriveOutcome, answered
from redrive.core.stored import Collected
from redrive.stores.hearing import Answer, Heard, News, Tale, answers, by_letter, hear
from redrive.stores.ledger import Ledger
from redrive.stores.memory.shelf import Kept, Shelf
from redrive.stores.witness import Touched


def collect(
    shelf: Shelf, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome], *, act: Act | None
) -> Collected:
    """Take in a batch."""
    tale, ledger = Tale(letters, outcomes), Ledger()
    news = by_letter(letters, outcomes)
    touched = [_hear(shelf, letter_id, about, tale=tale, ledger=ledger) for letter_id, about in news.items()]
    opened = shelf.write(ledger)
    for answer in answers(news):
        _answer(shelf, answer)
    collected = replace(tale.result(), incidents=opened)
    if act is not None:
        changed = [one for one in touched if one is not None]
        shelf.record(replace(act, detail=act.detail | asdict(collected)), changed, count=len(letters))
    return collected


def _hear(shelf: Shelf, letter_id: str, news: News, *, tale: Tale, ledger: Ledger) -> Touched | None:
    """Hear of one letter; how that has touched it, None if it has not."""
    kept, buried = shelf.letters.get(letter_id), shelf.buried.get(letter_id)
    told = shelf.outcomes.setdefault(letter_id, {})
    for outcome in news.outcomes:
        if kept is not None or buried is None or outcome.generation > buried:
            told.setdefault((outcome.generation, outcome.succeeded), outcome)
    before = None if kept is None else kept.standing()
    heard = hear(News(news.deaths, [*told.values()]), before, buried_in=buried)
    if heard is None:
        return None
    ledger.arrive(heard.first)
    was_sent = "" if kept is None else kept.sent_sha256()
    after = _keep(shelf, kept, heard)
    if before is not None and heard.is_news(before):
        shelf.last_seq += 1
        after.news = shelf.last_seq
    after.died_before |= heard.died_before(before)
    ledger.move(None if before is None else before.spot, after.spot())
    tale.add(before, heard)
    if not heard.changes(before):
        return None
    return Touched(letter_id, was_sent, after.sent_sha256(), heard.in_words(before))


def _keep(shelf: Shelf, kept: Kept | None, heard: Heard) -> Kept:
    if kept is None:
        assert heard.shown is not None  # noqa: S101 - an unknown letter is heard of by its death
        shelf.last_seq += 1
        kept = Kept(shelf.last_seq, shelf.last_seq, replace(heard.shown, attempts=()), heard.life)
        shelf.letters[heard.shown.letter_id] = kept
    past = join_trails(kept.letter.attempts, heard.past)
    shown = heard.shown or kept.letter
    kept.letter = replace(shown, attempts=join_trails(past, shown.attempts) if past else shown.attempts)
    kept.life = heard.life
    return kept


def _answer(shelf: Shelf, answer: Answer) -> None:
    for items in shelf.items.values():
        item = items.get(answer.letter_id)
        if item is not None and item.generation == answer.generation:
            same = answer.fingerprint == item.fingerprint
            item.status = answered(item.status, succeeded=answer.fingerprint is None, same=same)
            item.app_version = answer.app_version
