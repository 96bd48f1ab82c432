"""Pages: a bare array, and in the `Link` header where the next one is."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import Query, Request, Response
from pydantic import Field

from redrive.api.problems import BadRequest
from redrive.core.stored import Page
from redrive.door.filters import NO_NUL

LARGEST = 100
USUAL = 50
LOOKS = 20  # times that a store is asked for one page: each takes a bounded time and may find nothing

Row = TypeVar("Row")

Limit = Annotated[int, Query(ge=1, le=LARGEST, description="How many, at most.")]
Cursor = Annotated[str, Field(min_length=1, max_length=1024, pattern=NO_NUL)]
After = Annotated[Cursor | None, Query(description="Go on behind a page, as its Link says.")]


async def full_page(
    look: Callable[[int, str | None], Awaitable[Page[Row]]], *, limit: int, after: str | None
) -> Page[Row]:
    """A page as full as can be had within a bound: `look(limit, after)` may give a short one while there is more.

    Raises `BadRequest` for a cursor that is none.
    """
    rows: list[Row] = []
    for _ in range(LOOKS):
        page = await asked(look(limit - len(rows), after))
        rows += page.rows
        after = page.after
        if after is None or len(rows) >= limit:
            break
    return Page(rows, after)


async def asked(page: Awaitable[Page[Row]]) -> Page[Row]:
    """A page, awaited. Raises `BadRequest` for a cursor that is none."""
    try:
        return await page
    except ValueError as error:
        raise BadRequest(str(error)) from error


def link_next(request: Request, response: Response, after: str | None) -> None:
    """Say where the next page is: the same request, behind the last row. At the end nothing is said."""
    if after is None:
        return
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "after"]
    # Relative: a proxy may have called the service by another name.
    where = f"{quote(request.scope['path'])}?{urlencode([*kept, ('after', after)])}"
    response.headers["Link"] = f'<{where}>; rel="next"'


LINKED: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            "Link": {
                "description": 'Where the next page is, rel="next"; absent at the end.',
                "schema": {"type": "string"},
            }
        }
    }
}
"""What the OpenAPI document says about a page."""
