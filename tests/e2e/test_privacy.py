"""Secrets planted in every input of real workers: found with the letter where it keeps them, and nowhere else.

One queue for each mode. `full` keeps what the producer sent, `encrypted` keeps it for those with the key, `digest`
keeps nothing. Searched are logs, metrics, the store, the answers of the API and the pages of the console.
"""

import base64
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from redrive.core.letter import payload_hash
from tests.e2e.serving import Api, Shop, until
from tests.servers.ports import free_port

APP = """
import json, logging, os
import redrive

app = redrive.App("sqlite:///queue.db", name="shop", grace=5)
log = logging.getLogger("shop")


def refuse(message: redrive.Message) -> None:
    if b"malformed" in message.body:
        secret = json.loads(message.body)["secret"]
        raise redrive.InvalidPayload(f"cannot read secret={secret}", code="malformed", stage="intake")


async def fail(message: redrive.Message, delivery: redrive.Delivery) -> None:
    if os.path.exists("mended"):
        headers = [[name, value.hex()] for name, value in message.headers]
        kept = {"body": message.body.hex(), "headers": headers, "key": message.key.hex()}
        with open(f"{message.queue}.json", "a") as file:
            file.write(json.dumps(kept) + chr(10))
        return
    secret = json.loads(message.body)["password"]
    bearer = message.header("Authorization")
    log.warning("charging, token=%s and %s", secret, bearer)
    if delivery.attempt == 1:
        raise redrive.RetryLater(0.01, f"password={secret}")
    try:
        raise KeyError(f"no session at https://kim:{secret}@bank.example/login?api_key={secret}")
    except KeyError as error:
        trouble = ValueError(f"refused: password={secret}, {bearer}")
        trouble.add_note(f"token={secret}")
        log.exception("cannot charge")
        raise trouble from error


CONTEXT = ["password", "session.token", "Authorization", "run_id"]


@app.consumer("full", retry=[0.01, 0.01], breaker=None, stack=True, context=CONTEXT, validate=refuse)
async def full(message: redrive.Message, delivery: redrive.Delivery) -> None:
    await fail(message, delivery)


@app.consumer(
    "encrypted", retry=[0.01, 0.01], breaker=None, stack=True, context=CONTEXT, validate=refuse, payload="encrypted"
)
async def encrypted(message: redrive.Message, delivery: redrive.Delivery) -> None:
    await fail(message, delivery)


def refuse_plainly(message: redrive.Message) -> None:
    if b"malformed" in message.body:
        raise redrive.InvalidPayload(message.body.decode(), code="malformed", stage="intake")


@app.consumer("digest", retry=[0.01, 0.01], breaker=None, context=CONTEXT, validate=refuse_plainly, payload="digest")
async def digest(message: redrive.Message, delivery: redrive.Delivery) -> None:
    secret = message.body.decode() + repr(message.headers) + repr(message.key)
    if delivery.attempt == 1:
        raise redrive.RetryLater(0.01, secret)
    raise ExceptionGroup(secret, [ValueError(secret), KeyError(secret)])


SCHEMA = {"additionalProperties": {"enum": ["allowed"]}, "properties": {"password": {"type": "integer"}}}


@app.consumer("schema", payload="digest", validate=SCHEMA)
async def schema(order: dict) -> None: ...


@app.consumer("dropped", payload="full", validate=redrive.Validation(refuse, codes=["other"]))
async def dropped(order: dict) -> None: ...
"""

KEYS = "k2=" + base64.b64encode(b"2" * 32).decode() + ",k1=" + base64.b64encode(b"1" * 32).decode()
PLACES = {"payload": "7Xq2", "token": "8Wb3", "mail": "9Vc4", "header": "1Ad5", "session": "2Be6", "key": "3Cf7"}
PAGES = (
    "/",
    "/incidents",
    "/letters",
    "/letters?text=canary",
    "/redrives",
    "/audit",
    "/settings",
    "/discard?queue=full",
    "/redrives/new?queue=encrypted",
)
KEPT_IN = {"letter_body", "letter_text", "letter_index"}
"""With the letter: its content, the text that a search looks at, and the index on that."""


