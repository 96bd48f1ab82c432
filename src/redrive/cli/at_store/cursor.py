"""A cursor that somebody typed may be none."""

from collections.abc import Awaitable
from typing import TypeVar

from redrive.core.errors import ConfigError
from redrive.core.stored import Page

Row = TypeVar("Row")


async def asked(page: Awaitable[Page[Row]]) -> Page[Row]:
    """A page, awaited. Raises `ConfigError` for a cursor that is none."""
    try:
        return await page
    except ValueError as error:
        raise ConfigError(f"--after: {error}") from error
