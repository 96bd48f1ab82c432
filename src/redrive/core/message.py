"""A message: what a producer sent, byte for byte."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

Headers = tuple[tuple[str, bytes], ...]
"""Names and values in their order; a name may stand twice. Reserved names begin with `rd-`."""

RESERVED_PREFIX = "rd-"


class Message(NamedTuple):
    """What a producer sent: id, key, headers, body bytes. A tuple, because a worker makes one per message.

    `id` is this copy's name on its queue, unique for ever. `origin` is the id under which the message was
    first enqueued, carried across redrives; empty means that this copy is the first.
    """

    id: str
    queue: str
    body: bytes
    headers: Headers = ()
    key: bytes | None = None
    published_at: datetime | None = None
    expires_at: datetime | None = None
    origin: str = ""

    @property
    def origin_id(self) -> str:
        """The id of the first copy: the same for every retry and every redrive of this message."""
        return self.origin or self.id

    @property
    def idempotency_key(self) -> str:
        """A key for side effects, stable across retries and redrives; a new one only after an edit."""
        return f"{self.queue}:{self.origin or self.id}"

    def header(self, name: str) -> str | None:
        """The first header of this name as text (undecodable bytes escaped), or None."""
        for found, value in self.headers:
            if found == name:
                return value.decode("utf-8", "backslashreplace")
        return None


def as_headers(given: Mapping[str, str | bytes] | Headers | None) -> Headers:
    """Headers as people write them, in the form messages carry."""
    if not given:
        return ()
    pairs = given.items() if isinstance(given, Mapping) else given
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)


def without_reserved(headers: Headers) -> Headers:
    """Headers without our own `rd-*` names, which only settle and send_back may write."""
    return tuple(pair for pair in headers if not pair[0].startswith(RESERVED_PREFIX))
