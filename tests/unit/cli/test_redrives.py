import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from redrive import App
from redrive.cli.filters import as_rate, as_steps
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.wiring import collector, connect, open_store
from tests.unit.cli.conftest import Said, Shop


class Fixable:
    """A handler with a bug."""

    def __init__(self) -> None:
        self.fails: Callable[[int], Exception | None] = lambda _: ValueError("the old bug")

    async def __call__(self, order: dict[str, Any]) -> None:
        if error := self.fails(order["id"]):
            raise error


@contextmanager
def working(url: str, handler: Fixable, *, version: str = "4f2c") -> Iterator[None]:
    """A worker in a thread of its own."""
    app = App(url, name="shop", version=version, grace=5)

    @app.consumer("orders", retry=0, breaker=None)
    async def charge(order: dict[str, Any]) -> None:
        await handler(order)

    async def work() -> None:
        async with app.worker():
            begun.set()
            await asyncio.to_thread(stop.wait)

    begun, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def handler() -> Fixable:
    return Fixable()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty letters of one incident, collected; nobody is at work."""
    folder = tmp_path_factory.mktemp("dead")
    url = f"sqlite:///{folder}/redrive.db"

    async def die() -> None:
        broker, store = connect(url), open_store(f"sqlite:///{folder}/letters.db")
        messages = [Message("", "orders", b'{"id": %d}' % number) for number in range(1, 21)]
        await broker.publish("orders", messages)
        with working(url, Fixable(), version="1"):
            async with collector(broker, store, queues=["orders"]) as collecting:
                while collecting.collected.new < len(messages):  # noqa: ASYNC110 - of another thread
                    await asyncio.sleep(0.02)
        await store.aclose()
        await broker.aclose()

    asyncio.run(die())
    return folder


@pytest.fixture
def shop(either: Shop) -> Shop:
    return either


@pytest.fixture
def dead(shop: Shop, files: Path) -> Shop:
    shop.works = True
    shutil.copy(files / "redrive.db", shop.file)
    shutil.copy(files / "letters.db", shop.store_file)
    return shop


def latest(shop: Shop) -> dict[str, Any]:
    fact: dict[str, Any] = json.loads(shop.run("redrives", "list", "--count", "1", "--json").lines[0])
    return fact


def redrive(shop: Shop, *flags: str) -> Said:
    return shop.run("letters", "redrive", "--queue", "orders", *flags)


def test_many_letters_are_first_shown_and_nothing_is_sent(dead: Shop) -> None:
    said = redrive(dead, "--canary", "1,5,25", "--rate", "200/s")

    assert said.status == 0
    assert said.lines[0] == "would redrive 20 letters (queue=orders, state=open); add --yes to do it"
    assert "1, then 5, then 14" in said.out
    assert "orders, only to shop" in said.out
    assert dead.run("redrives").out == "nothing was sent back yet\n"


def test_a_dry_run_as_json_says_where_to_and_in_which_steps(dead: Shop) -> None:
    fact = json.loads(redrive(dead, "--canary", "1,5", "--json").out)

    assert (fact["dry_run"], fact["count"], fact["steps"], fact["remarks"]) == (True, 20, [1, 5, 14], [])
    assert fact["targets"] == [{"broker": "sqlite", "queue": "orders", "group": "shop", "letters": 20}]


def test_a_fixed_handler_resolves_every_letter_step_by_step(dead: Shop, handler: Fixable) -> None:
    handler.fails = lambda _: None

    with working(dead.url, handler):
        said = redrive(dead, "--canary", "1,5", "--yes")

    assert said.status == 0
    assert said.lines == [
        "step 1 of 3: 1 succeeded",
        "step 2 of 3: 5 succeeded",
        "Sent 1, it succeeded on version 4f2c; sent 5, then 14: 20 resolved, 0 unconfirmed",
    ]
    assert dead.states() == {"resolved": 20}


def test_a_handler_still_broken_stops_it_after_the_first(dead: Shop, handler: Fixable) -> None:
    with working(dead.url, handler):
        said = redrive(dead, "--canary", "1,5", "--yes")

    assert said.status == 1
    assert said.lines[-1] == "stopped after 1: same failure, 19 untouched"
    assert dead.states() == {"open": 20}


def test_a_canary_that_fails_in_another_way_pauses_it_and_resume_goes_on(dead: Shop, handler: Fixable) -> None:
    handler.fails = lambda _: KeyError("another one")

    with working(dead.url, handler):
        paused = redrive(dead, "--canary", "1,5", "--yes")
        redrive_id = latest(dead)["redrive_id"]
        handler.fails = lambda _: None
        resumed = dead.run("redrives", "resume", redrive_id)

    assert paused.status == 1
    assert "paused: 1 failed in another way" in paused.lines[-1]
    assert f"redrive redrives resume {redrive_id}" in paused.err
    assert resumed.status == 1
    assert "19 resolved" in resumed.lines[-1]
    assert dead.states() == {"open": 1, "resolved": 19}


def test_with_no_consumer_alive_it_says_so_and_waits_no_longer_than_told(dead: Shop) -> None:
    said = redrive(dead, "--canary", "1", "--within", "2s", "--yes")

    assert said.status == 1
    assert "no consumer is alive on this queue" in said.err
    assert "1 not heard of" in said.lines[-1]
    assert dead.states() == {"open": 19, "redriving": 1}


def test_what_was_never_heard_of_is_sent_again_only_if_asked_for(dead: Shop) -> None:
    redrive(dead, "--canary", "1", "--within", "0.3s", "--yes")
    dead.run("redrives", "cancel", latest(dead)["redrive_id"])
    (lost,) = [json.loads(line) for line in dead.run("letters", "list", "--state", "redriving", "--json").lines]

    refused = dead.run("letters", "redrive", lost["letter_id"])
    again = dead.run("letters", "redrive", lost["letter_id"], "--again", "--confirm", "quiet", "--within", "0.3s")

    assert refused.status == 1
    assert "only if again is asked for" in refused.err
    assert again.lines == ["Sent 1: 0 resolved, 0 unconfirmed, 1 quiet"]


def test_named_letters_are_sent_at_once_and_as_json_the_answer_is_the_last_line(dead: Shop, handler: Fixable) -> None:
    handler.fails = lambda _: None
    first = json.loads(dead.run("letters", "list", "--json").lines[0])["letter_id"]

    with working(dead.url, handler):
        said = dead.run("letters", "redrive", first[:12], "--json")

    fact = json.loads(said.lines[-1])
    assert (said.status, fact["state"], fact["total"], fact["versions"]) == (0, "done", 1, ["4f2c"])
    assert fact["progress"] == [{"succeeded": 1}]
    assert fact["verdict"].endswith("1 resolved, 0 unconfirmed")


def test_an_edited_letter_is_sent_as_it_was_edited(dead: Shop, handler: Fixable) -> None:
    handler.fails = lambda number: None if number == 1000 else ValueError("the old bug")
    first = json.loads(dead.run("letters", "list", "--json").lines[0])["letter_id"]
    dead.run("letters", "edit", first, "--body", '{"id": 1000}')

    with working(dead.url, handler):
        said = dead.run("letters", "redrive", first)

    assert said.status == 0
    assert dead.states() == {"open": 19, "resolved": 1}


def test_a_redrive_to_another_queue_says_who_sees_it(dead: Shop) -> None:
    dead.subscribe("inspection", group="people")

    said = redrive(dead, "--queue-to", "inspection")

    assert "inspection, every group of it" in said.out
    assert "people" in said.out


def test_redrives_are_listed_and_shown_with_their_answer(dead: Shop, handler: Fixable) -> None:
    with working(dead.url, handler):
        redrive(dead, "--canary", "1", "--rate", "500/s", "--yes")

    listed = dead.run("redrives")
    shown = dead.run("redrives", "show", latest(dead)["redrive_id"])

    assert "stopped after 1: same failure, 19 untouched" in listed.lines[1]
    for text in ("stopped after 1", "500/s", "orders (shop)", "1 failed", "19 untouched"):
        assert text in shown.out


def test_a_redrive_that_has_ended_can_be_neither_paused_nor_resumed_and_is_watched_to_its_answer(
    dead: Shop, handler: Fixable
) -> None:
    with working(dead.url, handler):
        redrive(dead, "--canary", "1", "--yes")
    redrive_id = latest(dead)["redrive_id"]

    for verb in ("pause", "resume", "cancel"):
        said = dead.run("redrives", verb, redrive_id)
        assert (said.status, len(said.err.splitlines())) == (1, 1)
    watched = dead.run("redrives", "watch", redrive_id)
    assert (watched.status, watched.out) == (1, "stopped after 1: same failure, 19 untouched\n")


def test_a_redrive_that_is_not_there_is_told(dead: Shop) -> None:
    for verb in ("show", "watch", "pause", "resume", "cancel"):
        assert dead.run("redrives", verb, "nothing").status == 4


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--canary", "1,x"), "--canary"),
        (("--canary", "0"), "--canary"),
        (("--rate", "fast"), "--rate"),
        (("--rate", "0/s"), "--rate"),
        (("--within", "soon"), "--within"),
    ],
)
def test_a_wrong_flag_is_one_clear_line(shop: Shop, flags: tuple[str, ...], said: str) -> None:
    answer = shop.run("letters", "redrive", "--all", *flags)

    assert (answer.status, len(answer.err.splitlines())) == (2, 1)
    assert said in answer.err


@pytest.mark.parametrize(
    ("text", "rate"), [("200/s", 200.0), ("90/m", 1.5), ("7200/h", 2.0), ("5", 5.0), ("0.5/s", 0.5), (None, None)]
)
def test_a_rate_is_read_as_people_write_it(text: str | None, rate: float | None) -> None:
    assert as_rate("--rate", text) == rate


@pytest.mark.parametrize("text", ["inf/s", "nan", "-1/s", "1/d", "/s", ""])
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        as_rate("--rate", text)


def test_canary_steps_are_read_as_people_write_them() -> None:
    assert as_steps("--canary", "1, 5,25") == (1, 5, 25)
    assert as_steps("--canary", None) == ()
