import pytest

from redrive.core.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode, 日本 and 🙂", "plain, ünïcode, 日本 and 🙂"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\ttabbed\r", "two\\nlines\\ttabbed\\r"),
        ("\x9b31m \x7f", "\\x9b31m \\x7f"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("half \ud800 of a pair", "half \\ud800 of a pair"),
    ],
)
def test_text_from_strangers_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
