"""Letters over HTTP."""

from base64 import b64encode
from typing import Any

import pytest

from redrive.core.access import Role
from redrive.core.life import LetterState
from redrive.core.wire import from_json
from redrive.core.wire.plain import dump
from redrive.triage import audit, editor
from tests.unit.api.stage import Stage
from tests.unit.core.letters import an_attempt
from tests.unit.triage.bench import succeeds

PROBLEM = "application/problem+json"


async def test_letters_are_listed_without_payloads_in_any_state() -> None:
    async with Stage() as stage:
        await stage.collect(3, error_message="token=abcdef0123456789")
        await stage.http.delete("/dlq/messages/letter-0")

        first = await stage.ask("/letters?limit=2")
        second = await stage.next_of(first)
        found = [*first.json(), *second.json()]

        assert [(one["letter_id"], one["state"]) for one in found] == [
            *[("letter-2", "open"), ("letter-1", "open"), ("letter-0", "discarded")]
        ]
        assert "payload" not in found[0]
        assert "abcdef0123456789" not in first.text


async def test_a_letter_is_shown_whole_with_what_the_store_knows_of_it() -> None:
    async with Stage() as stage:
        (letter,) = await stage.collect(1, headers=(("a", b"\xff"),), context={"region": "eu"})
        await editor.edit(stage.desk, "letter-0", body=b"one")
        await stage.consumer()
        await stage.post("/dlq/messages/letter-0/retry")
        await stage.consume(succeeds)
        await stage.post("/letters/letter-0/note", {"text": "mended"})

        masked = (await stage.ask("/letters/letter-0")).json()
        found = (await stage.ask("/letters/letter-0?reveal=true")).json()

        assert masked["masked"]
        assert not found["masked"]
        assert from_json(dump(found["letter"])) == letter
        assert (found["state"], found["generation"], found["note"]) == ("resolved", 1, "mended")
        assert [(one["number"], one["by"], one["body"]) for one in found["edits"]] == [(1, "sam", "one")]
        assert [(one["generation"], one["succeeded"]) for one in found["outcomes"]] == [(1, True)]
        assert len(found["redrive_ids"]) == 1
        assert (await stage.ask("/letters/nobody")).status_code == 404


async def test_a_letter_is_called_masked_only_if_something_of_it_is() -> None:
    async with Stage() as stage:
        await stage.collect(1, attempts=[an_attempt(1)], headers=(("a", b"1"),), context={"region": "eu"})
        await editor.edit(stage.desk, "letter-0", body=b"one")
        plain = (await stage.ask("/letters/letter-0")).json()
        await editor.edit(stage.desk, "letter-0", body=b"password=hunter2")
        secret = (await stage.ask("/letters/letter-0")).json()

        assert (plain["masked"], secret["masked"]) == (False, True)
        assert "hunter2" not in str(secret)


async def test_a_reveal_of_a_letter_needs_an_operator() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1, payload=b'{"password": "hunter2"}')

        refused = await stage.ask("/letters/letter-0?reveal=true", headers=await stage.token(Role.VIEWER))
        revealed = await stage.ask("/letters/letter-0?reveal=true", headers=await stage.token(Role.OPERATOR))

        assert refused.status_code == 403
        assert "hunter2" in revealed.text
        assert (await stage.verbs())[-1] == "letters.reveal"


async def test_a_context_that_is_nested_too_deeply_is_said_so() -> None:
    async with Stage() as stage:
        deep: Any = "end"
        for _ in range(400):
            deep = [deep]
        await stage.collect(1, context={"deep": deep})

        for path in ("/letters/letter-0", "/dlq/messages/letter-0"):
            assert (await stage.ask(f"{path}?reveal=true")).status_code == 200


