from datetime import timedelta

import pytest

from redrive.core.errors import LetterNotFound, NotAllowed, StateConflict
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.triage import audit, editor, letters, retention
from redrive.triage.letters import Comparison, Discarded
from redrive.triage.retention import Rule
from redrive.triage.selection import Selection
from tests.unit.triage.bench import Bench

# ------------------------------------------------------------------------------------------------------- selections


async def test_nothing_is_selected_without_a_filter_or_an_explicit_all() -> None:
    bench = Bench()
    await bench.collect(3)

    with pytest.raises(NotAllowed, match="name a filter"):
        await bench.selection(query=Query())
    assert len((await bench.selection(everything=True)).rows) == 3


async def test_a_selection_tells_what_it_holds() -> None:
    bench = Bench()
    await bench.collect(3)
    bench.clock.advance("1h")
    await bench.collect(2, prefix="other", error_type="KeyError")

    preview = (await bench.selection(query=Query(queue="orders"))).preview()

    assert (preview.count, preview.by_queue, preview.by_state) == (5, {"orders": 5}, {"open": 5})
    assert preview.by_error_type == {"ValueError": 3, "KeyError": 2}
    assert preview.newest_at is not None
    assert preview.oldest_at == preview.newest_at - timedelta(hours=1)
    assert preview.words == "queue=orders, state=open"


async def test_only_letters_in_the_states_that_are_meant_are_selected_unless_they_are_named() -> None:
    bench = Bench()
    await bench.collect(3)
    await letters.discard(bench.desk, await bench.selection(letter_ids=["letter-1"]))

    assert [row.letter_id for row in (await bench.selection()).rows] == ["letter-0", "letter-2"]
    named = await bench.selection(letter_ids=["letter-1", "letter-1"])
    assert [row.life.state for row in named.rows] == [LetterState.DISCARDED]
    with pytest.raises(LetterNotFound):
        await bench.selection(letter_ids=["nothing"])


async def test_a_row_made_of_a_whole_letter_is_the_row_of_the_list() -> None:
    bench = Bench()
    await bench.collect(1, user_id="u7")

    assert (await bench.selection(letter_ids=["letter-0"])).rows == (await bench.selection()).rows


# ------------------------------------------------------------------------------------------------------- discard, note


async def test_discarding_leaves_alone_what_has_changed_since_it_was_looked_at() -> None:
    bench = Bench()
    await bench.collect(3)
    selection = await bench.selection()
    await letters.discard(bench.desk, Selection(selection.rows[:1], "one"))

    assert await letters.discard(bench.desk, selection, why="test data") == Discarded(discarded=2, changed=1)
    assert await bench.states() == {"discarded": 3}


async def test_discarding_is_one_operation_in_the_audit_and_a_line_for_each_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(letters, "CHUNK", 2)
    bench = Bench()
    await bench.collect(5)
    await letters.discard(bench.desk, await bench.selection(query=Query(queue="orders")), why="test data")

    records = (await audit.find(bench.desk)).rows
    (operation,) = [record for record in records if not record.letter_id]

    assert (operation.who, operation.verb, operation.count) == ("sam", "letters.discard", 5)
    assert (operation.selection, operation.detail["why"]) == ("queue=orders, state=open", "test data")
    assert len({record.letter_id for record in records if record.letter_id}) == 5
    assert {record.operation_id for record in records} == {operation.operation_id}
    assert await audit.verify(bench.desk) is None


async def test_a_note_is_kept_and_audited() -> None:
    bench = Bench()
    await bench.collect(1)
    await letters.note(bench.desk, "letter-0", "ask finance")

    assert (await letters.show(bench.desk, "letter-0")).note == "ask finance"
    assert (await audit.find(bench.desk, letter_id="letter-0")).rows[0].verb == "letters.note"


# ------------------------------------------------------------------------------------------------------- purge


