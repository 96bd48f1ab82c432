"""Where a change comes from: only a page of our own may ask for one."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request


def demand_own_page(request: Request) -> None:
    """Raise `HTTPException` 403 unless the browser says that one of our pages sent this.

    A page elsewhere can hide neither header. What is no browser has the API.
    """
    site = request.headers.getlist("sec-fetch-site")
    origin = request.headers.getlist("origin")
    host = request.headers.get("host", "").lower()
    ours = {f"{scheme}://{host}" for scheme in ("http", "https")}
    if (site or origin) and all(one == "same-origin" for one in site) and all(one.lower() in ours for one in origin):
        return
    raise HTTPException(HTTPStatus.FORBIDDEN, "only a page of this console may ask for that")
