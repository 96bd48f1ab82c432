"""What a process has in its hands when partitions come and go."""

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Message as ClientMessage

from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.handful import Handful, Token, by_handful, by_row, by_share, handed_out, joined, noted
from redrive.brokers.kafka.hands import Hands
from redrive.brokers.kafka.reading import stretch_of
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.stretch import Stretch
from redrive.brokers.kafka.window import SPAN, Window
from redrive.core.message import Message
from redrive.core.outcome import DONE, Settled, SettleStatus
from redrive.core.row import InRows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = Lease("one", NOW, NOW + timedelta(seconds=60))
LATER = LEASE.until + timedelta(seconds=1)
HERE, THERE = ("orders", 0), ("orders..shop.lane", 0)


def holding(*places: tuple[str, int]) -> tuple[Hands, list[Share]]:
    hands, shares = Hands(), [Share(place, Window(0)) for place in places]
    hands.come(shares)
    return hands, shares


def entry(share: Share, offset: int, *, key: bytes | None = None) -> Entry:
    return Entry(Message(f"{share.place[0]}-{offset}", "orders", b"", key=key), share, offset)


def stretch(share: Share, offset: int, *keys: bytes | None) -> Stretch:
    found = [
        ClientMessage(topic="orders", partition=0, offset=number, value=b"", key=key, timestamp=(1, 0))
        for number, key in enumerate(keys, offset)
    ]
    made = stretch_of(found, share, offset)
    assert made is not None
    return made


def chosen(hands: Hands, limit: int = 10) -> list[Handful]:
    return hands.choose(limit, now=NOW)


def taken(hands: Hands, limit: int = 10) -> list[Token]:
    handed = hands.hand_out(chosen(hands, limit), lease=LEASE)
    return [each.token for each in handed_out(handed, "shop", now=NOW)]


def offsets(tokens: list[Token]) -> list[int]:
    return [offset for _, offset in tokens]


def test_what_is_lost_between_choice_and_hand_out_does_not_block_its_key() -> None:
    hands, (share,) = holding(HERE)
    hands.add(entry(share, 0, key=b"a"))
    lost = chosen(hands)
    hands.leave([HERE])
    assert hands.hand_out(lost, lease=LEASE) == []
    again = Share(HERE, Window(0))
    hands.come([again])
    hands.add(entry(again, 0, key=b"a"))

    assert [each.share for each in chosen(hands)] == [again]


def test_what_waits_behind_a_key_goes_on_when_the_one_before_it_is_lost() -> None:
    hands, (here, there) = holding(HERE, THERE)
    hands.ready.append(stretch(here, 0, b"a", b"a"))
    hands.add(entry(there, 0, key=b"a"))
    assert offsets(taken(hands)) == [0]
    assert chosen(hands) == []
    hands.leave([HERE])

    assert [each.share for each in chosen(hands)] == [there]


def test_of_one_key_in_a_stretch_only_the_first_starts_and_the_next_when_it_has_ended() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, b"a", None, b"a", b"b", b"a"))
    tokens = taken(hands)
    assert offsets(tokens) == [0, 1, 3]
    assert taken(hands) == []
    hands.let_go(by_handful(tokens[1:]))
    assert taken(hands) == []
    hands.let_go(by_handful(tokens[:1]))

    assert offsets(taken(hands)) == [2]


@pytest.mark.parametrize("key", [None, b"a"])
def test_what_is_handed_back_is_no_longer_in_the_hands_of_whoever_had_it(key: bytes | None) -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, key))
    (first,) = taken(hands)
    hands.take_back([first])
    assert hands.are_empty
    (second,) = taken(hands)

    assert hands.in_hand == {share: [0]}
    assert not hands.extend(first, until=LATER)
    assert hands.extend(second, until=LATER)
    assert hands.answer(first) is None


def test_what_was_taken_away_is_in_nobodys_hands() -> None:
    hands, (here, there) = holding(HERE, THERE)
    hands.ready.append(stretch(here, 0, None, None))
    hands.add(entry(there, 0))
    tokens = taken(hands)
    hands.let_go(by_handful(tokens[:1]))
    hands.leave([HERE])

    assert hands.in_hand == {there: [0]}
    assert not here.is_ours
    assert [hands.answer(token) for token in tokens[:2]] == [DONE, None]


def test_what_was_settled_is_answered_as_it_was_when_it_is_settled_again() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, None, None))
    done, failed = tokens = taken(hands)
    later = Settled(SettleStatus.DONE, due_at=NOW)
    hands.let_go(by_handful(tokens), {failed: later})

    assert [hands.answer(done), hands.answer(failed)] == [DONE, later]
    assert hands.are_empty