@dataclass(frozen=True)
class Secrets:
    """What is planted in the messages of one queue."""

    queue: str
    words: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> str:
        letter = {
            "password": self["payload"],
            "session": {"token": self["token"]},
            "email": f"{self['mail']}@example.com",
        }
        return json.dumps({**letter, "run_id": "run-1", **({self["field"]: 1} if self.bare else {})})

    @property
    def malformed(self) -> str:
        return json.dumps({"malformed": 1, "secret": self["malformed"]})

    @property
    def bare(self) -> bool:
        """Whether nothing tells that they are secrets."""
        return self.queue in ("digest", "schema")

    @property
    def headers(self) -> dict[str, str]:
        usual = {"Authorization": f"Bearer {self['header']}", "X-Session-Token": self["session"]}
        if not self.bare:
            return usual
        more = {
            "X-User-ID": self["user"],
            "X-Task-Type": self["task"],
            "content-type": self["kind"],
            "X-Any": self["any"],
        }
        return {**usual, **more}

    @property
    def key(self) -> str:
        return f"{self['key']}@example.com"

    def __getitem__(self, place: str) -> str:
        return self.words.setdefault(place, f"canary{self.queue}{place}{PLACES.get(place, '5Eh9')}")

    def publish(self, shop: Shop) -> None:
        headers = [word for name, value in self.headers.items() for word in ("--header", f"{name}={value}")]
        for body in (self.body, self.malformed):
            shop.run("publish", self.queue, body, "--key", self.key, *headers)


def test_planted_secrets_are_found_with_their_letters_and_nowhere_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shop = Shop(tmp_path, REDRIVE_LOG_LEVEL="debug", REDRIVE_ENCRYPTION_KEYS=KEYS, REDRIVE_BROKER="sqlite:///queue.db")
    (tmp_path / "first.py").write_text(APP, "utf-8")
    queues = {queue: Secrets(queue) for queue in ("full", "encrypted", "digest", "schema", "dropped")}
    said: list[str] = []
    with shop.service() as api:
        port = free_port()
        with shop.process("worker", "first:app", "--no-collect", "--metrics-port", str(port)):
            for secrets in queues.values():
                secrets.publish(shop)
            until(lambda: len(api.letters()) == 8, what="every letter is collected")
            until(lambda: "messages_dropped_total{" in _metrics(port), what="the drop is counted")
            said.append(_metrics(port))
            said += _everything(api, api.letters())
            _digests_are_digests(api, queues["digest"])
            _encrypted_is_opened_on_record(api, queues["encrypted"])
            (tmp_path / "mended").touch()
            _redrive(shop, api, queues)
            said += _everything(api, api.letters())
        said += _revealed(api, "digest", "schema")

    captured = capfd.readouterr()
    logs = captured.out + captured.err
    every = {word for secrets in queues.values() for word in secrets.words.values()}
    assert "dead letter" in logs
    assert '"message": "dropped"' in logs
    assert payload_hash(queues["dropped"].malformed.encode()) in logs
    assert _found(every, logs) == set()
    assert _found(every, *said) == set()
    tables = _tables(tmp_path / "letters.db")
    for queue, secrets in queues.items():
        held = {table for table, text in tables.items() if _found(set(secrets.words.values()), text)}
        assert held == (KEPT_IN if queue == "full" else set()), queue
    assert _found(_in(queues, "digest", "schema", "encrypted", "dropped"), _raw(tmp_path)) == set()


@pytest.mark.parametrize("shift", range(3))
def test_the_search_finds_what_is_written_otherwise(shift: int) -> None:
    word = "canaryWord7Xq2"
    content = f'{"x" * shift}{{"password": "{word}"}}'.encode()
    written = [content.decode(), content.decode().upper(), content.hex(), base64.b64encode(content).decode()]

    assert [_found({word}, text) for text in written] == [{word}] * 4
    assert _found({word}, "canaryWord", content.decode().replace("7", "8")) == set()


def _metrics(port: int) -> str:
    return httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=30).text


def _everything(api: Api, letters: list[dict[str, Any]]) -> Iterator[str]:
    """All that an admin is shown who does not ask to see it unmasked: each answer of the API, each page."""
    incidents = [one["incident_id"] for one in api.get("/api/v1/incidents")]
    paths = [path for path, methods in api.get("/openapi.json")["paths"].items() if "get" in methods]
    some = {"letter_id": letters[0]["message_id"], "message_id": letters[0]["message_id"], "redrive_id": "none"}
    whole = {path for path in paths if path.endswith(("/events", "/payload", "/export"))}
    for path in {*paths} - whole:
        yield api.client.get(path.format(**some, incident_id=incidents[0])).text
    for letter in letters:
        letter_id = letter["message_id"]
        yield json.dumps(api.get(f"/api/v1/letters/{letter_id}"))
        for view in ("text", "hex"):
            yield json.dumps(api.get(f"/api/v1/dlq/messages/{letter_id}", view=view))
            yield _page(api, f"/letters/{letter_id}?view={view}")
    for path in (*PAGES, *(f"/incidents/{incident}" for incident in incidents)):
        yield _page(api, path)
    yield _page(api, "/letters/export?state=open&state=resolved")