async def test_a_purge_removes_what_is_old_and_its_preview_says_how_much() -> None:
    bench = Bench()
    await bench.collect(3)
    bench.clock.advance("100d")
    await bench.collect(2, prefix="young")

    preview = await letters.purge_preview(bench.desk, Query(), older_than=timedelta(days=90))
    done = await letters.purge(bench.desk, Query(), older_than=timedelta(days=90))

    assert (preview.count.number, done.count.number) == (3, 3)
    assert sorted(await bench.ids()) == ["young-0", "young-1"]
    await bench.store.collect([(await bench.get("young-0")).letter])
    assert sorted(await bench.ids()) == ["young-0", "young-1"]


async def test_the_audit_counts_every_letter_of_a_large_purge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "CHUNK", 2)
    bench = Bench()
    await bench.collect(5)
    bench.clock.advance("100d")
    await letters.purge(bench.desk, Query(), older_than=timedelta(days=90))

    records = [record for record in (await audit.find(bench.desk)).rows if record.verb == "letters.purge"]

    assert sorted(record.count or 0 for record in records if not record.letter_id) == [1, 2, 2]


async def test_retention_is_per_state_and_queue_and_does_nothing_without_rules() -> None:
    bench = Bench()
    await bench.collect(2)
    await bench.collect(2, prefix="mail", queue="mails")
    await letters.discard(bench.desk, await bench.selection(letter_ids=["mail-0", "letter-0"]))
    bench.clock.advance("10d")
    rules = [Rule(older_than=timedelta(days=1), state=LetterState.DISCARDED, queue="mails")]

    assert await retention.apply(bench.desk, []) == []
    assert [kept.purge.count.number for kept in await retention.preview(bench.desk, rules)] == [1]
    assert [kept.purge.count.number for kept in await retention.apply(bench.desk, rules)] == [1]
    assert sorted(await bench.ids()) == ["letter-0", "letter-1", "mail-1"]


# ------------------------------------------------------------------------------------------------------- verify


async def test_content_is_compared_by_its_hash_with_the_original_and_with_edits() -> None:
    bench = Bench()
    await bench.collect(1)
    await editor.edit(bench.desk, "letter-0", body=b"mended")
    stored = await bench.get()

    same = letters.verify(stored, b'{"order": 0}')
    edited = letters.verify(stored, b"mended")
    other = letters.verify(stored, b"other")

    assert isinstance(same, Comparison)
    assert (same.same, same.edit) == (True, None)
    assert (edited.same, edited.edit) == (False, 1)
    assert (other.same, other.edit) == (False, None)
    assert same.letter_sha256 == same.content_sha256 != other.content_sha256


async def test_a_letter_is_named_by_its_id_or_by_that_of_its_dlq_entry() -> None:
    bench = Bench()
    await bench.collect(1, dlq_entry_id="17-0")
    await bench.collect(1, prefix="mail", queue="mails", dlq_entry_id="17-0")

    assert (await letters.named(bench.desk, "mail-0")).letter.letter_id == "mail-0"
    assert (await letters.named(bench.desk, "17-0", queue="orders")).letter.letter_id == "letter-0"
    with pytest.raises(StateConflict, match="mails on memory, orders on memory"):
        await letters.named(bench.desk, "17-0")
    for name, queue in (("", None), ("nobody", None), ("letter-0", "mails"), ("17-0", "nowhere")):
        with pytest.raises(LetterNotFound):
            await letters.named(bench.desk, name, queue=queue)


async def test_a_purge_without_an_age_also_takes_what_fails_tomorrow() -> None:
    bench = Bench()
    await bench.collect(2, failed_at=bench.clock.now() + timedelta(days=1))

    done = await letters.purge(bench.desk, Query(queue="orders"))

    assert done.count.number == 2
    assert done.words == "queue=orders, state=open|redriving|resolved|discarded|parked"


async def test_one_letter_is_discarded_as_it_was_looked_at() -> None:
    bench = Bench()
    await bench.collect(1)
    seen = await bench.get()
    await editor.edit(bench.desk, "letter-0", body=b"changed")

    with pytest.raises(StateConflict, match="has changed since"):
        await letters.discard_one(bench.desk, seen)
    await letters.discard_one(bench.desk, await bench.get(), why="a test")
    await letters.discard_one(bench.desk, await bench.get())

    assert (await bench.get()).life.state is LetterState.DISCARDED
