"""The service as a client with one connection sees it, each time asked about another letter."""

import http.client
import time
from random import Random
from typing import Any
from urllib.parse import urlsplit

from benchmarks.measure import cpu_of, peak_rss, warm_up
from benchmarks.service.questions import QUESTIONS, Read
from benchmarks.store.load import RESOLVED, letters
from redrive.core.letter import DeadLetter


def ask(
    part: str, read: str, *, size: int, asked: int, url: str, service: int, server: int | None = None
) -> dict[str, Any]:
    """Ask `asked` times, and some before to warm up; every answer is checked.

    How long each took to its last byte, in seconds, the largest answer, and the CPU of the processes meanwhile.
    """
    random, question = Random(read), QUESTIONS[part][read]
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for _ in range(warm_up(asked)):
        _ask(connection, question, _open_letter(random, size=size))
    before = _cpu(service, server)
    answers = [_ask(connection, question, _open_letter(random, size=size)) for _ in range(asked)]
    cpu, served = (end - start for start, end in zip(before, _cpu(service, server), strict=True))
    connection.close()
    times = [taken for taken, _ in answers]
    found = {"messages": asked, "cpu": cpu, "wall": sum(times), "times": times, "peak_rss": peak_rss(service)}
    return {**found, "server_micros": served / asked * 1e6, "largest": max(size for _, size in answers)}


def _ask(connection: http.client.HTTPConnection, read: Read, letter: DeadLetter) -> tuple[float, int]:
    """The seconds to an answer about this letter: a page that has looked for long enough says where to go on.

    And how many bytes the last one has.
    """
    path: str | None = read.path(letter)
    taken = 0.0
    while path is not None:
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        taken += time.perf_counter() - began
        assert answer.status == http.client.OK, f"{path}: {answer.status} {body!r}"
        if read.fits(body, letter):
            return taken, len(body)
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
