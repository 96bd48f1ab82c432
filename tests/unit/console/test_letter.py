import json
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from redrive.config import ServiceSettings
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.reason import Reason
from redrive.triage import editor, letters
from redrive.triage.redrives import Terms, create, plan
from redrive.triage.selection import Wanted, select
from tests.unit.console.stage import ConsoleStage
from tests.unit.core.letters import a_letter, an_attempt, any_letter
from tests.unit.triage.bench import Bench

PAGE = "/letters/letter-0"
LARGEST_PAGE = 150_000
EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[31m\x00"
SECRET = b'{"order": 1, "password": "hunter2", "email": "ann@example.com"}'


async def send_back(stage: Bench, letter_id: str = "letter-0") -> str:
    """Claim a letter for a redrive, as a redriver does; the id of the redrive."""
    selection = await select(stage.desk, Wanted(letter_ids=[letter_id]))
    redrive = await create(stage.desk, await plan(selection, Terms(), brokers=stage.brokers))
    await stage.store.claim(redrive.redrive_id, step=0, limit=10)
    await stage.store.sent(redrive.redrive_id, {letter_id: "m-1"}, at=stage.clock.now())
    return redrive.redrive_id


async def test_the_headline_is_the_error_in_words() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(
            1, error_type="shop.errors.NoCustomer", error_message="no customer 'c-1'", reason=Reason.ATTEMPTS_EXHAUSTED
        )

        seen = await stage.see(PAGE)

        assert seen.headings[0] == "NoCustomer"
        assert "no customer 'c-1'" in seen.text
        assert "every attempt failed (attempts_exhausted)" in seen.text
        assert "shop.errors.NoCustomer" in seen.text
        assert len(seen.root.all("h1")) == 1


async def test_where_it_died_is_told_and_leads_to_its_incident_and_its_queue() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, handler="shop.tasks.charge", node="worker-3", pid=7, key=b"k-1", trace_id="4bf92f35")

        seen = await stage.see(PAGE)
        facts = dict(
            zip([one.text for one in seen.root.all("dt")], [one.text for one in seen.root.all("dd")], strict=True)
        )

        expected = {
            "Queue": "orders",
            "Group": "shop",
            "Broker": "memory",
            "Handler": "shop.tasks.charge",
            "Version": "v1",
            "Node": "worker-3, pid 7",
            "Message": "message-0",
            "Key": "k-1",
        }
        assert facts.items() >= expected.items()
        assert ("0123456789abcdef", "/incidents/0123456789abcdef") in seen.links
        assert ("orders", "/letters?queue=orders") in seen.links
        assert next(one for one in seen.root.all("pre") if one.attributes.get("id") == "trace").text == "4bf92f35"


@pytest.mark.parametrize(
    ("trace_id", "address"),
    [("4bf92f35", "https://traces.example/trace/4bf92f35?ui"), ('"><b', "https://traces.example/trace/%22%3E%3Cb?ui")],
)
async def test_a_trace_leads_to_where_it_is_shown(trace_id: str, address: str) -> None:
    given = ServiceSettings(trace_url="https://traces.example/trace/{trace_id}?ui")
    async with ConsoleStage(settings=given) as stage:
        await stage.collect(1, trace_id=trace_id)

        assert ("Its trace", address) in (await stage.see(PAGE)).links


async def test_there_is_no_link_to_a_trace_that_the_settings_or_the_letter_know_nothing_of() -> None:
    given = ServiceSettings(trace_url="https://traces.example/trace/{trace_id}")
    async with ConsoleStage() as unset, ConsoleStage(settings=given) as stage:
        await unset.collect(1, trace_id="4bf92f35")
        await stage.collect(1)

        assert "Its trace" not in (await unset.see(PAGE)).text
        assert "Its trace" not in (await stage.see(PAGE)).text


