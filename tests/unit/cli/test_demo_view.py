import io
from dataclasses import replace
from itertools import islice

import pytest
from rich.console import Console

from redrive.cli.demo_fates import FATES, in_turn
from redrive.cli.demo_view import Count, Line, News, Picture, Trouble, account, draw, draw_end, fact, line

COUNTS = {
    "emails": Count(205, 204, 1),
    "payments": Count(128, 100, 2, 3, 20, 3),
    "refunds": Count(77, 55, 1, 1, 0, 20),
    "imports": Count(50, 33, 0, 0, 0, 17),
    "thumbnails": Count(51, 44, 2, 2, 1, 2),
}
PICTURE = Picture(
    elapsed=12.34,
    seconds=20,
    counts=COUNTS,
    stories={fate.queue: fate.story for fate in FATES},
    incidents=[Trouble("MissingRate", "refunds", 20, 0), Trouble("InvalidPayload", "imports", 17, 17)],
    story=(
        Line("the worst incident: MissingRate on refunds, 20 letters", done=True),
        Line("its bug is fixed: version 2 is deployed", done=True),
        Line(f"sent back, canary first: Sent 1, it succeeded on version 2; sent 3: {'4 resolved, ' * 5}", done=True),
        Line("InvalidPayload on imports, where nothing was fixed: …"),
    ),
    news=tuple(News("12:03:01", "payments", f"number {number}") for number in range(40)),
    next_due=0.4,
    deaths=3,
)


def drawn(view: object, *, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return [text.rstrip() for text in console.file.getvalue().splitlines()]


def test_the_sum_names_every_place_and_says_whether_it_is_true() -> None:
    assert account(PICTURE.total) == (
        "published 511 = done 436 + waiting 6 + scheduled 21 + in flight 6 + dead 42 + discarded 0"
    )
    assert account(Count(3, done=1, dead=1)).startswith("published 3 ≠ done 1")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (160, 50)])
def test_the_view_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(draw(PICTURE, width=width, height=height), width=width)

    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    rows = {text.split()[0]: text.split() for text in lines if text.strip()}
    assert rows["payments"][-6:] == ["128", "100", "2", "20", "3", "3"]
    assert rows["total"][-6:] == ["511", "436", "6", "21", "6", "42"]


def test_a_high_terminal_shows_the_last_events() -> None:
    text = "\n".join(drawn(draw(PICTURE, width=100, height=36), width=100))

    assert "number 39" in text
    assert "number 1\n" not in text


def test_what_is_there_is_seen_in_the_bar_however_little() -> None:
    picture = Picture(elapsed=1, seconds=2, counts={"emails": Count(1001, done=1000, dead=1)}, stories={"emails": ""})
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(draw(picture, width=100, height=24))

    assert isinstance(console.file, io.StringIO)
    assert "\x1b[31m█" in console.file.getvalue()


def test_the_end_says_the_sum_and_the_deaths() -> None:
    text = "\n".join(drawn(draw_end(PICTURE, width=110), width=110))

    assert account(PICTURE.total) in text
    assert "✓ every message is accounted for" in text
    assert "3 worker processes died on the way" in text


def test_what_was_discarded_has_a_place_once_there_is_any() -> None:
    some = replace(PICTURE, counts={**COUNTS, "emails": Count(205, 203, 1, discarded=1)})

    assert "discarded" not in "\n".join(drawn(draw(PICTURE, width=100, height=24), width=100))
    assert "discarded 1" in "\n".join(drawn(draw(some, width=110, height=24), width=110))
    assert "dead 42  discarded 1" in line(some)


def test_a_low_terminal_shows_the_story_rather_than_the_incidents() -> None:
    text = "\n".join(drawn(draw(PICTURE, width=100, height=24), width=100))

    assert "version 2 is deployed" in text
    assert "number 39" not in text


def test_the_end_says_whether_the_story_was_told_to_its_end() -> None:
    told = replace(PICTURE, is_told=True)

    assert "no time for more" in "\n".join(drawn(draw_end(PICTURE, width=110), width=110))
    assert "no time for more" not in "\n".join(drawn(draw_end(told, width=110), width=110))
    assert fact(told)["story"] == [text for text, done in PICTURE.story if done]


def test_the_end_does_not_hide_a_wrong_sum() -> None:
    wrong = Picture(elapsed=1, seconds=1, counts={"emails": Count(2, done=1)}, stories={"emails": ""})

    assert "✗ the sum is wrong" in "\n".join(drawn(draw_end(wrong, width=110), width=110))
    assert fact(wrong)["adds_up"] is False


def test_a_line_says_the_same_in_short() -> None:
    assert line(PICTURE) == (
        " 12.3 s  published 511  done 436  waiting 6  scheduled 21  in flight 6  dead 42  worker deaths 3"
    )


def test_each_queue_gets_its_share() -> None:
    turn = list(islice(in_turn(), sum(fate.share for fate in FATES)))

    assert {fate: turn.count(fate) for fate in FATES} == {fate: fate.share for fate in FATES}
    assert turn[0] is not turn[1]
