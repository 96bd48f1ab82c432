"""What a webhook is told, where it may be, and what becomes of it where nobody takes it."""

import asyncio
import json
import logging
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.core.alert import Alert, Rule
from redrive.core.errors import ConfigError, NotifierError
from redrive.core.event import Event, NotifierFailed
from redrive.notifiers import webhook
from redrive.notifiers.address import is_public
from redrive.notifiers.slack import TITLES, slack_body
from redrive.notifiers.webhook import WebhookNotifier
from redrive.observe.alerts import EVERY, Alerts
from redrive.observe.bus import Bus
from redrive.stores.memory import MemoryStore
from redrive.testing import ManualClock
from tests.servers.ports import free_port
from tests.servers.webhook import Answer, chat
from tests.unit.core.letters import a_letter

AT = datetime(2029, 12, 31, tzinfo=UTC)
ALERT = Alert(
    incident_id="f1", error_type="KeyError", queues=("orders",), open=3, total=5, began_at=AT, last_at=AT, link="x://y"
)


async def test_a_message_has_a_text_and_the_facts_of_each_alert() -> None:
    with chat() as there:
        notifier = WebhookNotifier(there.url, allow_private=True, labels={"severity": "critical"})
        await notifier.tell([ALERT, replace(ALERT, open=0, ended_at=AT + timedelta(hours=1))])
        (post,) = there.posts()

    assert (post.path, post.headers["Host"]) == ("/services/T0/B0/s3cret", f"127.0.0.1:{there.port}")
    assert post.body["text"] == (
        "New incident: KeyError in orders: 3 open letters\nEnded: New incident: KeyError in orders: 0 open letters"
    )
    firing, ended = post.body["attachments"]
    assert (firing["color"], ended["color"], firing["title_link"]) == ("danger", "good", "x://y")
    assert {one["title"]: one["value"] for one in firing["fields"]} == {
        "state": "firing",
        "rule": "new_incident",
        "incident": "f1",
        "error_type": "KeyError",
        "queue": "orders",
        "letters": "3 open of 5",
        "since": "2029-12-31T00:00:00+00:00",
        "severity": "critical",
    }
    assert {"title": "until", "value": "2029-12-31T01:00:00+00:00", "short": True} in ended["fields"]


@pytest.mark.parametrize("rule", [*Rule])
def test_every_rule_has_a_title(rule: Rule) -> None:
    said = json.loads(slack_body([replace(ALERT, rule=rule, said="orders: 12 letters died")], labels={}))

    assert said["text"].startswith(f"{TITLES[rule]}: ")


@pytest.mark.parametrize(
    "hostile", ["<!channel>", "<https://evil.example|sign in>", "a&b", "</p>", "\x1b[31m\n", "\ud800", "\u202egpj"]
)
async def test_whatever_an_incident_is_called_it_mentions_nobody_and_makes_no_link(hostile: str) -> None:
    alert = replace(ALERT, incident_id=hostile, error_type=hostile, queues=(hostile, "other"))
    with chat() as there:
        notifier = WebhookNotifier(there.url, allow_private=True)
        await notifier.tell([alert, replace(alert, rule=Rule.SIZE, queues=(hostile,), said=f"{hostile}: 12 letters")])
        (post,) = there.posts()

    texts = [post.body["text"], *_texts(post.body["attachments"])]
    assert not any(sign in text for text in texts for sign in "<>\x1b\u202e")
    assert not any(sign in text for text in texts[1:] for sign in "\n")
    escaped = hostile.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert not hostile.isprintable() or any(escaped in text for text in texts)
    assert post.body["text"].count("\n") == 1


def test_a_name_of_any_length_is_cut() -> None:
    assert len(slack_body([replace(ALERT, error_type="<" * 1_000_000)], labels={})) < 10_000


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


# ------------------------------------------------------------------------------------------ where it may be


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),  # where clouds keep their secrets
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 - an address to be refused
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.215.14", True),
        ("64:ff9b::a9fe:a9fe", False),  # 169.254.169.254 by NAT64
        ("64:ff9b::5db8:d70e", True),
        ("2002:7f00:1::", False),  # 127.0.0.1 by 6to4
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", False),  # 127.0.0.1 by Teredo
    ],
)
def test_only_addresses_on_the_internet_are_public(address: str, public: bool) -> None:  # noqa: FBT001 - a table
    assert is_public(address) is public


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433", "169.254.169.254"])
async def test_a_private_address_is_refused_unless_it_is_allowed(host: str) -> None:
    with chat() as there:
        notifier = WebhookNotifier(f"http://{host}:{there.port}/s3cret")
        with pytest.raises(NotifierError, match=r"not on the internet; alerts\.allow_private") as refused:
            await notifier.tell([ALERT])

    assert "s3cret" not in str(refused.value)
    assert there.tries == 0


