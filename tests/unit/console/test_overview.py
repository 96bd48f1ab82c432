import asyncio
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.console.pages import overview
from redrive.core.access import Role
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.query import Query
from redrive.triage import incidents, redrives
from tests.unit.console.seen import Seen
from tests.unit.console.stage import ConsoleStage
from tests.unit.triage.bench import begin


class Away(MemoryBroker):
    """A broker that cannot be reached."""

    async def queues(self) -> Any:
        raise BrokerUnavailable("redis://:secret@10.0.0.1:6379 does not answer")


class Silent(MemoryBroker):
    """A broker that takes every question and answers none."""

    async def queues(self) -> Any:
        await asyncio.Event().wait()


async def publish(stage: ConsoleStage, queue: str, count: int) -> None:
    messages = [Message(id="", queue=queue, body=b"{}", published_at=stage.clock.now()) for _ in range(count)]
    await stage.broker.publish(queue, messages)


def row(seen: Seen, name: str) -> list[str]:
    """The row of the table whose first cell begins with this."""
    return next(cells for cells in seen.rows if cells[0].startswith(name))


async def test_a_console_without_anything_says_what_to_do_next() -> None:
    async with ConsoleStage() as stage:
        seen = await stage.see("/")

    assert "No open incident" in seen.text
    assert "Publish a message or start a worker" in seen.text
    assert "0 open" in seen.text
    assert "Nothing is being sent back" in seen.text


async def test_new_incidents_come_first_then_those_that_grow_and_each_is_a_link() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(4, prefix="old", fingerprint="calm", error_type="CalmError")
        stage.clock.advance("2h")
        await stage.collect(2, prefix="grow", fingerprint="grows", error_type="GrowingError")
        stage.clock.advance("1h")
        await stage.collect(9, prefix="more", fingerprint="grows", error_type="GrowingError")
        stage.clock.advance("20m")
        await stage.collect(3, prefix="new", fingerprint="fresh", error_type="NewError", error_message="no <b>rate</b>")
        seen = await stage.see("/")

    assert seen.keys()[:3] == ["fresh", "grows", "calm"]
    assert row(seen, "NewError")[3] == "new 3 so far"
    assert row(seen, "GrowingError")[3].startswith("growing about 1")
    assert row(seen, "CalmError")[3] == "quiet for 3h"
    assert seen.link("NewError") == "/incidents/fresh"
    assert "no <b>rate</b>" in seen.text


async def test_an_incident_that_somebody_muted_is_not_in_the_way() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, fingerprint="known")
        await incidents.mute(stage.desk, "known")
        seen = await stage.see("/")

    assert seen.keys() == []


async def test_secrets_in_an_error_are_masked() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, error_message="login failed: password=hunter2hunter2")
        answer = await stage.get("/")

    assert "hunter2" not in answer.text


async def test_a_queue_says_how_much_is_where_and_who_works_on_it() -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders", group="shop", version="4f2c")
        await stage.consumer("orders", group="shop", version="5a00")
        await publish(stage, "orders", 1200)
        await stage.collect(3)
        stage.clock.advance("20s")
        seen = await stage.see("/")

    cells = row(seen, "orders shop")
    assert cells[1:9] == ["1,200", "0", "0", "0", "0", "3", "1,200", "20s"]
    assert cells[9] == "2 on version 4f2c, 5a00"
    assert seen.link("orders") == "/letters?queue=orders&broker=memory"


async def test_a_queue_without_a_living_consumer_says_so() -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders")
        stage.clock.advance("1h")
        seen = await stage.see("/")

    assert row(seen, "orders")[9] == "none"


