import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from redrive.console.clip import clip, line, weight
from redrive.console.payload import ROOM, payload_view
from redrive.console.tree import parsed, tree
from redrive.core.printable import printable
from tests.unit.console.seen import read
from tests.unit.core.letters import json_values, texts


def shown(payload: bytes) -> str:
    """A tree as somebody reads it."""
    return read(tree(parsed(payload), room=ROOM)[0]).text


@pytest.mark.parametrize(
    ("payload", "best", "views"),
    [
        (b'{"a": 1}', "tree", ("tree", "text", "hex")),
        (b"[1, 2]", "tree", ("tree", "text", "hex")),
        (b"4711", "text", ("text", "hex")),
        (b"plain\ttext\n", "text", ("text", "hex")),
        ("größe".encode(), "text", ("text", "hex")),
        (b"\xff\xfe", "hex", ("text", "hex")),
        (b"a\x00b", "hex", ("text", "hex")),
        (b"", "text", ("text", "hex")),
        (b'{"a": ', "text", ("text", "hex")),
    ],
)
def test_a_payload_is_shown_as_what_it_is(payload: bytes, best: str, views: tuple[str, ...]) -> None:
    found = payload_view(payload)

    assert (found.view, found.views, found.note) == (best, views, "")


def test_another_view_is_had_by_asking_and_one_that_does_not_fit_is_not() -> None:
    assert payload_view(b'{"a": 1}', "hex").view == "hex"
    assert payload_view(b"plain", "tree").view == "text"
    assert payload_view(b"(hidden)", "hex", is_hidden=True).view == "text"


def test_hexadecimal_stands_beside_its_characters() -> None:
    found = payload_view(b"GET / HTTP/1.1\r\nHost", "hex").content.splitlines()

    assert found == [
        "00000000  47 45 54 20 2f 20 48 54 54 50 2f 31 2e 31 0d 0a  GET / HTTP/1.1..",
        "00000010  48 6f 73 74                                      Host",
    ]


def test_what_is_too_much_is_cut_and_says_how_much_is_shown() -> None:
    text = payload_view(b"x" * 1_000_000)
    coded = payload_view(b"\xff" * 1_000_000)

    assert text.note == "The first 57.3 kB of 1.0 MB."
    assert len(text.content) == ROOM
    assert coded.note == "The first 10.2 kB of 1.0 MB."


def test_text_that_is_cut_inside_a_character_is_still_text() -> None:
    assert payload_view(b"x" + "ü".encode() * ROOM).view == "text"


def test_a_tree_shows_names_texts_and_numbers_as_they_are_written() -> None:
    payload = (
        b'{"price": 19.90, "huge": 1e400, "id": 123456789012345678901234567890, "ok": true, "none": null, "t": "a\\nb"}'
    )

    assert shown(payload) == (
        '{6} price : 19.90 huge : 1e400 id : 123456789012345678901234567890 ok : true none : null t : "a\\nb"'
    )


def test_a_name_that_stands_twice_is_shown_twice() -> None:
    assert shown(b'{"a": 1, "a": 2}') == "{2} a : 1 a : 2"


def test_a_tree_ends_where_there_is_no_more_room_and_says_how_much_is_left() -> None:
    drawn, is_cut = tree([*range(1000)], room=2000)

    assert is_cut
    assert len(drawn) < 3000
    assert "more" in read(drawn).text
    assert drawn.count("<ul") == drawn.count("</ul>")


def test_a_long_text_in_a_tree_is_cut() -> None:
    assert "… 9,400 more characters" in shown(json.dumps(["x" * 10_000]).encode())


@pytest.mark.parametrize("depth", [900, 100_000])
def test_depth_ends_a_tree_or_makes_it_a_text(depth: int) -> None:
    found = payload_view(b"[" * depth + b"]" * depth)

    assert "… deeper" in found.content if found.view == "tree" else found.content.startswith("[[[")


@given(json_values)
def test_a_tree_of_anything_is_text_inside_of_its_own_tags(value: object) -> None:
    drawn, _ = tree(parsed(json.dumps(value).encode()), room=ROOM)
    tags = {one.tag for one in read(drawn).root.walk()}

    assert tags <= {"", "ul", "li", "details", "summary", "span"}
    assert printable(drawn) == drawn


@given(texts.map(lambda text: text * 20), st.integers(1, 400))
def test_a_clipped_text_fits_and_is_the_beginning(text: str, room: int) -> None:
    found = clip(text, room)

    assert weight(found.text) <= room
    assert found.is_cut == (found.taken < len(text))
    assert len(escape(line(text, room)).encode("utf-8", "replace")) <= room + 3


def test_lines_and_tabs_stay_and_all_other_controls_are_escaped() -> None:
    assert clip("a\r\n\tb\x1b[31m\u202e\r", 1000).text == "a\n\tb\\x1b[31m\\u202e\\r"
    assert line("a\nb") == "a\\nb"
