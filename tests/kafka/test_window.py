"""What stands in the metadata of a commit."""

from hypothesis import given
from hypothesis import strategies as st

from redrive.brokers.kafka.window import SPAN, Window, load_window

LIMIT = 4096  # bytes of metadata that a broker takes unless it is told otherwise
OFFSETS = st.sets(st.integers(100, 100 + SPAN - 1), max_size=40)


def test_low_moves_up_to_the_first_that_is_not_done() -> None:
    window = Window(10).hand([10, 11, 12, 13]).finish([11, 13])

    assert (window.low, window.finish([10]).low, window.finish([10, 12]).low) == (10, 12, 14)


def test_what_was_passed_over_is_no_message_that_waits() -> None:
    window = Window(10).finish([10]).skip(11, 14)

    assert window == Window(14)


def test_a_gap_before_the_low_mark_changes_nothing() -> None:
    assert Window(10).skip(3, 9) == Window(10)


def test_what_is_handed_back_has_not_started() -> None:
    window = Window(10).hand([10, 12]).release([12])

    assert [window.is_handed(offset) for offset in (9, 10, 11, 12)] == [False, True, False, False]


def test_a_commit_of_others_has_nothing_beyond_its_offset() -> None:
    for metadata in (None, "", "parallel:consumer:state", "rd1:broken", "rd1:a:*:*"):
        assert load_window(7, metadata) == (Window(7), "")


@given(start=st.integers(90, 130), count=st.integers(0, 20), step=st.integers(1, 3))
def test_a_range_is_what_its_offsets_are(start: int, count: int, step: int) -> None:
    offsets = range(start, start + count * step, step)

    assert Window(100).hand(offsets) == Window(100).hand([*offsets])
    assert Window(100).finish(offsets) == Window(100).finish([*offsets])


@given(handed=OFFSETS, done=OFFSETS)
def test_a_window_survives_its_commit(handed: set[int], done: set[int]) -> None:
    window = Window(100).hand(handed).finish(done)

    assert load_window(window.low, window.dump("me")) == (window, "me")


def test_the_widest_window_fits_into_a_commit() -> None:
    window = Window(0).hand(range(SPAN)).finish(range(1, SPAN, 2))

    assert not window.reaches(SPAN)
    assert len(window.dump("x" * 16)) < LIMIT
    assert load_window(window.low, window.dump(""))[0] == window