def test_a_handful_ends_as_a_whole_in_parts_or_in_another_order_alike() -> None:
    hands, (share,) = holding(HERE)
    for ends in ([[0, 1, 2]], [[2, 0, 1]], [[0, 1], [2]], [[1], [2, 0]]):
        hands.ready.append(stretch(share, 0, None, None, None))
        tokens = taken(hands)
        for end in ends:
            found = by_handful([tokens[number] for number in end])
            assert hands.hold_all(found)
            hands.let_go(found)
            assert not hands.hold_all(found)

        assert hands.are_empty
        assert [hands.answer(token) for token in tokens] == [DONE] * 3


def test_what_somebody_else_has_in_hand_is_not_ours() -> None:
    theirs, (share,) = holding(HERE)
    theirs.ready.append(stretch(share, 0, None))
    (token,) = taken(theirs)
    ours, _ = holding(HERE)

    assert not ours.hold(token)
    assert not ours.hold_all(by_handful([token]))
    assert not ours.extend(token, until=LATER)
    assert ours.answer(token) is None


def test_what_is_in_the_hands_of_somebody_who_is_not_heard_of_becomes_suspect() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, None, None, None))
    tokens = taken(hands)
    hands.extend(tokens[1], until=LATER + timedelta(seconds=60))
    hands.set_apart(NOW)
    assert hands.suspects == []
    hands.set_apart(LATER)

    assert [each.offset for each in hands.suspects] == [0, 2]
    assert hands.in_hand == {share: [1]}
    assert hands.answer(tokens[0]) is None


def test_what_is_too_far_ahead_of_the_lowest_unfinished_message_waits() -> None:
    hands, (share,) = holding(HERE)
    for offset in (0, SPAN, 1):
        hands.add(entry(share, offset))

    assert offsets(taken(hands)) == [0, 1]
    share.window = share.window.finish([0])
    assert offsets(taken(hands)) == [SPAN]


def test_a_stretch_is_chosen_as_far_as_it_is_near_enough() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, SPAN - 1, None, None, None))

    assert offsets(taken(hands)) == [SPAN - 1]
    share.window = share.window.finish([0])
    assert offsets(taken(hands)) == [SPAN]
    assert hands.ready.size == 1


def test_no_more_is_chosen_than_was_asked_for_and_the_rest_comes_next() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, *[None] * 5))
    hands.ready.append(stretch(share, 5, *[b"a", b"b"]))
    assert hands.ready.size == 7

    assert [offsets(taken(hands, 3)) for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert hands.ready.size == 0


def test_what_was_chosen_and_not_handed_out_comes_again_in_its_order() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, None, b"a", b"a", None))
    hands.unchoose(chosen(hands))

    assert offsets(taken(hands)) == [0, 1, 3]


def test_what_is_handed_back_starts_again_before_all_that_waits_behind_its_key() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, b"a", b"b", b"a", b"b", b"a", None))
    tokens = taken(hands)
    assert offsets(tokens) == [0, 1, 5]
    hands.take_back(tokens)
    seen = []
    while tokens := taken(hands):
        seen.append(sorted(offsets(tokens)))
        hands.let_go(by_handful(tokens))

    assert seen == [[0, 1, 5], [2, 3], [4]]


def test_what_waits_behind_a_key_is_not_forgotten_when_the_next_to_start_is_taken_away() -> None:
    hands, (here, there) = holding(HERE, THERE)
    hands.add(entry(here, 0, key=b"a"))
    hands.add(entry(there, 0, key=b"a"))
    tokens = taken(hands)
    hands.take_back(tokens)
    hands.leave([HERE])

    assert [each.share for each in chosen(hands)] == [there]


def test_offsets_are_gathered_by_partition_in_whatever_order_they_come() -> None:
    _, (here, there) = holding(HERE, THERE)
    entries = [entry(share, offset) for share, offset in ((here, 1), (there, 5), (here, 0))]
    one, two, other = Handful(here, None), Handful(here, None), Handful(there, None)

    assert by_share(entries) == {here: [1, 0], there: [5]}
    assert noted({one: [1, 2], other: [7], two: [3]}) == {here: range(1, 4), there: range(7, 8)}
    assert noted({one: [1, 3], two: [2]}) == {here: range(1, 4)}
    assert noted({one: [4, 1], two: [2]}) == {here: [1, 2, 4]}


def rows(hands: Hands, limit: int = 10) -> InRows:
    return handed_out(hands.hand_out(chosen(hands, limit), lease=LEASE), "shop", now=NOW)


