"""Letters that are kept encrypted, or not at all: shown, edited, sent back."""

from typing import Any

import pytest

from redrive.ciphers.aes_gcm import AesGcm
from redrive.core.access import Role
from redrive.core.delivery import Delivery
from redrive.core.errors import DeadLetterError, NotAllowed
from redrive.core.life import LetterState
from redrive.core.message import Message
from redrive.core.redrive import RedriveState
from redrive.core.seal import seal, sealed_by
from redrive.triage import audit, editor, redrives, retry
from redrive.triage.access import Caller
from redrive.triage.desk import Desk
from redrive.triage.editor import draft_of
from redrive.triage.masking import masked, reveal
from redrive.triage.redriver import Redriver
from redrive.triage.redrives import Terms
from redrive.triage.sealing import unsealed
from tests.unit.core.letters import a_letter
from tests.unit.triage.bench import Bench, succeeds

CIPHER = AesGcm({"k2": b"2" * 32, "k1": b"1" * 32})
HEADERS = (("a", b"\xffcanary"), ("a", b""))
ADMIN, OPERATOR = Caller("ann", Role.ADMIN), Caller("kim", Role.OPERATOR)


class SealedBench(Bench):
    """A desk with a key, and one letter that is encrypted."""

    def __init__(self, cipher: AesGcm | None = CIPHER) -> None:
        super().__init__()
        self.desk = Desk(self.store, self.clock, "sam", cipher)
        self.letter = a_letter(
            b"\x00canary",
            letter_id="letter-0",
            broker="memory",
            headers=HEADERS,
            key=b"canary",
            original_message_id="1",
        )

    async def sealed(self) -> None:
        await self.store.collect([seal(self.letter, CIPHER)])


async def test_what_everybody_sees_of_an_encrypted_letter_is_its_key_id_and_its_hash() -> None:
    bench = SealedBench()
    await bench.sealed()
    await editor.edit(bench.desk, "letter-0", body=b"canary edited")
    seen = masked(await bench.get())

    assert seen.letter.payload is not None
    assert seen.letter.payload.startswith(b"(encrypted with the key k2: ")
    assert seen.letter.payload_sha256 == bench.letter.payload_sha256
    assert seen.edits[0].body.startswith(b"(encrypted with the key k2: ")
    assert "canary" not in repr(seen)
    assert "canary" not in repr(await bench.get())


async def test_it_is_opened_for_those_who_may_and_that_is_on_record() -> None:
    bench = SealedBench()
    await bench.sealed()
    opened = await reveal(bench.desk, ADMIN, "letter-0")

    assert (opened.letter.payload, opened.letter.headers, opened.letter.key) == (b"\x00canary", HEADERS, b"canary")
    (record, *_) = (await audit.find(bench.desk)).rows
    assert record.verb == "letters.decrypt"
    with pytest.raises(NotAllowed, match="decrypt needs the role admin"):
        await reveal(bench.desk, OPERATOR, "letter-0")


async def test_without_the_key_nobody_opens_it() -> None:
    bench = SealedBench(cipher=None)
    await bench.sealed()

    with pytest.raises(DeadLetterError, match="no key is at hand"):
        await reveal(bench.desk, ADMIN, "letter-0")
    with pytest.raises(DeadLetterError, match="no key is at hand"):
        await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)
    with pytest.raises(DeadLetterError, match="open it first"):
        draft_of(await bench.get())
    assert (await bench.get()).life.state is LetterState.OPEN
    assert (await audit.find(bench.desk)).rows == []


@pytest.mark.parametrize("way", ["retry", "redrive"])
@pytest.mark.parametrize("edited", [False, True])
async def test_it_goes_back_byte_for_byte(way: str, *, edited: bool) -> None:
    bench = SealedBench()
    await bench.sealed()
    got: list[Message] = []

    def hear(delivery: Delivery) -> None:
        got.append(delivery.message)

    if edited:
        await editor.edit(bench.desk, "letter-0", body=b"canary edited")
    await bench.consume(hear)
    if way == "retry":
        await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)
        await bench.consume(hear)
    else:
        plan = await redrives.plan(await bench.selection(), Terms(), brokers=bench.brokers)
        redrive = await redrives.create(bench.desk, plan)
        redriver = Redriver(bench.store, bench.brokers, clock=bench.clock, cipher=CIPHER)
        await bench.while_consuming(redriver.run(redrive.redrive_id), hear)
    (message,) = got

    assert message.body == (b"canary edited" if edited else b"\x00canary")
    assert (message.headers, message.key) == (HEADERS, b"canary")
    assert (await bench.get()).life.state is LetterState.RESOLVED


