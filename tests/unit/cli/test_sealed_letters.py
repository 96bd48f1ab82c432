"""Letters that are kept encrypted, at a store that the command line opens itself."""

import io
import json

from redrive.ciphers.aes_gcm import AesGcm
from redrive.cli.at_store.letters import LettersHere
from redrive.core.seal import seal, sealed_by
from redrive.core.wire import from_json
from redrive.stores.memory import MemoryStore
from redrive.testing.clock import ManualClock
from redrive.triage import audit
from redrive.triage.desk import Desk
from redrive.triage.letters import verify
from redrive.triage.selection import Wanted
from tests.unit.core.letters import a_letter

CIPHER = AesGcm({"k1": b"1" * 32})
LETTER = a_letter(b"canary", letter_id="letter-0", headers=(("a", b"canary"),))


async def a_desk() -> Desk:
    clock = ManualClock()
    desk = Desk(MemoryStore(clock=clock), clock, "sam", CIPHER)
    await desk.store.collect([seal(LETTER, CIPHER)])
    return desk


async def test_it_is_shown_closed_and_opened_only_if_asked_for_which_is_on_record() -> None:
    desk = await a_desk()
    here = LettersHere(desk)
    closed, opened = await here.show("letter-0"), await here.show("letter-0", reveal=True)

    assert closed.masked
    assert "canary" not in repr(closed)
    assert (opened.masked, opened.stored.letter.payload, opened.stored.letter.headers) == (
        False,
        b"canary",
        LETTER.headers,
    )
    assert [(one.who, one.verb) for one in (await audit.find(desk)).rows if not one.letter_id] == [
        ("sam", "letters.decrypt")
    ]


async def test_a_file_is_verified_without_opening_it() -> None:
    desk = await a_desk()
    stored = await desk.store.get("letter-0")

    assert verify(stored, b"canary").same
    assert not verify(stored, b"another").same


async def test_it_is_exported_closed_and_imported_as_it_was() -> None:
    desk = await a_desk()
    lines = [line async for line in LettersHere(desk).export(Wanted(letter_ids=["letter-0"]))]
    other = Desk(MemoryStore(clock=desk.clock), desk.clock, "ann", CIPHER)
    await LettersHere(other).take_in(io.BytesIO(b"".join(lines)), source="a file")

    assert b"canary" not in lines[0]
    assert sealed_by(from_json(lines[0])) == "k1"
    assert json.loads(lines[0])["payload_sha256"] == LETTER.payload_sha256
    assert (await LettersHere(other).show("letter-0", reveal=True)).stored.letter.payload == b"canary"
