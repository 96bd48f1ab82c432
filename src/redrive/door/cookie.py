"""The cookie in which a browser brings along the secret of whoever has signed in."""

from starlette.datastructures import Headers

SESSION = "redrive-session"


def session_in(headers: Headers) -> str | None:
    """The secret that a request brings along, if any: of several that of the nearest path, which a browser says first.

    Read by hand: the library's parser stops at the first cookie that it does not like, which may be somebody else's.
    """
    pairs = (one.strip().partition("=") for line in headers.getlist("cookie") for one in line.split(";"))
    return next((value for name, _, value in pairs if name == SESSION), None)
