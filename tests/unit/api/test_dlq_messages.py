"""One dead letter as a message of a DLQ: look at it, send it back, delete it; and purge many."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.access import Role
from redrive.core.errors import BrokerUnavailable
from redrive.core.life import LetterState
from redrive.core.redrive import ItemStatus, SendBack
from redrive.triage import audit, editor
from redrive.triage.redriver import Redriver
from tests.unit.api.stage import Stage
from tests.unit.core.letters import an_attempt
from tests.unit.triage.bench import succeeds

PROBLEM = "application/problem+json"


async def test_one_message_has_its_attempts_headers_and_history() -> None:
    async with Stage() as stage:
        await stage.collect(1, attempts=(an_attempt(1), an_attempt(2)), headers=(("a", b"1"), ("b", b"\xff")))
        await stage.post("/letters/letter-0/note", {"text": "known"})

        found = (await stage.ask("/dlq/messages/letter-0")).json()

        assert [one["number"] for one in found["attempts"]] == [1, 2]
        assert found["headers"][0] == ["a", "1"]
        assert [(one["who"], one["verb"]) for one in found["history"]] == [("local", "letters.note")]
        assert found["note"] == "known"


async def test_a_message_is_found_by_the_id_of_its_entry_in_the_dlq() -> None:
    async with Stage() as stage:
        await stage.collect(1, dlq_entry_id="17-0")
        await stage.collect(1, prefix="mail", queue="mails", dlq_entry_id="17-0")
        await stage.collect(1, prefix="only", dlq_entry_id="18-0")

        only = await stage.ask("/dlq/messages/18-0")
        ambiguous = await stage.ask("/dlq/messages/17-0")
        told = await stage.ask("/dlq/messages/17-0?queue=mails")
        elsewhere = await stage.ask("/dlq/messages/letter-0?queue=mails")

        assert only.json()["message_id"] == "only-0"
        assert (ambiguous.status_code, ambiguous.headers["content-type"]) == (409, PROBLEM)
        assert "orders on memory" in ambiguous.json()["detail"]
        assert "mails on memory" in ambiguous.json()["detail"]
        assert told.json()["message_id"] == "mail-0"
        assert elsewhere.status_code == 404


@pytest.mark.parametrize("path", ["", "/payload"])
async def test_an_unknown_message_is_not_found(path: str) -> None:
    async with Stage() as stage:
        answer = await stage.ask(f"/dlq/messages/nobody{path}")

        assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)
        assert answer.json()["detail"] == "no letter 'nobody' is in the store"


async def test_a_payload_is_seen_as_text_json_or_hex() -> None:
    async with Stage() as stage:
        await stage.collect(1)

        views = {
            view: (await stage.ask(f"/dlq/messages/letter-0?view={view}")).json() for view in ("text", "json", "hex")
        }

        assert {view: (found["payload"], found["payload_encoding"]) for view, found in views.items()} == {
            "text": ('{"order": 0}', None),
            "json": ({"order": 0}, "json"),
            "hex": (b'{"order": 0}'.hex(), "hex"),
        }


@pytest.mark.parametrize("payload", [b"not json", b"[" * 500 + b"]" * 500, b"[" * 100_000, b"9" * 5000])
async def test_what_cannot_be_shown_as_json_is_a_conflict(payload: bytes) -> None:
    async with Stage() as stage:
        await stage.collect(1, payload=payload)

        answer = await stage.ask("/dlq/messages/letter-0?view=json&reveal=true")

        assert (answer.status_code, answer.headers["content-type"]) == (409, PROBLEM)
        assert (await stage.ask("/dlq/messages/letter-0?view=text&reveal=true")).json()["payload"] == payload.decode()


async def test_what_is_masked_is_not_in_hexadecimal_either() -> None:
    async with Stage() as stage:
        await stage.collect(1, payload=b"\x00\xffsecret")

        masked = (await stage.ask("/dlq/messages/letter-0?view=hex")).json()
        revealed = (await stage.ask("/dlq/messages/letter-0?view=hex&reveal=true")).json()

        assert b"secret".hex() not in masked["payload"]
        assert revealed["payload"] == b"\x00\xffsecret".hex()


async def test_a_reveal_needs_an_operator_and_is_on_record() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1, payload=b'{"password": "hunter2"}', headers=(("authorization", b"Bearer abcdef123456"),))
        viewer, operator = await stage.token(Role.VIEWER), await stage.token(Role.OPERATOR)

        masked = await stage.ask("/dlq/messages/letter-0", headers=viewer)
        refused = await stage.ask("/dlq/messages/letter-0?reveal=true", headers=viewer)
        assert (await audit.find(stage.desk, letter_id="letter-0")).rows == []
        revealed = await stage.ask("/dlq/messages/letter-0?reveal=true", headers=operator)

        assert "hunter2" not in masked.text
        assert "abcdef123456" not in masked.text
        assert refused.status_code == 403
        assert "hunter2" in revealed.text
        assert [(one["who"], one["verb"]) for one in revealed.json()["history"]] == [("a operator", "letters.reveal")]


async def test_a_payload_is_downloaded_byte_for_byte_and_it_is_on_record() -> None:
    async with Stage() as stage:
        payload = bytes(range(256))
        await stage.collect(1, payload=payload, letter_id='a"b\r\nx: y\u20ac')
        await stage.collect(1, prefix="digest", payload=None)

        answer = await stage.ask("/dlq/messages/a%22b%0D%0Ax%3A%20y%E2%82%AC/payload")

        assert answer.content == payload
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == 'attachment; filename="a_b_x_y_.bin"'
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert await stage.verbs() == ["letters.reveal"]
        assert (await stage.ask("/dlq/messages/digest-0/payload")).status_code == 409


async def test_a_viewer_downloads_nothing() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1)

        answer = await stage.ask("/dlq/messages/letter-0/payload", headers=await stage.token(Role.VIEWER))

        assert answer.status_code == 403


async def test_a_retry_has_published_and_recorded_before_it_answers() -> None:
    async with Stage() as stage:
        await stage.collect(1, payload=b"\x00\xff bytes", dlq_entry_id="17-0", headers=(("a", b"\xfe"),))
        await stage.consumer()

        answer = await stage.post("/dlq/messages/17-0/retry")
        said = answer.json()
        stored = await stage.get()
        (delivery,) = await stage.consume(succeeds)

        assert answer.status_code == 202
        assert (said["status"], said["original_dlq_message_id"]) == ("requeued", "17-0")
        assert said["new_message_id"] == delivery.message.id
        assert (stored.life.state, stored.life.generation) == (LetterState.REDRIVING, 1)
        assert [*stored.redrive_ids] == [said["redrive_id"]]
        assert (delivery.message.body, delivery.message.headers) == (b"\x00\xff bytes", (("a", b"\xfe"),))
        assert (await stage.get()).life.state is LetterState.RESOLVED


async def test_a_retried_letter_has_one_operation_in_the_audit_in_the_name_of_the_caller() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1)

        await stage.post("/dlq/messages/letter-0/retry", headers=await stage.token(Role.OPERATOR))
        (record,) = (await audit.find(stage.desk, letter_id="letter-0")).rows

        assert (record.who, record.verb) == ("a operator", "letters.redrive")


async def test_the_redriver_ends_what_a_retry_began() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        await stage.consumer()
        said = (await stage.post("/dlq/messages/letter-0/retry")).json()

        redriver = Redriver(stage.store, stage.brokers, clock=stage.clock)
        redrive = await stage.while_consuming(redriver.run(said["redrive_id"]), succeeds)

        assert redrive.state == "done"
        assert len(stage.published) == 1


async def test_an_edited_letter_is_retried_as_edited() -> None:
    async with Stage() as stage:
        await stage.collect(1, payload=None)
        await stage.consumer()
        refused = await stage.post("/dlq/messages/letter-0/retry")
        await editor.edit(stage.desk, "letter-0", body=b"written anew")

        await stage.post("/dlq/messages/letter-0/retry")
        (delivery,) = await stage.consume(succeeds)

        assert (refused.status_code, refused.headers["content-type"]) == (409, PROBLEM)
        assert "keeps no payload" in refused.json()["detail"]
        assert delivery.message.body == b"written anew"


async def test_what_is_not_open_is_not_retried() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        await stage.collect(1, prefix="parked", generation=5)
        await stage.post("/dlq/messages/letter-0/retry")
        await stage.http.delete("/dlq/messages/letter-1")

        again, discarded, parked = [
            await stage.post(f"/dlq/messages/{name}/retry") for name in ("letter-0", "letter-1", "parked-0")
        ]

        assert [again.status_code, discarded.status_code, parked.status_code] == [409, 409, 409]
        assert "is redriving" in again.json()["detail"]
        assert (await stage.post("/dlq/messages/nobody/retry")).status_code == 404


async def test_a_letter_of_a_broker_that_is_not_at_hand_is_not_claimed() -> None:
    async with Stage() as stage:
        await stage.collect(1, broker="elsewhere")

        answer = await stage.post("/dlq/messages/letter-0/retry")

        assert (answer.status_code, answer.headers["content-type"]) == (409, PROBLEM)
        assert "'elsewhere'" in answer.json()["detail"]
        assert (await stage.get()).life.state is LetterState.OPEN


class Flaky(MemoryBroker):
    away = True

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        if self.away:
            raise BrokerUnavailable("the broker at redis://user:hunter2@cache:6379 does not answer")
        return await super().send_back(items)


async def test_a_broker_that_is_away_is_a_503_and_the_claim_is_resumed() -> None:
    async with Stage() as stage:
        broker = stage.broker = stage.brokers["memory"] = Flaky(clock=stage.clock)
        await stage.collect(1)
        await stage.consumer()

        answer = await stage.post("/dlq/messages/letter-0/retry")
        claimed = await stage.get()
        again = await stage.post("/dlq/messages/letter-0/retry")
        broker.away = False
        (redrive,) = await stage.store.unfinished()
        redriver = Redriver(stage.store, stage.brokers, clock=stage.clock)
        await stage.while_consuming(redriver.run(redrive.redrive_id), succeeds)

        assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
        assert int(answer.headers["retry-after"]) > 0
        assert "hunter2" not in answer.text
        assert redrive.redrive_id in answer.json()["detail"]
        assert (claimed.life.state, claimed.life.generation) == (LetterState.REDRIVING, 1)
        assert again.status_code == 409
        assert stage.published == ["letter-0:1"]
        assert (await stage.get()).life.state is LetterState.RESOLVED
        assert (await stage.store.progress(redrive.redrive_id)).count(ItemStatus.SUCCEEDED) == 1


async def test_no_redriver_is_faster_than_the_retry_itself() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        seen: list[bool] = []

        class Watched(MemoryBroker):
            async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
                (redrive,) = await stage.store.unfinished()
                now = stage.clock.now()
                until = now + timedelta(seconds=10)
                seen.append(await stage.store.take(redrive.redrive_id, owner="another", now=now, until=until))
                return await super().send_back(items)

        stage.brokers["memory"] = Watched(clock=stage.clock)
        await stage.post("/dlq/messages/letter-0/retry")
        (redrive,) = await stage.store.unfinished()
        now = stage.clock.now()

        assert seen == [False]
        assert await stage.store.take(redrive.redrive_id, owner="another", now=now, until=now)


async def test_delete_discards_one_letter_and_keeps_its_body() -> None:
    async with Stage() as stage:
        await stage.collect(1, dlq_entry_id="17-0")

        first = await stage.http.delete("/dlq/messages/17-0")
        again = await stage.http.delete("/dlq/messages/17-0")
        stored = await stage.get()

        assert first.json() == again.json() == {"status": "deleted", "message_id": "17-0"}
        assert stored.life.state is LetterState.DISCARDED
        assert stored.letter.payload == b'{"order": 0}'
        assert await stage.verbs() == ["letters.discard"]
        assert (await stage.http.delete("/dlq/messages/nobody")).status_code == 404


async def test_what_is_out_is_not_deleted() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        await stage.post("/dlq/messages/letter-0/retry")

        answer = await stage.http.delete("/dlq/messages/letter-0")

        assert answer.status_code == 409
        assert "is redriving" in answer.json()["detail"]


async def test_bulk_delete_purges_what_the_filter_says_and_leaves_tombstones() -> None:
    async with Stage() as stage:
        letters = await stage.collect(3, error_type="KeyError")
        await stage.collect(2, prefix="other")

        answer = await stage.http.delete("/dlq/messages?error_type=KeyError")
        await stage.store.collect(letters)

        assert answer.json() == {"status": "purged", "deleted_count": 3, "filter": "KeyError"}
        assert sorted(await stage.ids()) == ["other-0", "other-1"]
        assert await stage.verbs() == ["letters.purge"]


async def test_bulk_delete_needs_a_filter_or_all() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        await stage.collect(1, prefix="mail", queue="mails", failed_at=stage.clock.now() + timedelta(days=3))

        refused = await stage.http.delete("/dlq/messages")
        also = await stage.http.delete("/dlq/messages?all=false")
        queue = (await stage.http.delete("/dlq/messages?queue=mails&user_id=ann")).json()
        everything = (await stage.http.delete("/dlq/messages?all=true")).json()

        assert [refused.status_code, also.status_code] == [400, 400]
        assert refused.headers["content-type"] == PROBLEM
        assert (queue["deleted_count"], queue["filter"]) == (0, "queue=mails, user_id=ann, state=open|parked")
        assert everything["deleted_count"] == 3
        assert await stage.ids() == []


@pytest.mark.parametrize("blank", ["%20", "+", "%09%0A", "%C2%A0"])
async def test_a_search_for_nothing_but_blanks_is_refused_and_purges_nothing(blank: str) -> None:
    async with Stage() as stage:
        await stage.collect(2, error_message="two words")

        answer = await stage.http.delete(f"/dlq/messages?q={blank}")

        assert (answer.status_code, len(await stage.ids())) == (422, 2)
        assert "not only blanks" in answer.json()["detail"]
        assert "pattern" not in answer.text


async def test_a_purge_leaves_what_is_settled_or_out_unless_its_state_is_named() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        await stage.post("/dlq/messages/letter-0/retry")
        await stage.http.delete("/dlq/messages/letter-1")

        first = (await stage.http.delete("/dlq/messages?all=true")).json()
        second = (await stage.http.delete("/dlq/messages?state=discarded")).json()

        assert (first["deleted_count"], second["deleted_count"]) == (1, 1)
        assert await stage.ids() == ["letter-0"]