async def test_a_payload_of_json_is_a_tree_and_also_text_and_hex() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b'{"order": 1, "items": [{"sku": "a"}]}')

        seen = await stage.see(PAGE)

        assert "order : 1" in seen.text
        assert 'sku : "a"' in seen.text
        assert "37 bytes" in seen.text
        assert (await stage.stored()).letter.payload_sha256 in seen.text
        assert '{"order": 1, "items": [{"sku": "a"}]}' in (await stage.see(seen.link("text"))).text
        assert "00000000 7b 22 6f 72" in (await stage.see(seen.link("hex"))).text


async def test_secrets_are_masked_until_somebody_reveals_them_which_is_on_record() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=SECRET, headers=(("authorization", b"Bearer abcdefgh12345678"),))

        masked = await stage.see(PAGE)
        answer = await stage.post(masked.form(f"{PAGE}/reveal").action)

        assert "hunter2" not in masked.html
        assert "abcdefgh12345678" not in masked.html
        assert "The audit will say that you did." in masked.text
        assert "hunter2" in answer.text
        assert "abcdefgh12345678" in answer.text
        assert "The audit says that you, local, looked." in answer.text
        assert "data-live" not in answer.text  # what is fetched again is masked
        assert await stage.verbs() == ["letters.reveal"]


async def test_what_is_masked_is_not_to_be_had_in_hexadecimal() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=SECRET)

        seen = await stage.see(f"{PAGE}?view=hex")

        assert b"hunter2".hex(" ") not in seen.html
        assert [text for text, _ in seen.links if text in ("tree", "text", "hex")] == ["tree", "text"]


async def test_a_viewer_sees_it_masked_and_is_offered_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=SECRET)
        await send_back(stage)
        await stage.as_("viewer")

        seen = await stage.see(PAGE)

        assert "Somebody with the role operator may reveal them." in seen.text
        assert not [one.action for one in seen.forms if one.action.startswith(PAGE)]
        assert not any(text in ("Redrive…", "Discard…") for text, _ in seen.links)
        for act in ("reveal", "payload", "note", "outcome", "edit/begin", "edit/check", "edit"):
            answer = await stage.post(f"{PAGE}/{act}", {"text": "x"})
            assert (answer.status_code, "hunter2" in answer.text) == (HTTPStatus.FORBIDDEN, False)


@pytest.mark.parametrize("path", ["reveal", "payload", "edit", "edit/begin", "edit/check"])
async def test_what_only_an_act_shows_has_no_address_of_its_own(path: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=SECRET)

        answer = await stage.get(f"{PAGE}/{path}")

        assert (answer.status_code, answer.headers["location"]) == (HTTPStatus.SEE_OTHER, PAGE)


async def test_a_payload_is_downloaded_byte_for_byte_which_is_on_record() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b"\xff\x00" * 9, letter_id='odd"\r\n/id')

        page = await stage.see("/letters/odd%2522%250D%250A%252Fid")
        form = next(one for one in page.forms if one.action.endswith("/payload"))
        answer = await stage.post(form.action)

        assert answer.content == b"\xff\x00" * 9
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == 'attachment; filename="odd_id.bin"'
        assert await stage.verbs() == ["letters.reveal"]


async def test_attempts_are_told_over_all_generations_with_crashes_and_redrives() -> None:
    async with ConsoleStage() as stage:
        first = an_attempt(1, crash=True, error_type="WorkerCrash", node="worker-1")
        second = an_attempt(2, error_message="no customer")
        await stage.collect(1, attempts=(first, second))
        redrive_id = await send_back(stage)
        again = an_attempt(1, generation=1, error_type="shop.KeyError")
        died = replace((await stage.stored()).letter, generation=1, attempts=(again,), app_version="v2")
        await stage.store.collect([died])

        seen = await stage.see(PAGE)
        told = [one.text for one in seen.root.all("ol")[-1].all("li")]

        assert told[0] == "It died again"
        assert told[1].startswith("Attempt 1: KeyError")
        assert told[2].startswith(f"Sent back, generation 1 by sam in redrive {redrive_id}")
        assert told[3].startswith("Attempt 2: ValueError")
        assert "no customer" in told[3]
        assert told[4].startswith("The process died in attempt 1")
        assert "took 1s, on worker-1" in told[4]
        assert seen.link(f"redrive {redrive_id}") == f"/redrives/{redrive_id}"
        assert "sent back once" in seen.text


