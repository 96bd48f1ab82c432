"""Letters that people put into a DLQ with plain XADD: seen through the API, counted exactly, sent back as they were."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.e2e.serving import Api, Shop, until

LETTERS = 1500
QUEUES = ("orders", "invoices")
TYPES = ("TimeoutError", "KeyError", "ValueError", "billing.CardRefused")


@pytest.fixture
def client(empty_redis: str) -> Iterator[redis.Redis]:
    """Commands as redis-cli has them: fields go in and come out one after the other, as bytes."""
    with redis.Redis.from_url(empty_redis, protocol=2) as client:
        client.response_callbacks.clear()
        yield client


@pytest.fixture
def api(tmp_path: Path, empty_redis: str) -> Iterator[Api]:
    queues = [word for queue in QUEUES for word in ("--queue", queue)]
    with Shop(tmp_path, REDRIVE_SERVICE_RATE_LIMIT="10000").service("--broker", empty_redis, *queues) as api:
        until(api.is_ready, what="ready")
        yield api


# ------------------------------------------------------------------------------------------------ back as it was

DEATH = (b"error_type", b"KeyError")
LIVES = {
    "text": (b"payload", b'{"id": 1}'),
    "bytes that are no text": (b"payload", b"\x00\xff\r\n\xc3"),
    "half a character": (b"payload", b"\xed\xa0\x80"),
    "a mark of byte order": (b"payload", b"\xef\xbb\xbf{}"),
    "JSON that no parser likes": (b"payload", b"[" * 100_000),
    "nothing": (b"payload", b""),
    "fields of its own": (b"z", b"1", b"payload", b"{}", b"raw\xff", b"\xfe\x00", b"a", b"2", b"z", b"3"),
}


def test_letters_put_there_by_hand_are_shown_and_go_back_byte_for_byte(api: Api, client: redis.Redis) -> None:
    died = {say(client, "XADD", "orders:dlq", "*", *was[:2], *DEATH, *was[2:]).decode(): was for was in LIVES.values()}
    until(lambda: len(api.letters(queue="orders")) == len(died), what="they are shown")
    shown = {letter["dlq_entry_id"]: letter for letter in api.letters(queue="orders", error_type="KeyError")}
    came_back = {}
    for entry_id, was in died.items():
        path, payload = f"/api/v1/dlq/messages/{shown[entry_id]['message_id']}", was[was.index(b"payload") + 1]
        assert api.client.get(f"{path}/payload").content == payload
        assert api.get(path, view="hex", reveal="true")["payload"] == payload.hex()
        answer = api.client.post(f"/api/v1/dlq/messages/{entry_id}/retry")
        assert (answer.status_code, answer.json()["status"]) == (202, "requeued")
        assert answer.json()["original_dlq_message_id"] == entry_id
        came_back[answer.json()["new_message_id"].encode()] = was

    assert {name: _unmarked(fields) for name, fields in say(client, "XRANGE", "orders", "-", "+")} == came_back
    assert api.letters(queue="orders") == []


def _unmarked(fields: Sequence[bytes]) -> tuple[bytes, ...]:
    """The fields without the marks by which a worker of ours knows a letter that was sent back."""
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return tuple(part for pair in pairs if not pair[0].startswith(b"rd-") for part in pair)


# ------------------------------------------------------------------------------------------------ exact


def test_filters_and_counts_are_exact_however_many_there_are(api: Api, client: redis.Redis) -> None:
    """More than a scan of the DLQ, or of a first page, would see."""
    letters = [_letter(number) for number in range(LETTERS)]
    with client.pipeline(transaction=False) as pipe:
        for letter in letters:
            fields = [part for name, value in letter.items() if name != "queue" for part in (name, value)]
            pipe.execute_command("XADD", f"{letter['queue']}:dlq", "*", *fields)  # type: ignore[no-untyped-call]
        pipe.execute()
    until(lambda: api.get("/api/v1/dlq/stats")["total_messages"] == LETTERS, what="all are collected")

    for queue in (None, *QUEUES, "nobody's"):
        asked = {} if queue is None else {"queue": queue}
        those = [letter for letter in letters if queue in (None, letter["queue"])]
        stats = api.get("/api/v1/dlq/stats", **asked)
        assert (stats["queue_name"], stats["total_messages"]) == (queue, len(those))
        assert stats["by_error_type"] == Counter(letter["error_type"] for letter in those)
        assert stats["by_queue"] == Counter(letter["queue"] for letter in those)
        assert stats["oldest_message_at"] == min((letter["failed_at"] for letter in those), default=None)
        assert stats["newest_message_at"] == max((letter["failed_at"] for letter in those), default=None)

    rare = {"user_id": "the only one"}
    for asked in (
        {},
        rare,
        {"queue": "orders"},
        {"error_type": "KeyError"},
        {"user_id": "u3"},
        {"queue": "invoices", "error_type": "billing.CardRefused", "user_id": "u5"},
        {"queue": "invoices", "error_type": "no such error"},
    ):
        expected = [letter["payload"] for letter in letters if asked.items() <= letter.items()]
        assert sorted(every_payload(api, **asked)) == sorted(expected), asked
    assert len(api.letters(**rare, limit="1")) == 1
    assert len(api.letters()) == 50


def test_pages_of_one_queue_are_newest_first_without_gaps_or_repetitions(api: Api, client: redis.Redis) -> None:
    for number in range(120):
        say(client, "XADD", "orders:dlq", "*", "payload", number, "error_type", "KeyError")
    until(lambda: api.get("/api/v1/dlq/stats")["total_messages"] == 120, what="all are collected")
    first = api.client.get("/api/v1/dlq/messages", params={"queue": "orders"})
    for number in range(120, 130):
        say(client, "XADD", "orders:dlq", "*", "payload", number, "error_type", "KeyError")
    until(lambda: api.get("/api/v1/dlq/stats")["total_messages"] == 130, what="more are collected")

    rest = [letter for page in pages_behind(api, first) for letter in page]

    assert [int(letter["payload"]) for letter in (*first.json(), *rest)] == [*range(119, -1, -1)]


def _letter(number: int) -> dict[str, str]:
    """One of many: what it has of each kind repeats with another period, so that all combinations occur."""
    return {
        "queue": QUEUES[number % 3 == 0],
        "payload": f'{{"order": {number}}}',
        "error_type": TYPES[number % len(TYPES)],
        "error_message": f"failed after {number % 5} tries",
        "failed_at": f"2026-01-{1 + number % 28:02}T10:00:{number % 60:02}Z",
        "user_id": "the only one" if number == 0 else f"u{number % 7}",
        "retry_count": str(number % 5),
    }


def every_payload(api: Api, **asked: str) -> list[str]:
    """Of every letter that a filter finds, page after page."""
    first = api.client.get("/api/v1/dlq/messages", params={**asked, "limit": "100"})
    return [letter["payload"] for page in (first.json(), *pages_behind(api, first)) for letter in page]


def pages_behind(api: Api, page: Any) -> Iterator[list[dict[str, Any]]]:
    while link := page.headers.get("link"):
        page = api.client.get(link.partition(">")[0].removeprefix("<"))
        assert page.status_code == 200, page.text
        yield page.json()


def say(client: redis.Redis, *words: str | bytes | int) -> Any:
    return client.execute_command(*words)  # type: ignore[no-untyped-call]
