"""What a visitor typed or followed, read once: a text of a form, the place where a list goes on."""

from collections.abc import Awaitable
from typing import TypeVar

from starlette.datastructures import ImmutableMultiDict

from redrive.core.errors import ConfigError
from redrive.core.stored import Page

WHY = 500  # characters that say why something was done
_CURSOR = 1024
_DIGITS = 9

Row = TypeVar("Row")


def text_in(given: ImmutableMultiDict[str, str], name: str, *, most: int = WHY) -> str:
    """A text that was typed, without the blanks around it. Raises `ConfigError` if it is too long or holds a NUL."""
    text = given.get(name, "").replace("\r\n", "\n").strip()
    if len(text) > most or "\x00" in text:
        raise ConfigError(f"{name}: expected at most {most:,} characters, none of them NUL")
    return text


def number_in(given: ImmutableMultiDict[str, str], name: str) -> int:
    """A number that one of our forms carries along. Raises `ConfigError`."""
    text = given.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        raise ConfigError(f"{name}: expected a number")
    return int(text)


def after_in(given: ImmutableMultiDict[str, str]) -> str | None:
    """Where a list goes on; None for its beginning. Raises `ConfigError`."""
    after = given.get("after", "")
    if len(after) > _CURSOR or "\x00" in after:
        raise ConfigError("after: this is no place in the list; begin at its top")
    return after or None


async def listed(page: Awaitable[Page[Row]]) -> Page[Row]:
    """A page of a list, awaited. Raises `ConfigError` for a place in it that is none."""
    try:
        return await page
    except ValueError as error:
        raise ConfigError(f"after: this is no place in the list; begin at its top ({error})") from error
