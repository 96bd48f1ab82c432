"""The checker over made-up logs: each kind of mistake turns exactly its own count red."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tests.crash.checker import RAW, ZEROS, After, Evidence, Found, check
from tests.crash.journal import Entry, Word
from tests.crash.plan import DEADLY, Fate, Plan

SOMEBODY, VICTIM = 100, 200


def entry(word: Word, at: float = 0.0, **facts: Any) -> Entry:
    return Entry(at=at, pid=facts.pop("pid", SOMEBODY), word=word, **facts)


def sent(name: str) -> list[Entry]:
    return [entry(Word.INVOKE, id=name), entry(Word.OK, id=name)]


def run(name: str, *, end: Word | None = Word.DONE, **facts: Any) -> list[Entry]:
    start = entry(Word.START, id=name, attempt=facts.pop("attempt", 1), origin=facts.pop("origin", name), **facts)
    return [start] if end is None else [start, start._replace(word=end)]


def failing(name: str, times: int = 4) -> list[Entry]:
    return [line for n in range(1, times + 1) for line in run(name, end=Word.FAIL, attempt=n, at=float(n))]


def letter(name: str, fate: Fate, **facts: Any) -> Found:
    known = {Fate.POISON: {"attempts": 4}, Fate.KILLER: {"attempts": 3, "crashes": 3}}
    return Found(name, f"letter of {name}", DEADLY.get(fate, ""), **{**known.get(fate, {}), **facts})


def evidence(plans: Iterable[Plan], journal: Iterable[Entry], **facts: Any) -> Evidence:
    return Evidence(plans={plan.id: plan for plan in plans}, journal=list(journal), **facts)


OK, POISON, KILLER = Plan("r:1", Fate.OK), Plan("r:2", Fate.POISON), Plan("r:3", Fate.KILLER)

GOOD = evidence(
    [OK, POISON, KILLER],
    [
        *sent("r:1"),
        *sent("r:2"),
        *sent("r:3"),
        *run("r:1"),
        *failing("r:2"),
        *(line for pid in (1, 2, 3, 4) for line in run("r:3", end=None, pid=pid)),
    ],
    letters=[letter("r:2", Fate.POISON), letter("r:3", Fate.KILLER)],
    retry_delay=0.1,
)


def test_a_good_run_is_all_zero_and_its_sums_add_up() -> None:
    verdict = check(GOOD)

    assert verdict.red == []
    assert list(verdict.zeros) == list(ZEROS)
    assert verdict.shown["acknowledged"] == 3 == verdict.shown["done"] + verdict.shown["dead"]


def test_an_acknowledged_message_that_is_nowhere_is_lost() -> None:
    verdict = check(evidence([OK], sent("r:1")))

    assert verdict.red == ["lost"]
    assert verdict.zeros["lost"] == ["r:1"]


def test_a_started_message_that_never_ended_is_lost() -> None:
    assert check(evidence([OK], [*sent("r:1"), *run("r:1", end=None)])).red == ["lost"]


def test_what_is_left_at_the_time_limit_is_stuck_and_not_lost() -> None:
    plans = [Plan(f"r:{n}", Fate.OK) for n in range(3)]

    verdict = check(evidence(plans, [line for plan in plans for line in sent(plan.id)], left=2))

    assert (len(verdict.zeros["stuck"]), len(verdict.zeros["lost"])) == (2, 1)


def test_what_a_dead_process_still_holds_at_the_time_limit_is_abandoned() -> None:
    assert check(evidence([OK], sent("r:1"), left=1, abandoned=1)).red == ["stuck", "abandoned"]


def test_a_poisonous_message_that_is_left_is_stuck_and_not_missed() -> None:
    assert check(evidence([POISON], sent("r:2"), left=1)).red == ["stuck"]


def test_a_message_of_unknown_outcome_may_be_there_or_not() -> None:
    unsure = [entry(Word.INVOKE, id="r:1"), entry(Word.UNKNOWN, id="r:1")]

    assert check(evidence([OK], unsure)).red == []
    assert check(evidence([OK], [*unsure, *run("r:1")])).shown["unknown, seen"] == 1


@pytest.mark.parametrize("seen", [{"journal": run("r:9")}, {"letters": [letter("r:9", Fate.POISON)]}])
def test_a_message_that_nobody_sent_is_a_phantom(seen: dict[str, Any]) -> None:
    assert check(replace(evidence([], []), **seen)).red == ["phantom"]


@pytest.mark.parametrize("fate", [fate for fate in Fate if fate not in DEADLY])
def test_a_dead_letter_of_a_message_that_would_have_succeeded_is_an_innocent(fate: Fate) -> None:
    dead = evidence([Plan("r:1", fate)], [*sent("r:1"), *run("r:1", end=Word.FAIL)], letters=[letter("r:1", fate)])

    assert check(dead).red == ["innocents"]


def test_a_second_letter_of_the_same_message_is_a_duplicate() -> None:
    assert check(replace(GOOD, letters=[*GOOD.letters, GOOD.letters[0]])).red == ["duplicates"]


def test_where_a_key_resolves_it_a_second_letter_is_shown_and_is_no_mistake() -> None:
    twice = replace(GOOD, letters=[*GOOD.letters, letter("r:2", Fate.POISON)], by_key=True)
    verdict = check(twice)

    assert (verdict.red, verdict.shown[RAW]) == ([], 1)
    other = replace(twice, letters=[*GOOD.letters, replace(letter("r:2", Fate.POISON), letter_id="another")])
    assert check(other).red == ["duplicates"]


def test_a_poisonous_message_that_was_done_is_missed() -> None:
    assert check(evidence([POISON], [*sent("r:2"), *run("r:2")])).red == ["missed"]


@pytest.mark.parametrize(
    "wrong",
    [
        letter("r:2", Fate.PERMANENT, attempts=4),
        letter("r:2", Fate.POISON, attempts=3),
        letter("r:2", Fate.POISON, attempts=5),
        letter("r:3", Fate.POISON, crashes=3),
        letter("r:3", Fate.KILLER, crashes=2),
        letter("r:3", Fate.KILLER, crashes=4),
    ],
)
def test_a_letter_with_a_wrong_reason_or_count_is_misjudged(wrong: Found) -> None:
    others = [one for one in GOOD.letters if one.id != wrong.id]

    assert check(replace(GOOD, letters=[*others, wrong])).red == ["misjudged"]


def test_a_letter_counts_no_more_attempts_than_were_started() -> None:
    short = evidence([POISON], [*sent("r:2"), *failing("r:2", times=3)], letters=[letter("r:2", Fate.POISON)])

    assert check(short).red == ["misjudged"]


def test_an_attempt_that_nobody_disturbed_is_in_the_letter() -> None:
    again = run("r:2", end=Word.FAIL, attempt=4, at=9.0, pid=VICTIM)

    assert check(replace(GOOD, journal=[*GOOD.journal, *again])).red == ["misjudged"]


@pytest.mark.parametrize(
    "why",
    [
        entry(Word.FAULT, pid=VICTIM, note="SIGKILL of a worker"),
        entry(Word.POINT, pid=VICTIM, note="SIGKILL at a named point: before a retry"),
        entry(Word.START, pid=VICTIM, id="r:3", origin="r:3"),
        entry(Word.FENCED, pid=VICTIM, id="r:2"),
        entry(Word.CUT, pid=VICTIM, id="r:2"),
    ],
)
def test_an_attempt_whose_process_was_struck_or_fenced_need_not_be_in_the_letter(why: Entry) -> None:
    again = run("r:2", end=Word.FAIL, attempt=4, at=9.0, pid=VICTIM)

    assert check(replace(GOOD, journal=[*GOOD.journal, *again, why])).red == []


def test_a_letter_with_other_bytes_is_altered() -> None:
    poison, killer = GOOD.letters

    assert check(replace(GOOD, letters=[poison, replace(killer, intact=False)])).red == ["altered"]


def test_a_message_that_is_there_twice_is_a_copy_even_if_both_are_done() -> None:
    assert check(replace(GOOD, journal=[*GOOD.journal, *run("r:1", origin="another")])).red == ["copies"]


def test_a_second_run_is_shown_and_is_no_mistake() -> None:
    verdict = check(replace(GOOD, journal=[*GOOD.journal, *run("r:1", pid=VICTIM)]))

    assert verdict.red == []
    assert verdict.shown["re-executions"] == 1


def test_a_retry_before_its_time_is_early() -> None:
    flaky = Plan("r:1", Fate.FLAKY, 2)
    failed = run("r:1", end=Word.FAIL, at=5.0)
    early = run("r:1", attempt=2, at=5.05)

    assert check(evidence([flaky], [*sent("r:1"), *failed, *early], retry_delay=0.1)).red == ["early"]
    assert check(evidence([flaky], [*sent("r:1"), *failed, *early], retry_delay=0.05)).red == []


def test_of_two_copies_with_one_key_the_retry_of_the_first_is_not_early_for_the_other() -> None:
    flaky = Plan("r:1", Fate.FLAKY, 2)
    journal = [*sent("r:1"), *run("r:1", end=Word.FAIL, at=5.0), *run("r:1", end=Word.FAIL, at=6.0)]
    told = evidence([flaky], [*journal, *run("r:1", attempt=2, at=6.05)], retry_delay=0.1)

    assert check(told).red == ["early"]
    assert check(replace(told, by_key=True)).red == []
    assert check(replace(told, by_key=True, retry_delay=1.5)).red == ["early"]


def test_a_point_that_no_process_reached_is_told() -> None:
    reached = entry(Word.POINT, pid=VICTIM, note="SIGKILL at a named point: before an ack")

    verdict = check(replace(GOOD, journal=[*GOOD.journal, reached], points=["before an ack", "before a retry"]))

    assert verdict.red == ["unreached"]
    assert verdict.zeros["unreached"] == ["before a retry"]


def test_a_process_that_was_only_stopped_at_a_point_has_not_died_there() -> None:
    stopped = entry(Word.POINT, pid=VICTIM, note="SIGSTOP at a named point: before an ack")

    assert check(replace(GOOD, journal=[*GOOD.journal, stopped], points=["before an ack"])).red == ["unreached"]


REDRIVEN = replace(
    GOOD,
    journal=[*GOOD.journal, *run("r:2", generation=1), *run("r:3", generation=1)],
    after=After(reports={("letter of r:2", 1): 1, ("letter of r:3", 1): 1}),
)


def test_everything_is_done_and_reported_after_the_redrive() -> None:
    verdict = check(REDRIVEN)

    assert verdict.red == []
    assert (verdict.shown["done"], verdict.shown["dead"], verdict.shown["both"]) == (1, 2, 0)


@pytest.mark.parametrize(
    ("journal", "after"),
    [
        (GOOD.journal, After(reports={("letter of r:2", 1): 1, ("letter of r:3", 1): 1})),
        (REDRIVEN.journal, replace(REDRIVEN.after or After(), left=1)),
        (REDRIVEN.journal, replace(REDRIVEN.after or After(), letters=[letter("r:2", Fate.POISON, generation=1)])),
    ],
)
def test_what_is_not_done_after_the_redrive_is_undone(journal: list[Entry], after: After) -> None:
    assert check(replace(REDRIVEN, journal=journal, after=after)).red == ["undone"]


@pytest.mark.parametrize("reports", [{("letter of r:2", 1): 1}, {("letter of r:2", 1): 2, ("letter of r:3", 1): 1}])
def test_a_redrive_without_exactly_one_report_is_unreported(reports: dict[tuple[str, int], int]) -> None:
    assert check(replace(REDRIVEN, after=After(reports=reports))).red == ["unreported"]


def test_what_a_drained_broker_still_holds_is_a_leak() -> None:
    after = replace(REDRIVEN.after or After(), leaks=["3 rows in hold"])

    assert check(replace(REDRIVEN, after=after)).red == ["leaks"]