def test_new_messages_are_handed_out_in_rows_also_with_keys_if_no_two_are_alike() -> None:
    hands, (here, there) = holding(HERE, THERE)
    hands.ready.append(stretch(here, 0, None, None))
    hands.ready.append(stretch(there, 5, b"a", None, b"b"))
    handed = rows(hands)

    assert [row.size for row in handed.rows] == [2, 3]
    assert offsets([each.token for each in handed]) == [0, 1, 5, 6, 7]
    assert [each.message.key for each in handed] == [None, None, b"a", None, b"b"]
    hands.add(entry(here, 2, key=b"a"))
    assert taken(hands) == []
    found = by_row(handed.rows)
    assert found is not None
    hands.let_go(found)
    assert offsets(taken(hands)) == [2]


def test_what_waits_for_a_key_or_something_has_happened_to_is_handed_out_by_itself() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, b"a"))
    hands.ready.append(stretch(share, 1, b"a", b"b"))
    handed = rows(hands)

    assert [row.deliveries()[0].message.key for row in handed.rows] == [b"a"]
    assert offsets([each.token for each in handed.others]) == [2]
    assert offsets([each.token for each in handed]) == [0, 2]


def test_parts_of_a_row_end_by_themselves_and_the_rest_stays_in_hand() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, *[None] * 6))
    (row,) = rows(hands).rows
    middle = by_row([row.from_(2).first(2)])
    assert middle is not None
    assert hands.hold_all(middle)
    hands.let_go(middle)
    assert not hands.hold_all(middle)
    assert hands.in_hand == {share: [0, 1, 4, 5]}
    assert hands.hold(row.delivery(1).token)
    assert not hands.hold(row.delivery(2).token)
    assert hands.answer(row.delivery(2).token) == DONE
    start = by_row([row.first(1), row.from_(1).first(1)])
    assert start == {row.delivery(0).token[0]: range(2)}
    hands.let_go(start)
    assert hands.in_hand == {share: [4, 5]}
    hands.take_back([row.delivery(5).token])
    assert hands.in_hand == {share: [4]}
    assert offsets(taken(hands)) == [5]


def test_parts_of_a_row_end_together_with_what_is_between_them_in_one_call() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, *[None] * 5))
    (row,) = rows(hands).rows
    parts, between = by_row([row.from_(3), row.first(2)]), by_handful([row.delivery(2).token])
    assert parts is not None
    together = joined(parts, between)

    assert hands.hold_all(together)
    assert noted(together) == {share: range(5)}
    assert not hands.hold_all(joined(together, between))
    hands.let_go(together)
    assert hands.are_empty


def test_a_delivery_of_a_row_is_the_same_whenever_somebody_asks_for_it() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, *[None] * 4))
    (row,) = rows(hands).rows
    second = row.delivery(1)

    assert row.deliveries()[1] is second
    assert row.from_(1).first(2).deliveries()[0] is second
    assert row.delivery(3) is row.deliveries()[3]


def test_what_was_redriven_by_hand_before_it_was_handed_out_is_left_out_of_its_row() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, *[None] * 4))
    (handful,) = chosen(hands)
    hands.let_go({handful: [1]})
    handed = handed_out(hands.hand_out([handful], lease=LEASE), "shop", now=NOW)

    assert [each.message.id for each in handed] == ["orders-0-0", "orders-0-2", "orders-0-3"]
    assert offsets([each.token for each in handed]) == [0, 2, 3]


def test_who_ends_too_late_does_not_free_a_key_that_somebody_else_holds() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, b"a", b"b"))
    late = by_handful(taken(hands))
    hands.leave([HERE])
    again = Share(HERE, Window(0))
    hands.come([again])
    hands.ready.append(stretch(again, 0, b"a", b"b"))
    hands.ready.append(stretch(again, 2, b"a"))
    assert offsets(taken(hands)) == [0, 1]
    hands.let_go(late)

    assert taken(hands) == []


def test_a_few_slow_messages_do_not_keep_the_others_of_their_stretch() -> None:
    hands, (share,) = holding(HERE)
    hands.ready.append(stretch(share, 0, *[None] * 100))
    (row,) = rows(hands, 100).rows
    handful = row.delivery(0).token[0]
    found = by_row([row.from_(2)])
    assert found is not None
    hands.let_go(found)

    assert isinstance(handful.held, dict)
    assert hands.in_hand == {share: [0, 1]}
    assert hands.hold_all(by_handful([row.delivery(0).token, row.delivery(1).token]))