@pytest.mark.parametrize(
    ("change", "body"),
    [
        ({"text": "plain ü"}, "plain ü".encode()),
        ({"base64": b64encode(b"\x00\xff").decode()}, b"\x00\xff"),
        ({"json": {"order": 7, "name": "ü"}}, b'{"order":7,"name":"\\u00fc"}'),
        ({"json": False, "text": None, "base64": None, "headers": None}, b"false"),
        ({"text": ""}, b""),
    ],
)
async def test_a_letter_is_edited_as_text_base64_or_json(change: dict[str, Any], body: bytes) -> None:
    async with Stage() as stage:
        (letter,) = await stage.collect(1)

        answer = await stage.post("/letters/letter-0/edit", change)
        said, stored = answer.json(), await stage.get()

        assert answer.status_code == 200
        assert said["number"] == 1
        assert said["before_sha256"] == letter.payload_sha256 != said["after_sha256"]
        assert said["difference"].startswith("--- before")
        assert editor.draft_of(stored).body == body
        assert stored.letter.payload == b'{"order": 0}'
        assert stored.edits[0].by == "local"


async def test_headers_are_edited_on_their_own() -> None:
    async with Stage() as stage:
        await stage.collect(1)

        said = (await stage.post("/letters/letter-0/edit", {"headers": [["a", "1"], ["b", {"base64": "/w=="}]]})).json()

        assert said["before_sha256"] == said["after_sha256"]
        assert editor.draft_of(await stage.get()) == (b'{"order": 0}', (("a", b"1"), ("b", b"\xff")))


async def test_an_edit_of_a_version_that_is_not_current_is_a_conflict() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        version = (await stage.ask("/letters/letter-0")).json()["version"]
        first = await stage.post("/letters/letter-0/edit", {"text": "one", "version": version})
        late = await stage.post("/letters/letter-0/edit", {"headers": [["a", "b"]], "version": version})

        assert (first.status_code, first.json()["number"]) == (200, 1)
        assert (late.status_code, late.headers["content-type"]) == (409, PROBLEM)
        assert "of version 2, not 1" in late.json()["detail"]
        assert editor.draft_of(await stage.get()) == (b"one", (await stage.get()).letter.headers)


async def test_an_edit_that_changes_nothing_has_no_number() -> None:
    async with Stage() as stage:
        await stage.collect(1)

        said = (await stage.post("/letters/letter-0/edit", {"text": '{"order": 0}'})).json()

        assert said == {"number": None, "before_sha256": None, "after_sha256": None, "difference": ""}


async def test_the_difference_of_an_edit_shows_no_secret() -> None:
    async with Stage() as stage:
        await stage.collect(1, payload=b'{"password": "hunter2", "order": 1}')

        answer = await stage.post("/letters/letter-0/edit", {"json": {"password": "hunter3", "order": 2}})

        assert '+  "order": 2' in answer.json()["difference"]
        assert "hunter" not in answer.text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"text": "a", "json": 1}, 400),
        ({"base64": "!"}, 400),
        ({"headers": [["a", {"base64": "!"}]]}, 400),
        ({"headers": [["rd-letter", "x"]]}, 403),
        ({"headers": [["a\r\nb", "x"]]}, 422),
        ({"headers": [["", "x"]]}, 422),
        ({"headers": [["a", 1]]}, 422),
        ({"headers": [["a", "b"]] * 10_000}, 422),
        ({"body": "x"}, 422),
        ({"text": 1}, 422),
        ([], 422),
    ],
)
async def test_an_edit_that_cannot_be_is_refused(change: Any, status: int) -> None:
    async with Stage() as stage:
        await stage.collect(1)

        answer = await stage.post("/letters/letter-0/edit", change)

        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
        assert not (await stage.get()).edits


async def test_what_is_out_or_unknown_is_not_edited() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        await stage.collect(1, prefix="digest", payload=None)
        await stage.post("/dlq/messages/letter-0/retry")

        out, unknown, nothing_kept = [
            await stage.post(f"/letters/{name}/edit", {"headers": [["a", "b"]]})
            for name in ("letter-0", "nobody", "digest-0")
        ]

        assert [out.status_code, unknown.status_code, nothing_kept.status_code] == [409, 404, 409]


async def test_a_note_is_put_on_a_letter() -> None:
    async with Stage() as stage:
        await stage.collect(1)

        answer = await stage.post("/letters/letter-0/note", {"text": "known since May"})

        assert answer.json() == {"letter_id": "letter-0", "note": "known since May"}
        assert (await stage.get()).note == "known since May"
        assert (await stage.post("/letters/nobody/note", {"text": "x"})).status_code == 404