async def test_a_letter_that_is_out_is_told_about_by_hand() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await send_back(stage)

        seen = await stage.see(PAGE)
        form = seen.form(f"{PAGE}/outcome")
        answer = await stage.post(form.action, {**form.fields, "succeeded": "true", "app_version": "4f2c"})
        after = await stage.follow(answer)

        assert "Out: nothing was heard of it yet" in seen.text
        assert (await stage.stored()).life.state is LetterState.RESOLVED
        assert "Told that it succeeded: it is resolved." in after.text
        assert "It succeeded on version 4f2c" in after.text
        assert not after.offers(f"{PAGE}/outcome")
        assert "letters.outcome" in await stage.verbs()


@pytest.mark.parametrize(
    "form", [{}, {"succeeded": "perhaps", "generation": "1"}, {"succeeded": "true", "generation": "x"}]
)
async def test_an_outcome_that_says_nothing_is_refused(form: dict[str, str]) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await send_back(stage)

        assert (await stage.post(f"{PAGE}/outcome", form)).status_code == HTTPStatus.BAD_REQUEST


async def test_a_note_is_kept_and_taken_away_again() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        noted = await stage.follow(await stage.post(f"{PAGE}/note", {"text": "ask Kim\r\nfirst"}))

        assert (await stage.stored()).note == "ask Kim\nfirst"
        assert noted.form(f"{PAGE}/note").fields["text"] == "ask Kim\nfirst"
        await stage.post(f"{PAGE}/note", {"text": ""})
        assert (await stage.stored()).note == ""


async def test_what_can_be_done_depends_on_the_state() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        seen = await stage.see(PAGE)

        assert seen.link("Redrive…") == "/redrives/new?letter_id=letter-0"
        assert seen.link("Discard…") == "/discard?letter_id=letter-0"
        assert seen.offers(f"{PAGE}/edit/begin")
        await letters.discard_one(stage.desk, await stage.stored())
        settled = await stage.see(PAGE)
        assert not any(text in ("Redrive…", "Discard…") for text, _ in settled.links)
        assert not settled.offers(f"{PAGE}/edit/begin")


async def test_edits_are_shown_with_what_they_changed_masked_as_all_else() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=SECRET)
        await editor.edit(stage.desk, "letter-0", body=b'{"order": 2, "password": "other-secret"}')

        seen = await stage.see(PAGE)

        assert "Edit 1 by sam" in seen.text
        assert '+ "order": 2,' in seen.text
        assert "other-secret" not in seen.html
        assert "hunter2" not in seen.html
        assert "edited once" in seen.text


async def test_who_did_what_to_it_is_told() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await letters.note(stage.desk, "letter-0", "known")

        assert ["sam", "letters.note"] in [row[1:] for row in (await stage.see(PAGE)).rows]


async def test_the_state_and_the_story_are_fetched_again_alone() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, attempts=(an_attempt(1),))

        assert "open" in (await stage.live(PAGE)).text
        assert "Attempt 1" in (await stage.live(PAGE, block="story")).text


async def test_a_letter_that_is_not_there_is_a_page_that_says_so() -> None:
    async with ConsoleStage() as stage:
        answer = await stage.get("/letters/nothing")

        assert answer.status_code == HTTPStatus.NOT_FOUND


async def test_a_letter_without_a_copy_of_its_message_says_so_and_is_not_sent() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=None, payload_sha256="ab" * 32)

        seen = await stage.see(PAGE)

        assert "No copy of the message was kept" in seen.text
        assert "ab" * 32 in seen.text
        assert not any(text == "Redrive…" for text, _ in seen.links)
        assert not seen.offers(f"{PAGE}/payload")
        assert seen.offers(f"{PAGE}/edit/begin")
        assert (await stage.post(f"{PAGE}/payload")).status_code == HTTPStatus.CONFLICT