async def test_a_queue_is_paused_with_a_reason_and_resumed() -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders")
        form = (await stage.see("/")).form("/queues/pause")
        assert form.fields == {"broker": "memory", "queue": "orders", "group": "shop", "why": ""}

        paused = await stage.follow(await stage.post(form.action, {**form.fields, "why": "the bank is down"}))
        assert "orders is paused for shop" in paused.text
        assert "paused the bank is down" in row(paused, "orders")[0]
        assert (await stage.broker.depth("orders", group="shop")).paused == "the bank is down"

        resume = paused.form("/queues/resume")
        resumed = await stage.follow(await stage.post(resume.action, resume.fields))
        assert "orders is resumed" in resumed.text
        assert "orders is resumed" not in (await stage.see("/")).text
        assert await stage.verbs() == ["queues.pause", "queues.resume"]


async def test_what_is_held_is_released_with_its_count() -> None:
    class Holding(MemoryBroker):
        held = 7

        async def depth(self, queue: str, *, group: str) -> Any:
            return replace(await super().depth(queue, group=group), held=self.held)

        async def free(self, queue: str, *, group: str) -> int:
            self.held = 0
            return 7

    async with ConsoleStage() as stage:
        holding = Holding(clock=stage.clock)
        stage.brokers["memory"] = stage.broker = holding
        await stage.consumer("orders")
        form = (await stage.see("/")).form("/queues/release")
        assert form.buttons == ("Release 7",)
        released = await stage.follow(await stage.post(form.action, form.fields))

    assert "7 held messages of orders may run again" in released.text
    assert not released.offers("/queues/release")


@pytest.mark.parametrize("missing", ["broker", "queue", "group"])
async def test_an_act_names_its_lane_whole(missing: str) -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders")
        lane = {"broker": "memory", "queue": "orders", "group": "shop", missing: ""}
        answer = await stage.post("/queues/pause", lane)

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert f"{missing}: expected one" in answer.text


@pytest.mark.parametrize("wrong", [{"broker": "kafka"}, {"queue": "nosuch"}, {"group": "nosuch"}])
async def test_an_act_on_a_lane_that_is_not_there_is_not_found(wrong: dict[str, str]) -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders")
        answer = await stage.post("/queues/pause", {"broker": "memory", "queue": "orders", "group": "shop", **wrong})

    assert answer.status_code == HTTPStatus.NOT_FOUND


async def test_a_viewer_is_offered_no_act_on_a_queue() -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders")
        await stage.as_(Role.VIEWER)
        seen = await stage.see("/")

    assert row(seen, "orders")
    assert not any("queues" in form.action for form in seen.forms)


async def test_a_new_incident_comes_first_though_many_old_ones_are_noisier() -> None:
    async with ConsoleStage() as stage:
        for number in range(overview.INCIDENTS_LOOKED_AT + 1):
            await stage.collect(1, prefix=f"old-{number}", fingerprint=f"old-{number}", error_type="NoisyError")
        stage.clock.advance("5h")
        await stage.collect(1, prefix="new", fingerprint="new", error_type="QuietError")
        stage.clock.advance("20m")
        for number in range(overview.INCIDENTS_LOOKED_AT + 1):
            await stage.collect(1, prefix=f"again-{number}", fingerprint=f"old-{number}", error_type="NoisyError")
        seen = await stage.see("/")

    shown = [href for _, href in seen.links if href.startswith("/incidents/")]
    assert shown[0] == "/incidents/new"


async def test_a_broker_that_is_away_is_named_without_its_password_and_takes_nothing_from_the_others() -> None:
    async with ConsoleStage() as stage:
        stage.brokers["far"] = Away(name="far", clock=stage.clock)
        await stage.consumer("orders")
        seen = await stage.see("/")

    assert "The broker far is missing here" in seen.text
    assert "secret" not in seen.html
    assert row(seen, "orders")


async def test_a_broker_that_is_silent_does_not_hold_the_page_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PATIENCE", timedelta(milliseconds=20))
    async with ConsoleStage() as stage:
        stage.brokers["far"] = Silent(name="far", clock=stage.clock)
        await stage.consumer("orders")
        seen = await stage.see("/")

    assert "no answer within 0.02 s" in seen.text
    assert row(seen, "orders")