async def test_a_success_that_is_reported_resolves_the_letter() -> None:
    async with Stage() as stage:
        await stage.collect(1, group="")
        await stage.post("/dlq/messages/letter-0/retry")

        said = (await stage.post("/letters/letter-0/outcome", {"succeeded": True, "app_version": "v9"})).json()
        again = (await stage.post("/letters/letter-0/outcome", {"succeeded": True, "generation": 1})).json()
        (outcome,) = (await stage.get()).outcomes

        assert (said["state"], said["generation"]) == ("resolved", 1)
        assert again == said
        assert (outcome.app_version, outcome.succeeded) == ("v9", True)
        assert "letters.outcome" in await stage.verbs()


async def test_after_a_failure_that_is_reported_the_letter_is_open_again() -> None:
    async with Stage() as stage:
        (before,) = await stage.collect(1, group="", error_message="no customer 1")
        await stage.post("/dlq/messages/letter-0/retry")

        said = (await stage.post("/letters/letter-0/outcome", {"succeeded": False})).json()
        same = await stage.get()
        await stage.post("/dlq/messages/letter-0/retry")
        error = {"error_type": "TimeoutError", "error_message": "password=hunter2", "error_code": "late"}
        await stage.post("/letters/letter-0/outcome", {"succeeded": False, **error})
        other = (await stage.get()).letter

        assert (said["state"], said["generation"]) == ("open", 1)
        assert (same.letter.error_type, same.letter.fingerprint) == ("ValueError", before.fingerprint)
        assert [attempt.generation for attempt in same.letter.attempts] == [1]
        assert (other.error_type, other.error_code, other.generation) == ("TimeoutError", "late", 2)
        assert other.fingerprint != before.fingerprint
        assert "hunter2" not in other.error_message


async def test_nothing_can_be_told_of_a_letter_that_was_not_sent_back() -> None:
    async with Stage() as stage:
        await stage.collect(1)

        never = await stage.post("/letters/letter-0/outcome", {"succeeded": True})
        await stage.post("/dlq/messages/letter-0/retry")
        higher = await stage.post("/letters/letter-0/outcome", {"succeeded": True, "generation": 2})
        unknown = await stage.post("/letters/nobody/outcome", {"succeeded": True})

        assert [never.status_code, higher.status_code, unknown.status_code] == [409, 409, 404]
        assert (await stage.get()).life.state is LetterState.REDRIVING


async def test_letters_are_discarded_in_the_versions_that_were_seen() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        seen = [{name: one[name] for name in ("letter_id", "version")} for one in (await stage.ask("/letters")).json()]
        await editor.edit(stage.desk, "letter-0", body=b"changed")

        said = (await stage.post("/letters/discard", {"letters": seen, "why": "a test"})).json()

        assert said == {"discarded": 1, "changed": 1}
        assert (await stage.get("letter-0")).life.state is LetterState.OPEN
        (record,) = (await audit.find(stage.desk, letter_id="letter-1")).rows
        assert (record.who, record.verb) == ("local", "letters.discard")


async def test_letters_are_discarded_by_a_filter_or_all() -> None:
    async with Stage() as stage:
        await stage.collect(3, error_type="KeyError")
        await stage.collect(2, prefix="other")

        filtered = (await stage.post("/letters/discard", {"filter": {"error_type": "KeyError"}})).json()
        everything = (await stage.post("/letters/discard", {"all": True})).json()

        assert (filtered["discarded"], everything["discarded"]) == (3, 2)
        assert (await stage.states())["discarded"] == 5


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({}, 400),
        ({"filter": {}}, 400),
        ({"filter": {"queue": "orders"}, "all": True}, 400),
        ({"filter": {"kueue": "orders"}}, 422),
        ({"all": "yes"}, 422),
        ({"letters": [{"letter_id": "letter-0", "version": 0}]}, 422),
        ({"letters": [{"letter_id": "letter-0", "version": 10**30}]}, 422),
        ({"letters": [{"letter_id": "letter-0"}]}, 422),
    ],
)
async def test_an_order_to_discard_that_is_unclear_discards_nothing(order: Any, status: int) -> None:
    async with Stage() as stage:
        await stage.collect(1)

        answer = await stage.post("/letters/discard", order)

        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
        assert (await stage.get()).life.state is LetterState.OPEN
