"""Where people look at what they are told of."""

from urllib.parse import quote


class Pages:
    """Pages of the console that people find at this URL; without one there are no links.

    >>> Pages("https://redrive.example.org/").incident("a1/b2")
    'https://redrive.example.org/incidents/a1%2Fb2'
    """

    def __init__(self, public_url: str | None = None) -> None:
        self._base = (public_url or "").rstrip("/")

    def incident(self, incident_id: str) -> str:
        """The page of an incident."""
        return self._base and f"{self._base}/incidents/{_quoted(incident_id)}"

    def queue(self, queue: str) -> str:
        """The letters of a queue."""
        return self._base and f"{self._base}/letters?queue={_quoted(queue)}"


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