async def test_an_edit_of_an_encrypted_letter_is_encrypted_too() -> None:
    bench = SealedBench()
    await bench.sealed()
    await editor.edit(bench.desk, "letter-0", headers=(("b", b"canary"),))
    kept = await bench.get()
    opened = unsealed(kept, CIPHER)

    assert b"canary" not in kept.edits[0].body
    assert draft_of(opened) == (b"\x00canary", (("b", b"canary"),))


async def test_a_redrive_of_what_no_key_opens_is_paused_and_says_so() -> None:
    bench = SealedBench()
    await bench.sealed()
    plan = await redrives.plan(await bench.selection(), Terms(), brokers=bench.brokers)
    redrive = await redrives.create(bench.desk, plan)
    ended = await Redriver(bench.store, bench.brokers, clock=bench.clock).run(redrive.redrive_id)

    assert ended.state is RedriveState.PAUSED
    assert "encrypted with the key 'k2'" in ended.why


async def test_a_message_that_only_looks_encrypted_goes_back_as_it_is() -> None:
    bench = SealedBench()
    await bench.collect(1, headers=(("rd-sealed", b"k2"),))
    assert sealed_by((await bench.get()).letter) is None
    await bench.consume(succeeds)
    await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)

    (delivery,) = await bench.consume(succeeds)
    assert delivery.message.body == b'{"order": 0}'


async def test_letters_that_are_named_and_keep_no_payload_are_left_out_with_where_their_messages_were() -> None:
    bench = Bench()
    await bench.collect(2)
    await bench.collect(7, prefix="digest", payload=None)
    ids = ["letter-0", "letter-1", *(f"digest-{number}" for number in range(7))]
    plan = await redrives.plan(await bench.selection(letter_ids=ids), Terms(), brokers=bench.brokers)

    assert plan.preview.count == 2
    assert "left out: letter digest-0 keeps no payload" in plan.remarks[0]
    assert "its message was message-0 in the queue orders of broker memory" in plan.remarks[0]
    assert plan.remarks[5] == "2 more left out: they keep no payload"


class Holding(Bench):
    """A broker that still holds what was published."""

    def __init__(self, found: Message | None) -> None:
        super().__init__()
        self.broker.original = self._original  # type: ignore[attr-defined]
        self._found = found

    async def _original(self, queue: str, message_id: str) -> Message | None:
        assert (queue, message_id) == ("orders", "message-0")
        return self._found


async def test_the_message_of_a_digest_is_fetched_from_where_it_still_is_and_sent_once() -> None:
    body = b'{"order": 0}'
    bench = Holding(Message("message-0", "orders", body, headers=HEADERS, key=b"k"))
    await bench.collect(1, payload=None, payload_sha256=a_letter(body).payload_sha256)
    await bench.consume(succeeds)
    seen = await bench.get()
    sent = [await retry.retry(bench.desk, seen, brokers=bench.brokers) for _ in range(2)]
    (delivery,) = await bench.consume(succeeds)

    assert sent[0] == sent[1]
    assert (delivery.message.body, delivery.message.headers, delivery.message.key) == (body, HEADERS, b"k")
    assert (delivery.letter_id, delivery.generation, delivery.message.origin) == ("letter-0", 1, "message-0")
    after = await bench.get()
    assert (after.life.state, after.letter.payload, [*after.edits]) == (LetterState.RESOLVED, None, [])
    assert {record.verb for record in (await audit.find(bench.desk)).rows} == {"letters.redrive"}


@pytest.mark.parametrize("found", [None, Message("message-0", "orders", b"another")])
async def test_what_is_not_the_message_is_not_sent(found: Any) -> None:
    bench = Holding(found)
    await bench.collect(1, payload=None, payload_sha256=a_letter(b"x").payload_sha256)

    with pytest.raises(DeadLetterError, match="keeps no payload"):
        await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)
    assert (await audit.find(bench.desk)).rows == []