async def test_a_foreign_letter_shows_what_it_has_and_nothing_empty() -> None:
    async with ConsoleStage() as stage:
        bare = DeadLetter(
            letter_id="letter-0",
            queue="legacy",
            payload=b"hello\nworld",
            payload_sha256="",
            reason=Reason.UNKNOWN,
            failed_at=stage.clock.now(),
        )
        await stage.store.collect([bare])

        seen = await stage.see(PAGE)

        assert seen.headings[0] == "unknown"
        assert "it does not say why" in seen.text
        assert "hello world" in seen.text
        assert [one.text for one in seen.root.all("dl")[0].all("dt")] == ["Given up", "Queue", "Error type"]
        assert "how often it was tried is not known" in seen.text
        assert not any("/incidents/" in href for _, href in seen.links)


HOSTILE: dict[str, dict[str, Any]] = {
    "ten megabytes": {"payload": b'{"a": "<b>"}' * 850_000},
    "invalid UTF-8": {"payload": b"\xff\xfe<b>\x00" * 20_000},
    "deep JSON": {"payload": b"[" * 990 + b"]" * 990},
    "deeper JSON": {"payload": b"[" * 100_000},
    "wide JSON": {"payload": json.dumps({f'"<b>{n}': "'" * 90 for n in range(900)}).encode()},
    "quotes": {"payload": b'"' * 200_000},
    "NUL": {"payload": b"\x00" * 200_000},
    "a text of marks": {"payload": ("\u202e\u2066" * 30_000).encode()},
    "five thousand headers": {"headers": tuple((f"<b>{n}", b"'\"<" * 40) for n in range(5000))},
    "a long header": {"headers": ((EVIL * 5000, EVIL.encode() * 5000),)},
    "a megabyte of stack": {"stack": f"{EVIL}\n" * 30_000},
    "a long error": {"error_type": EVIL * 9000, "error_message": EVIL * 9000},
    "long names": dict.fromkeys(
        [
            *("queue", "group", "handler", "node", "app_version"),
            *("user_id", "tenant_id", "trace_id", "fingerprint"),
        ],
        EVIL * 3000,
    ),
    "a wide context": {"context": {f"{EVIL}{n}": [EVIL] * 20 for n in range(500)}},
    "many attempts": {
        "attempts": tuple(an_attempt(n, error_type=EVIL * 50, error_message=EVIL * 90) for n in range(96))
    },
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_letter_is_a_small_page_of_text(hostile: dict[str, Any]) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, **hostile)
        views = ("tree", "text", "hex") if "payload" in hostile else ("tree",)

        masked = await stage.get(PAGE)
        revealed = [await stage.post(f"{PAGE}/reveal", {"view": view}) for view in views]

        for answer in (masked, *revealed):
            assert answer.status_code == HTTPStatus.OK
            assert len(answer.content) < LARGEST_PAGE
            assert "<b>" not in answer.text
            assert "<img src=x" not in answer.text
            assert not {"\u202e", "\u2066", "\x1b", "\x00"} & {*answer.text}


@given(letter=any_letter())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
async def test_any_letter_can_be_looked_at(letter: DeadLetter) -> None:
    async with ConsoleStage() as stage:
        await stage.store.collect([letter])

        listed = await stage.see("/letters")
        address = next(one.all("a")[0].attributes["href"] for one in listed.root.all("tr") if one.all("a"))

        assert (await stage.get(address)).status_code == HTTPStatus.OK
        assert (await stage.post(f"{address}/reveal")).status_code == HTTPStatus.OK


async def test_times_are_relative_with_the_exact_one_beside() -> None:
    async with ConsoleStage() as stage:
        await stage.store.collect([a_letter(letter_id="letter-0", failed_at=stage.clock.now() - timedelta(hours=3))])

        seen = await stage.see(PAGE)
        shown = seen.root.all("time")[0]

        assert shown.text == "3h ago"
        assert shown.attributes["title"].endswith(" UTC")


async def test_a_browser_may_say_that_a_form_is_of_our_own_page() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        # With no-referrer, Chromium and Firefox send the forms of a page with `Origin: null`, which is refused.
        assert (await stage.get(PAGE)).headers["referrer-policy"] == "same-origin"
