"""Server-sent events: bytes in, events out."""

from collections.abc import Iterator
from typing import NamedTuple


class ServerEvent(NamedTuple):
    """One event: its name, empty if it has none, and its data."""

    name: str
    data: str


class EventReader:
    """Puts events together from bytes that were cut anywhere. Comments, which only keep a line alive, are none."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that are complete with these bytes."""
        *lines, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            data, name = self._data, self._name
            self._data, self._name = [], ""
            return ServerEvent(name, "\n".join(data)) if data else None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None