def test_the_page_waits_for_a_broker_at_most_a_second() -> None:
    assert timedelta(seconds=1) >= overview.PATIENCE


async def test_each_hour_is_a_link_to_its_letters_and_a_row_of_the_table_behind() -> None:
    async with ConsoleStage() as stage:
        now = stage.clock.now().replace(minute=30, second=0, microsecond=0)
        await stage.collect(3, failed_at=now - timedelta(hours=2))
        seen = await stage.see("/")
        hour = (now - timedelta(hours=2)).replace(minute=0)
        href = next(href for text, href in seen.links if text.startswith("3 ·"))
        followed = await stage.get(href)

    assert parse_qs(urlsplit(href).query) == {
        "from": [f"{hour:%Y-%m-%dT%H:%M:%SZ}"],
        "to": [f"{hour + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"],
    }
    assert followed.status_code == HTTPStatus.OK
    assert [f"{hour:%a %d %b %H:%M}", "3"] in seen.rows
    assert "3 in the last 24 hours" in seen.text


async def test_totals_lead_to_their_letters() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(5)
        await stage.collect(2, prefix="capped", generation=5)
        stage.clock.advance("3h")
        seen = await stage.see("/")

    assert "5 open" in seen.text
    assert "2 parked" in seen.text
    assert "oldest letter 3h ago" in seen.text
    assert seen.link("2 parked") == "/letters?state=parked"


async def test_a_redrive_under_way_shows_how_far_it_is_until_it_has_ended() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(4)
        redrive = await begin(stage, canary=(1,))
        seen = await stage.see("/")
        assert seen.link("4 letters") == f"/redrives/{redrive.redrive_id}"
        assert "by sam" in seen.text

        await stage.store.mark(
            redrive.redrive_id, redrive.state.CANCELLED, why="", act=stage.desk.act("redrives.cancel")
        )
        assert "Nothing is being sent back" in (await stage.see("/")).text


async def test_what_a_redrive_searched_for_is_hidden_from_a_viewer() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, error_message="card 4111")
        selection = await stage.selection(query=Query(text="card 4111"))
        plan = await redrives.plan(selection, redrives.Terms(), brokers=stage.brokers)
        await redrives.create(stage.desk, plan)
        assert "text=card 4111" in (await stage.see("/")).text
        await stage.as_(Role.VIEWER)
        assert "text=card 4111" not in (await stage.see("/")).text


async def test_the_live_part_is_the_page_without_its_frame_and_is_sent_only_when_it_has_changed() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        first = await stage.get("/", headers={"X-Fragment": "live"})
        assert "<html" not in first.text
        assert "New and growing" in first.text

        again = await stage.get("/", headers={"X-Fragment": "live", "If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.text) == (HTTPStatus.NOT_MODIFIED, "")

        await stage.collect(1, prefix="next")
        fresh = await stage.get("/", headers={"X-Fragment": "live", "If-None-Match": first.headers["etag"]})
        assert fresh.status_code == HTTPStatus.OK


async def test_a_thousand_queues_stay_a_page_and_those_that_need_somebody_are_on_it() -> None:
    async with ConsoleStage() as stage:
        for number in range(200):
            await stage.consumer(f"queue-{number:03}")
        await stage.broker.pause("queue-150", group="shop", why="by hand")
        await stage.collect(1, queue="queue-199")
        answer = await stage.get("/")
        seen = await stage.see("/")

    assert len(answer.content) < 150_000
    assert row(seen, "queue-150")
    assert row(seen, "queue-199")
    assert "140 more queues not shown" in seen.text


async def test_names_without_end_do_not_swell_the_page() -> None:
    async with ConsoleStage() as stage:
        for number in range(12):
            long = f"{number:02}" + "x" * 20_000
            await stage.collect(1, prefix=long, queue=long, error_type=long, error_message=long, fingerprint=long)
        answer = await stage.get("/")

    assert answer.status_code == HTTPStatus.OK
    assert len(answer.content) < 150_000
