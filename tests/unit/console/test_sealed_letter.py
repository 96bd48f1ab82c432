"""A letter that is kept encrypted, in the console."""

from http import HTTPStatus

from redrive.ciphers.aes_gcm import AesGcm
from redrive.core.seal import seal
from redrive.triage.sealing import unsealed
from tests.unit.console.stage import ConsoleStage
from tests.unit.core.letters import a_letter

CIPHER = AesGcm({"k1": b"1" * 32})
LETTER = a_letter(b'{"name": "canary"}', letter_id="letter-0", broker="memory", headers=(("a", b"canary"),))


async def test_its_page_shows_the_key_id_until_somebody_who_may_opens_it() -> None:
    async with ConsoleStage(cipher=CIPHER) as stage:
        await stage.store.collect([seal(LETTER, CIPHER)])
        page = await stage.get("/letters/letter-0")
        opened = await stage.post("/letters/letter-0/reveal")
        noted = await stage.verbs()
        await stage.as_("operator")
        refused = await stage.post("/letters/letter-0/reveal")

    assert "encrypted with the key k1" in page.text
    assert "canary" not in page.text
    assert "canary" in opened.text
    assert "letters.decrypt" in noted
    assert refused.status_code == HTTPStatus.FORBIDDEN
    assert "canary" not in refused.text


async def test_it_is_edited_by_who_may_open_it_and_the_edit_is_encrypted() -> None:
    form = {"form": "text", "body": '{"name": "canary 2"}', "headers": "a: canary", "version": "1"}
    async with ConsoleStage(cipher=CIPHER) as stage:
        await stage.store.collect([seal(LETTER, CIPHER)])
        looked = await stage.post("/letters/letter-0/edit/check", form)
        token = looked.text.partition('name="checked" value="')[2].partition('"')[0]
        kept = await stage.post("/letters/letter-0/edit", {**form, "checked": token})
        await stage.as_("operator")
        refused = await stage.post("/letters/letter-0/edit", {**form, "checked": token, "version": "2"})
        stored = await stage.store.get("letter-0")

    assert looked.status_code == HTTPStatus.OK
    assert kept.status_code == HTTPStatus.SEE_OTHER, kept.text[:1000]
    assert refused.status_code == HTTPStatus.FORBIDDEN
    assert b"canary" not in stored.edits[0].body
    assert unsealed(stored, CIPHER).edits[0].body == b'{"name": "canary 2"}'
