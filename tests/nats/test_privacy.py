"""How much of a message is kept beside its queue: in the DLQ, in the bucket, in whatever file the server writes."""

import asyncio
import base64
import json
from pathlib import Path

import nats
import pytest

import redrive
from redrive.core.event import LetterWritten
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.place import DeadLetterPlace
from tests.nats.scenes import ask
from tests.nats.test_app import Heard
from tests.servers.nats import NatsServer

KEYS = "k1=" + base64.b64encode(b"1" * 32).decode()
INTAKE = "beamline.router.v1.intake.dlq"
DECIDE = "beamline.router.v1.decide"
CANARY = b"canary7Xq2"
HEADERS = {"X-Any": "header-canary7Xq2"}
BODY = json.dumps({"tenant_id": "tenant_123", "run_id": "run_abc", "card": CANARY.decode()}).encode()


def refuse(message: redrive.Message) -> None:
    if b"malformed" in message.body:
        raise redrive.InvalidPayload(message.body.decode(), code="SCHEMA_VALIDATION_FAILED", stage="schema")


def app_on(url: str) -> redrive.App:
    """A queue for each mode; handlers fail twice. Where a digest is kept, the error has all they were given."""
    app = redrive.App(url, name="shop")

    async def fail(order: dict[str, str]) -> None:
        raise ValueError(f"refused: password={order['card']}")

    async def fail_aloud(message: redrive.Message) -> None:
        raise ValueError(message.body.decode() + repr(message.headers))

    app.consumer("full", retry=[0], dlq=INTAKE)(fail)
    app.consumer("encrypted", retry=[0], payload="encrypted")(fail)
    app.consumer(DECIDE, retry=[0], payload="digest", validate=refuse, dlq=INTAKE)(fail_aloud)
    return app


async def give_up_all(server: NatsServer) -> dict[str, list[DeadLetter]]:
    """Letters by queue, of a message that fails in each, and of one that is refused."""
    app, heard = app_on(server.url), Heard()
    app.bus.subscribe(heard)
    async with app, app.worker(), await nats.connect(server.url) as client:
        for queue, body in (("full", BODY), ("encrypted", BODY), (DECIDE, BODY), (DECIDE, b"malformed " + CANARY)):
            await client.publish(queue, body, headers=HEADERS)
        await heard.until(LetterWritten, 4)
        shared = await app.broker.dead_letters(DECIDE, place=DeadLetterPlace(name=INTAKE)).peek()
        sealed = await app.broker.dead_letters("encrypted").peek()
    letters = [entry.letter for entry in (*shared, *sealed)]
    return {queue: [one for one in letters if one.queue == queue] for queue in ("full", "encrypted", DECIDE)}


@pytest.fixture
def letters(fresh_nats: NatsServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[DeadLetter]]:
    monkeypatch.setenv("REDRIVE_ENCRYPTION_KEYS", KEYS)
    return asyncio.run(give_up_all(fresh_nats))


def test_what_is_planted_is_found_in_its_queue_and_in_full_letters_only(
    letters: dict[str, list[DeadLetter]], fresh_nats: NatsServer, tmp_path: Path
) -> None:
    (full,), (sealed,), digests = letters["full"], letters["encrypted"], letters[DECIDE]
    files = [file for file in tmp_path.rglob("*") if file.is_file() and CANARY in file.read_bytes()]
    streams = {file.parts[file.parts.index("streams") + 1] for file in files}

    assert (full.payload, dict(full.headers)) == (BODY, {"X-Any": b"header-canary7Xq2"})
    assert sealed.payload_sha256 == payload_hash(BODY)
    assert CANARY not in (sealed.payload or b"")
    assert [(one.payload, one.headers) for one in digests] == [(None, ())] * 2
    assert streams == {"full", "encrypted", "beamline_router_v1_decide", "beamline_router_v1_intake_dlq"}


def test_a_digest_is_the_document_that_other_readers_of_the_dlq_know(
    letters: dict[str, list[DeadLetter]], fresh_nats: NatsServer
) -> None:
    async def documents() -> list[bytes]:
        async with await nats.connect(fresh_nats.url) as client:
            found = [await ask(client, "STREAM.MSG.GET.beamline_router_v1_intake_dlq", seq=seq) for seq in (1, 2, 3)]
        return [base64.b64decode(one["message"]["data"]) for one in found]

    bodies = asyncio.run(documents())
    digests = [json.loads(body) for body in bodies if body != BODY]
    refused = next(one for one in digests if one["validation_error"].get("code"))
    failed = next(one for one in digests if one is not refused)

    assert not [one for one in map(json.dumps, digests) if CANARY.decode() in one]
    assert refused["original_subject"] == failed["original_subject"] == DECIDE
    assert failed["original_payload_hash"] == payload_hash(BODY)
    assert refused["validation_error"]["code"] == "SCHEMA_VALIDATION_FAILED"
    assert refused["validation_error"]["severity"] == "error"
    assert refused["context"]["validation_stage"] == "schema"
    assert {name: failed["context"][name] for name in ("tenant_id", "run_id")} == {
        "tenant_id": "tenant_123",
        "run_id": "run_abc",
    }
    assert failed["context"]["msg_id"] in {one.original_message_id for one in letters[DECIDE]}
    assert isinstance(failed["received_at"], int)
    assert failed["router_node_id"]


def test_the_original_of_a_digest_is_found_in_its_stream(
    letters: dict[str, list[DeadLetter]], fresh_nats: NatsServer
) -> None:
    async def original(letter: DeadLetter) -> redrive.Message | None:
        app = app_on(fresh_nats.url)
        async with app:
            return await app.broker.original(DECIDE, letter.original_message_id)  # type: ignore[attr-defined,no-any-return]

    for letter in letters[DECIDE]:
        found = asyncio.run(original(letter))
        assert found is not None
        assert payload_hash(found.body) == letter.payload_sha256
