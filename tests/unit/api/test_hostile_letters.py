"""Letters that nobody means well with: whatever they hold can be looked at, and does nothing there."""

import pickle
from typing import Any

import httpx2
import pytest

from redrive.config.settings import ServiceSettings
from tests.unit.api.stage import Stage

MARKUP = "<img src=x onerror=alert(1)>\x1b[31m\u202etxt.exe\u202c javascript:alert(1) =cmd|' /C calc'!A0"
OFTEN = ServiceSettings(rate_limit=100_000)


class Bomb:
    """What runs when somebody unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a payload was unpickled",)


PAYLOADS = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep and cut": b'{"a":' * 100_000,
    "a huge number": b'{"n": ' + b"9" * 5000 + b"}",
    "no numbers": b'{"a": NaN, "b": -Infinity, "c": 1e999}',
    "a name twice": b'{"password": "x", "password": "y"}',
    "half a character": b'"\\ud800"',
    "not UTF-8": b"\xff\xfe\x00",
    "a NUL": b"\x00",
    "a mark of byte order": b'\xef\xbb\xbf{"a": 1}',
    "nothing": b"",
    "markup": MARKUP.encode(),
    "a pickle": pickle.dumps(Bomb()),
    "many names": b"{" + b",".join(b'"k%d": 1' % number for number in range(20_000)) + b"}",
}
HEADERS = {
    "ten thousand": tuple((f"h{number}", b"x") for number in range(10_000)),
    "a mebibyte": (("h", b"x" * 1024 * 1024),),
    "line ends": (("h\r\nSet-Cookie: a=b", b"x\r\nSet-Cookie: a=b"), ("", b"\x00")),
    "half a character": (("h\udcff", b"\xff"),),
}
READS = (
    "/dlq/messages", "/dlq/messages?reveal=true", "/dlq/messages?q=a", "/dlq/stats", "/letters", "/incidents",
    "/dlq/messages/letter-0", "/dlq/messages/letter-0?view=json", "/dlq/messages/letter-0?view=hex",
    "/dlq/messages/letter-0?view=json&reveal=true", "/dlq/messages/letter-0?view=hex&reveal=true",
    "/dlq/messages/letter-0/payload", "/letters/letter-0", "/letters/letter-0?reveal=true", "/export?all=true",
    "/analytics?by=error_type", "/audit",
)  # fmt: skip
PLAIN = ("application/json", "application/problem+json", "application/octet-stream", "application/jsonl")


async def look_everywhere(stage: Stage) -> list[httpx2.Response]:
    """Every way to see a letter. No answer is one that a browser would show as a page, or our mistake."""
    answers = [await stage.ask(path) for path in READS]
    answers += [await stage.ask(f"/incidents/{one['incident_id']}") for one in (await stage.ask("/incidents")).json()]
    answers.append(await stage.http.get("http://127.0.0.1:8800/metrics"))
    for answer in answers:
        assert answer.status_code in (200, 409), f"{answer.url}: {answer.text[:500]}"
        assert answer.headers["content-type"].startswith((*PLAIN, "text/plain")), answer.url
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answer.headers
    return answers


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
async def test_any_payload_can_be_looked_at_edited_and_sent_back_as_it_is(payload: bytes) -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1, payload=payload)
        await look_everywhere(stage)

        assert (await stage.ask("/dlq/messages/letter-0/payload")).content == payload
        edited = await stage.post("/letters/letter-0/edit", {"headers": [["retry", "no"]]})
        assert edited.status_code == 200, edited.text
        assert (await stage.post("/dlq/messages/letter-0/retry")).status_code == 202


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
async def test_any_headers_can_be_looked_at(headers: tuple[tuple[str, bytes], ...]) -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1, headers=headers)

        assert await look_everywhere(stage)


async def test_any_text_of_an_error_can_be_looked_at() -> None:
    texts = {"error_type": MARKUP, "error_message": MARKUP * 100, "error_code": MARKUP, "user_id": MARKUP}
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1, **texts, tenant_id="\ud800", stack=MARKUP, context={MARKUP: [MARKUP, float("nan")]})

        answers = await look_everywhere(stage)

        shown = next(answer for answer in answers if answer.url.path.endswith("/dlq/messages/letter-0"))
        assert "\u202e" not in shown.text
        assert "\x1b" not in shown.text


async def test_a_compressed_body_is_not_blown_up() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

        answer = await stage.http.post(
            "/letters/letter-0/note", content=b"\x1f\x8b\x08" + b"\x00" * 100, headers=headers
        )

        assert answer.status_code in (400, 415, 422)
        assert (await stage.get()).note == ""
