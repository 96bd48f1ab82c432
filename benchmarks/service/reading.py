"""What people ask of the service, each time about another letter, as a client with one connection sees it."""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from benchmarks.measure import cpu_of, peak_rss, warm_up
from benchmarks.store.load import RESOLVED, letters
from redrive.core.letter import DeadLetter


class Read(NamedTuple):
    """A path under `/api/v1/dlq` that asks about a letter, and whether an answer is about it."""

    path: Callable[[DeadLetter], str]
    fits: Callable[[Any, DeadLetter], bool]


def _messages(**filters: str | None) -> str:
    return f"messages?{urlencode(filters)}"


def _text(letter: DeadLetter) -> str:
    return f'"order": {letter.original_message_id},'


READS: Mapping[str, Read] = {
    "list of a queue": Read(
        lambda letter: _messages(queue=letter.queue),
        lambda found, letter: {one["queue"] for one in found} == {letter.queue},
    ),
    "list by error type and user": Read(
        lambda letter: _messages(error_type=letter.error_type, user_id=letter.user_id),
        lambda found, letter: letter.letter_id in {one["message_id"] for one in found},
    ),
    "one letter": Read(
        lambda letter: f"messages/{letter.letter_id}",
        lambda found, letter: bool(found["original_message_id"] == letter.original_message_id),
    ),
    "stats of a queue": Read(
        lambda letter: f"stats?{urlencode({'queue': letter.queue})}",
        lambda found, letter: letter.error_type in found["by_error_type"],
    ),
    "search for a text in one payload": Read(
        lambda letter: _messages(q=_text(letter)),
        lambda found, letter: [one["message_id"] for one in found] == [letter.letter_id],
    ),
}
"""The five, by name. A list is the newest 50 letters that are open or parked, with their payloads, masked."""


def ask(read: str, *, size: int, asked: int, url: str, service: int, server: int | None = None) -> dict[str, Any]:
    """Ask `asked` times, and some before to warm up; every answer is checked.

    How long each took to its last byte, in seconds, and the CPU of the processes meanwhile.
    """
    random = Random(read)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for _ in range(warm_up(asked)):
        _ask(connection, READS[read], _open_letter(random, size=size))
    before = _cpu(service, server)
    times = [_ask(connection, READS[read], _open_letter(random, size=size)) for _ in range(asked)]
    cpu, served = (end - start for start, end in zip(before, _cpu(service, server), strict=True))
    connection.close()
    found = {"messages": asked, "cpu": cpu, "wall": sum(times), "times": times, "peak_rss": peak_rss(service)}
    return {**found, "server_micros": served / asked * 1e6}


def _ask(connection: http.client.HTTPConnection, read: Read, letter: DeadLetter) -> float:
    """The seconds to an answer about this letter: a page that has looked for long enough says where to go on."""
    path: str | None = f"/api/v1/dlq/{read.path(letter)}"
    taken = 0.0
    while path is not None:
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        taken += time.perf_counter() - began
        assert answer.status == http.client.OK, f"{path}: {answer.status} {body!r}"
        if read.fits(json.loads(body), letter):
            return taken
        path = _next(answer.getheader("Link"))
    raise AssertionError(f"{read.path(letter)}: {body[:1000]!r}")


def _next(link: str | None) -> str | None:
    if link is None:
        return None
    parts = urlsplit(link.partition("<")[2].partition(">")[0])
    return f"{parts.path}?{parts.query}"


def _open_letter(random: Random, *, size: int) -> DeadLetter:
    tens = random.randrange(size // RESOLVED) * RESOLVED
    return next(letters(tens + random.randrange(1, RESOLVED), 1, of=size))


def _cpu(service: int, server: int | None) -> tuple[float, float]:
    return cpu_of(service), 0.0 if server is None else cpu_of(server)
