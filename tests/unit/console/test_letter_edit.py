from http import HTTPStatus
from typing import Any

import pytest

from redrive.triage import editor
from tests.unit.console.seen import Form, Seen, read
from tests.unit.console.stage import ConsoleStage

PAGE = "/letters/letter-0"
BODY = b'{"order":1,"password":"hunter2"}'
HEADERS = (("tenant", b"acme"), ("raw", b"\xff\x00"))


async def begin(stage: ConsoleStage, **form: str) -> Seen:
    answer = await stage.post(f"{PAGE}/edit/begin", form)
    assert answer.status_code == HTTPStatus.OK, answer.text[:2000]
    return read(answer.text)


def draft(seen: Seen) -> Form:
    return next(one for one in seen.forms if "body" in one.fields)


async def check(stage: ConsoleStage, seen: Seen, *, status: HTTPStatus = HTTPStatus.OK, **changes: str) -> Seen:
    """Send the form with something changed, as the button below it does."""
    form = draft(seen)
    answer = await stage.post(form.action, {**form.fields, **changes})
    assert answer.status_code == status, answer.text[:2000]
    return read(answer.text)


async def test_an_edit_is_seen_before_it_is_kept_and_then_sent_back() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=BODY, headers=HEADERS)

        first = await begin(stage)
        looked = await check(stage, first, body=draft(first).fields["body"].replace("1", "2"))
        kept = await stage.post(f"{PAGE}/edit", {**draft(looked).fields, "then": "redrive"})

        assert draft(first).fields["headers"] == "tenant: acme\nraw:: /wA="
        assert '- "order": 1, + "order": 2,' in looked.text
        assert kept.headers["location"] == "/redrives/new?letter_id=letter-0"
        stored = await stage.stored()
        assert (stored.letter.payload, stored.edits[0].body) == (BODY, BODY.replace(b"1", b"2"))
        assert stored.edits[0].headers == HEADERS
        assert stored.edits[0].by == "local"
        assert await stage.verbs() == ["letters.reveal", "letters.reveal", "letters.edit"]


async def test_it_can_be_kept_without_sending_it() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"old")
        looked = await check(stage, await begin(stage), body="new")

        after = await stage.follow(await stage.post(f"{PAGE}/edit", draft(looked).fields))

        assert "Edit 1 is kept; it is sent back next time." in after.text
        assert (await stage.stored()).edits[0].body == b"new"


async def test_what_was_changed_after_it_was_checked_is_not_kept_unseen() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"old")
        looked = await check(stage, await begin(stage), body="new")

        answer = await stage.post(f"{PAGE}/edit", {**draft(looked).fields, "body": "newer"})

        assert answer.status_code == HTTPStatus.OK
        again = read(answer.text)
        assert "You changed it after you looked" in again.text
        assert "+newer" in again.text
        assert not (await stage.stored()).edits
        await stage.post(f"{PAGE}/edit", draft(again).fields)
        assert (await stage.stored()).edits[0].body == b"newer"


async def test_a_form_that_was_never_checked_keeps_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"old")
        form = draft(await begin(stage)).fields

        assert "What it changes" in (await stage.post(f"{PAGE}/edit", {**form, "body": "new"})).text
        assert not (await stage.stored()).edits


async def test_broken_json_is_named_at_its_line_unless_it_is_meant() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b'{"a":1,"b":2}')
        first = await begin(stage)
        broken = '{\n  "a": 1\n  "b": 2\n}'

        refused = await check(stage, first, body=broken, status=HTTPStatus.BAD_REQUEST)
        meant = await check(stage, refused, anyway="true")

        assert "This is no JSON any more. Line 3, column 3: Expecting ',' delimiter." in refused.text
        assert draft(refused).fields["body"] == broken
        assert "What it changes" in meant.text
        assert "The body looks like JSON, but is none." in meant.text


@pytest.mark.parametrize("name", ["rd-letter", "RD-Letter"])
async def test_redrives_own_headers_are_refused_by_name(name: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"old", headers=(("tenant", b"acme"),))

        refused = await check(
            stage, await begin(stage), headers=f"tenant: acme\n{name}: forged", status=HTTPStatus.BAD_REQUEST
        )

        assert f"Headers that begin with rd- are Redrive's own: take away {name}." in refused.text
        assert "It is meant to be" not in refused.text
        assert f"{name}: forged" in draft(refused).fields["headers"]


async def test_an_edit_that_somebody_else_has_overtaken_is_not_kept_and_not_lost() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"old")
        looked = await check(stage, await begin(stage), body="mine")
        await editor.edit(stage.desk, "letter-0", body=b"theirs")

        answer = await stage.post(f"{PAGE}/edit", draft(looked).fields)

        assert answer.status_code == HTTPStatus.CONFLICT
        assert "has changed" in answer.text
        assert draft(read(answer.text)).fields["body"] == "mine"
        assert [one.body for one in (await stage.stored()).edits] == [b"theirs"]


async def test_bytes_that_are_no_text_are_edited_in_hexadecimal_or_base64() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"\xff\x00\x01")

        coded, other = await begin(stage), await begin(stage, form="base64")
        wrong = await check(stage, coded, body="ff 0", status=HTTPStatus.BAD_REQUEST)
        looked = await check(stage, coded, body="ff 00 02")
        await stage.post(f"{PAGE}/edit", draft(looked).fields)

        assert draft(coded).fields["body"] == "ff 00 01"
        assert draft(other).fields["body"] == "/wAB"
        assert "not what it should be in hex" in wrong.text
        assert (await stage.stored()).edits[0].body == b"\xff\x00\x02"


async def test_a_letter_without_a_copy_is_given_a_body() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=None, payload_sha256="ab" * 32)

        first = await begin(stage)
        looked = await check(stage, first, body="hello")
        await stage.post(f"{PAGE}/edit", draft(looked).fields)

        assert "No copy of the message was kept" in first.text
        assert (await stage.stored()).edits[0].body == b"hello"


async def test_a_large_letter_is_not_edited_here_and_says_where() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"x" * 1_000_000)

        seen = await begin(stage)
        forged = await stage.post(f"{PAGE}/edit/check", {"form": "text", "body": "y", "version": "1"})

        assert "redrive letters edit letter-0 --body @FILE" in seen.text
        assert len(seen.html) < 150_000
        assert forged.status_code == HTTPStatus.BAD_REQUEST
        assert len(forged.content) < 150_000


async def test_an_unchanged_form_changes_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=BODY, headers=HEADERS)

        looked = await check(stage, await begin(stage))

        assert "Nothing: it is the same as before." in looked.text


@pytest.mark.parametrize("form", [{}, {"form": "text", "body": "x"}, {"form": "odd", "body": "x", "version": "1"}])
async def test_what_no_form_of_ours_sends_is_refused(form: dict[str, Any]) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        for path in ("edit/check", "edit"):
            assert (await stage.post(f"{PAGE}/{path}", form)).status_code == HTTPStatus.BAD_REQUEST


async def test_hostile_content_in_the_form_stays_in_its_field() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"</textarea><img src=x onerror=alert(1)>", headers=(("x", b"</textarea><b>"),))

        seen = await begin(stage)

        assert "<img src=x" not in seen.html
        assert draft(seen).fields["body"] == "</textarea><img src=x onerror=alert(1)>"
