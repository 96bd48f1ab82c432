"""What a process has in its hands when partitions come and go."""

from datetime import UTC, datetime, timedelta

from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.hands import Hands, by_share
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import SPAN, Window
from redrive.core.message import Message

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = Lease("one", NOW, NOW + timedelta(seconds=60))
HERE, THERE = ("orders", 0), ("orders..shop.lane", 0)


def holding(*places: tuple[str, int]) -> tuple[Hands, list[Share]]:
    hands, shares = Hands(), [Share(place, Window(0)) for place in places]
    hands.come(shares)
    return hands, shares


def entry(share: Share, offset: int, *, key: bytes | None = None) -> Entry:
    return Entry(Message(f"{share.place[0]}-{offset}", "orders", b"", key=key), share, offset)


def chosen(hands: Hands, limit: int = 10) -> list[Entry]:
    return hands.choose(limit, now=NOW)


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
    for each in (entry(here, 0, key=b"a"), entry(here, 1, key=b"a"), entry(there, 0, key=b"a")):
        hands.add(each)
    hands.hand_out(chosen(hands), lease=LEASE)
    assert chosen(hands) == []
    hands.leave([HERE])

    assert [each.share for each in chosen(hands)] == [there]


def test_what_is_handed_back_is_no_longer_in_the_hands_of_whoever_had_it() -> None:
    hands, (share,) = holding(HERE)
    hands.add(entry(share, 0))
    (first,) = hands.hand_out(chosen(hands), lease=LEASE)
    hands.take_back([first])
    (second,) = hands.hand_out(chosen(hands), lease=LEASE)

    assert second.message is first.message
    assert hands.in_hand == {second}
    assert not hands.extend(first, until=NOW)


def test_what_was_taken_away_is_in_nobodys_hands() -> None:
    hands, (here, there) = holding(HERE, THERE)
    hands.add(entry(here, 0))
    hands.add(entry(there, 0))
    kept = [each for each in hands.hand_out(chosen(hands), lease=LEASE) if each.share is there]
    hands.leave([HERE])

    assert hands.in_hand == {*kept}
    assert not here.is_ours


def test_what_is_too_far_ahead_of_the_lowest_unfinished_message_waits() -> None:
    hands, (share,) = holding(HERE)
    for offset in (0, SPAN, 1):
        hands.add(entry(share, offset))

    assert [each.offset for each in chosen(hands)] == [0, 1]
    share.window = share.window.finish([0])
    assert [each.offset for each in chosen(hands)] == [SPAN]


def test_offsets_are_gathered_by_partition_in_whatever_order_they_come() -> None:
    _, (here, there) = holding(HERE, THERE)
    entries = [entry(share, offset) for share, offset in ((here, 1), (there, 5), (here, 0))]

    assert by_share(entries) == {here: [1, 0], there: [5]}