async def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    async def both(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 80)) for one in ("93.184.215.14", "10.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)

    with pytest.raises(NotifierError, match=r"leads to 10\.0\.0\.1"):
        await WebhookNotifier("http://rebound.example/x").tell([ALERT])


async def test_the_address_that_was_looked_at_is_the_one_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def here(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    with chat() as there:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", here)
        await WebhookNotifier(f"http://hooks.example:{there.port}/x?a=1", allow_private=True).tell([ALERT])
        (post,) = there.posts()

    assert asked == ["hooks.example"]  # once: a second answer may be another
    assert (post.path, post.headers["Host"]) == ("/x?a=1", f"hooks.example:{there.port}")


async def test_an_address_that_cannot_be_reached_is_no_reason_not_to_try_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with chat() as there:

        async def two(*_: object, **__: object) -> list[Any]:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, there.port)) for one in ("127.0.0.9", "127.0.0.1")
            ]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        await WebhookNotifier(f"http://hooks.example:{there.port}/", allow_private=True).tell([ALERT])

    assert there.tries == 1


async def test_a_redirect_is_not_followed() -> None:
    with (
        chat() as target,
        chat(Answer(307, b"", {"Location": target.url})) as there,
        pytest.raises(NotifierError, match="answered 307; redirects are not followed"),
    ):
        await WebhookNotifier(there.url, allow_private=True).tell([ALERT])

    assert target.tries == 0


async def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with chat() as there:
        await WebhookNotifier(there.url, allow_private=True).tell([ALERT])

    assert there.tries == 1


# ------------------------------------------------------------------------------------------ what is secret


async def test_no_message_and_no_log_has_more_of_the_url_than_its_host(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with chat(Answer(404, b"nothing at /services/T0/B0/s3cret \x1b[31m"), Answer(200)) as there:
        notifier = WebhookNotifier(there.url, allow_private=True)
        with pytest.raises(NotifierError) as refused:
            await notifier.tell([ALERT])
        await notifier.tell([ALERT])
    gone = WebhookNotifier(f"http://ann:s3cret@127.0.0.1:{free_port()}/s3cret", allow_private=True)
    with pytest.raises(NotifierError) as away:
        await gone.tell([ALERT])

    assert str(refused.value) == r"127.0.0.1 answered 404: nothing at /*** \x1b[31m"
    said = [notifier.place, gone.place, *map(str, (refused.value, away.value)), caplog.text]
    assert not any("s3cret" in text for text in said)
    assert notifier.place.startswith(f"http://127.0.0.1:{there.port}/*** (")


def test_two_webhooks_of_one_host_have_places_of_their_own() -> None:
    one, other = (WebhookNotifier(f"https://hooks.example/{name}") for name in "ab")

    assert one.place != other.place
    assert one.place == WebhookNotifier("https://hooks.example/a").place


@pytest.mark.parametrize(
    "url",
    [
        "hooks.example/s3cret",
        "ftp://h/s3cret",
        "http://",
        "https://h:s3cret/",
        "https://h/#s3cret",
        "https://h/s 3cret",
    ],
)
def test_a_url_that_is_none_is_a_mistake_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(ConfigError, match=r"alerts\.webhook: expected a URL") as mistake:
        WebhookNotifier(url)

    assert "3cret" not in str(mistake.value)


# ------------------------------------------------------------------------------------------ faults


async def test_one_that_is_away_is_a_failure() -> None:
    with pytest.raises(NotifierError, match=r"no answer from 127\.0\.0\.1: ConnectError"):
        await WebhookNotifier(f"http://127.0.0.1:{free_port()}/x", allow_private=True).tell([ALERT])


async def test_one_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(NotifierError, match=r"no answer from 127\.0\.0\.1 within 0\.2 seconds"):
            await WebhookNotifier(url, allow_private=True).tell([ALERT])


async def test_of_an_answer_without_end_only_the_beginning_is_read() -> None:
    with (
        chat(Answer(500, b"x" * 5_000_000)) as there,
        pytest.raises(NotifierError, match="answered 500: xxx") as refused,
    ):
        await WebhookNotifier(there.url, allow_private=True).tell([ALERT])

    assert len(str(refused.value)) < 500


async def test_what_was_refused_is_told_again_and_then_only_once() -> None:
    clock, events = ManualClock(), list[Event]()
    store = MemoryStore(clock=clock)
    await store.collect([a_letter(letter_id="1", fingerprint="f", failed_at=clock.now())])
    with chat(Answer(503, b"later"), Answer(429, b"", {"Retry-After": "120"})) as there:
        notifier = WebhookNotifier(there.url, allow_private=True, repeat_every=timedelta(hours=4))
        alerts = Alerts(store, [notifier], clock=clock, sink=Bus(events.append))
        tries = []
        for wait in (timedelta(), EVERY, EVERY, timedelta(minutes=3), EVERY):
            clock.advance(wait)
            await alerts.look()
            tries.append(there.tries)
        posts = there.posts()
        clock.advance(timedelta(hours=4))
        await alerts.look()
        repeated = there.posts()

    assert tries == [1, 2, 2, 3, 3]  # the second answer asked for two minutes
    assert [event.why for event in events if isinstance(event, NotifierFailed)] == [
        "NotifierError: 127.0.0.1 answered 503: later",
        "NotifierError: 127.0.0.1 answered 429",
    ]
    assert len(posts) == len(repeated) == 1
