"""Letters that are kept encrypted, over HTTP; and what is said of those that were refused."""

from typing import Any

import pytest

from redrive.ciphers.aes_gcm import AesGcm
from redrive.core.access import Role
from redrive.core.reason import Reason
from redrive.core.seal import seal
from tests.unit.api.stage import Stage
from tests.unit.core.letters import a_letter

CIPHER = AesGcm({"k1": b"1" * 32})
LETTER = a_letter(b"\xff canary", letter_id="letter-0", broker="memory", headers=(("a", b"canary"),), key=b"canary")


async def sealed(stage: Stage) -> None:
    await stage.store.collect([seal(LETTER, CIPHER)])


@pytest.mark.parametrize("role", [*Role])
async def test_nobody_sees_an_encrypted_letter_without_asking(role: Role) -> None:
    async with Stage(needs_token=True, cipher=CIPHER) as stage:
        await sealed(stage)
        caller = await stage.token(role)
        for path in ("/letters/letter-0", "/dlq/messages", "/dlq/messages/letter-0", "/dlq/messages/letter-0?view=hex"):
            answer = await stage.ask(path, headers=caller)
            assert "(encrypted with the key k1: " in answer.text, path
            assert "canary" not in answer.text, path


async def test_an_admin_opens_it_on_record_and_an_operator_does_not() -> None:
    async with Stage(needs_token=True, cipher=CIPHER) as stage:
        await sealed(stage)
        operator, admin = await stage.token(Role.OPERATOR), await stage.token(Role.ADMIN)
        refused = [
            await stage.ask(path, headers=operator)
            for path in ("/letters/letter-0?reveal=true", "/dlq/messages/letter-0/payload")
        ]
        before = await stage.verbs()
        shown = await stage.ask("/letters/letter-0?reveal=true", headers=admin)
        bytes_of = await stage.ask("/dlq/messages/letter-0/payload", headers=admin)
        verbs = await stage.verbs()

    assert [answer.status_code for answer in refused] == [403, 403]
    assert "letters.decrypt" not in before
    letter = shown.json()["letter"]
    assert (letter["headers"], letter["key"]) == ([["a", "canary"]], "canary")
    assert bytes_of.content == b"\xff canary"
    assert verbs.count("letters.decrypt") == 2


async def test_without_the_key_it_stays_closed_and_says_which_is_missing() -> None:
    async with Stage() as stage:
        await sealed(stage)
        answer = await stage.ask("/letters/letter-0?reveal=true")

    assert answer.status_code == 409
    assert "'k1'" in answer.text


async def test_a_list_that_is_revealed_leaves_it_as_it_is() -> None:
    async with Stage(cipher=CIPHER) as stage:
        await sealed(stage)
        answer = await stage.ask("/dlq/messages?reveal=true")

    assert answer.status_code == 200
    assert "canary" not in answer.text


async def test_a_refusal_says_what_was_wrong_and_what_refused_it() -> None:
    context = {"validation_stage": "schema"}
    said: dict[str, Any] = {
        "error_code": "schema_validation_failed",
        "error_message": "no currency",
        "severity": "error",
    }
    async with Stage() as stage:
        await stage.store.collect([a_letter(letter_id="a", reason=Reason.INVALID, context=context, **said)])
        await stage.store.collect([a_letter(letter_id="b")])
        refused, died = await stage.ask("/letters/a"), await stage.ask("/letters/b")

    assert refused.json()["validation_error"] == {
        "code": "schema_validation_failed",
        "message": "no currency",
        "severity": "error",
        "validation_stage": "schema",
    }
    assert died.json()["validation_error"] is None