def _page(api: Api, path: str) -> str:
    answer = api.client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return answer.text


def _revealed(api: Api, *queues: str) -> Iterator[str]:
    """The whole of letters, unmasked."""
    for letter in [one for one in api.letters() if one["queue"] in queues]:
        yield json.dumps(api.get(f"/api/v1/letters/{letter['message_id']}", reveal="true"))
        yield json.dumps(api.get(f"/api/v1/dlq/messages/{letter['message_id']}", reveal="true"))


def _digests_are_digests(api: Api, secrets: Secrets) -> None:
    letters = {one["reason"]: one for one in api.letters(queue="digest")}
    died, refused = letters["attempts_exhausted"], letters["invalid"]
    whole = api.get(f"/api/v1/letters/{refused['message_id']}", reveal="true")["letter"]
    assert died["payload"] is None
    assert died["payload_sha256"] == payload_hash(secrets.body.encode())
    assert (refused["error_code"], whole["context"]["validation_stage"]) == ("malformed", "intake")
    assert api.get(f"/api/v1/letters/{died['message_id']}")["letter"]["context"]["run_id"] == "run-1"
    answer = api.client.post(f"/api/v1/dlq/messages/{died['message_id']}/retry")
    assert answer.status_code == 409
    assert re.search(r"keeps no payload.*its message was .* in the queue digest of broker", answer.text)


def _redrive(shop: Shop, api: Api, queues: dict[str, Secrets]) -> None:
    """What is kept, encrypted or not, goes back byte for byte."""
    for queue in ("full", "encrypted"):
        (letter,) = [one for one in api.letters(queue=queue) if one["reason"] == "attempts_exhausted"]
        answer = api.client.post(f"/api/v1/dlq/messages/{letter['message_id']}/retry")
        assert answer.status_code < 300, answer.text
        file = shop.folder / f"{queue}.json"
        until(partial(_is_written, file), what="it is handled")
        got = json.loads(file.read_text())
        secrets = queues[queue]
        assert bytes.fromhex(got["body"]).decode() == secrets.body
        assert {name: bytes.fromhex(value).decode() for name, value in got["headers"]} == secrets.headers
        assert bytes.fromhex(got["key"]).decode() == secrets.key
        until(partial(api.get, "/api/v1/letters", queue=queue, state="resolved"), what="it is resolved")


def _is_written(file: Path) -> bool:
    return file.exists() and file.read_text().endswith("\n")


def _encrypted_is_opened_on_record(api: Api, secrets: Secrets) -> None:
    (letter,) = [one for one in api.letters(queue="encrypted") if one["reason"] == "attempts_exhausted"]
    assert letter["payload"].startswith("(encrypted with the key k2: ")
    assert letter["payload_sha256"] == payload_hash(secrets.body.encode())
    opened = api.get(f"/api/v1/letters/{letter['message_id']}", reveal="true")["letter"]
    assert opened["payload"] == secrets.body
    (record, *_) = api.get("/api/v1/audit")
    assert (record["verb"], record["who"]) == ("letters.decrypt", "local")


def _tables(file: Path) -> dict[str, str]:
    """Everything in the store, by table; what only an index has is with the table that it is on."""
    with closing(sqlite3.connect(file)) as store:
        names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        own = [name for name in names if not name.startswith("letter_text_")]
        return {name: "\n".join(map(repr, store.execute(f'SELECT * FROM "{name}"'))) for name in own}  # noqa: S608


def _raw(folder: Path) -> str:
    """The bytes of the store's files: also what was written once and is no longer in any table."""
    return "\n".join(file.read_bytes().decode("latin-1") for file in sorted(folder.glob("letters.db*")))


def _in(queues: dict[str, Secrets], *names: str) -> set[str]:
    return {word for name in names for word in queues[name].words.values()}


def _found(words: set[str], *texts: str) -> set[str]:
    """Which of them are in these texts: in whatever case, in hexadecimal, or in base64 wherever they begin in it."""
    whole = "\n".join(texts)
    lower = whole.lower()
    return {
        word
        for word in words
        if word.lower() in lower
        or word.encode().hex() in lower
        or any(base64.b64encode(b" " * shift + word.encode())[4:-4].decode() in whole for shift in range(3))
    }
