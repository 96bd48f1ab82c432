"""From a dead letter to somebody's call, through a service and an Alertmanager that are real, and back."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.clock import SystemClock
from redrive.core.alert import Alert
from redrive.notifiers.alertmanager import AlertmanagerNotifier
from tests.e2e.serving import Shop, die, until
from tests.servers.alertmanager import Alertmanager, Somebody


def test_somebody_is_called_when_an_incident_opens_when_its_last_letter_is_gone_and_when_it_relapses(
    tmp_path: Path, empty_redis: str, alertmanager: Alertmanager, caller: Somebody
) -> None:
    (tmp_path / "redrive.toml").write_text(
        f"""
        broker = "{empty_redis}"
        [alerts]
        alertmanager = "{alertmanager.url}"
        labels = {{ severity = "critical" }}
        [service]
        public_url = "https://desk.example/redrive/"
        """
    )
    shop = Shop(tmp_path)
    with shop.service("--queue", "orders") as api:
        die(empty_redis, "1")
        die(empty_redis, "2")
        call = caller.next_call()
        incident = call["labels"]["incident"]
        assert call["status"] == "firing"
        assert call["labels"]["alertname"] == "RedriveIncident"
        assert (call["labels"]["queue"], call["labels"]["severity"]) == ("orders", "critical")
        assert (
            call["generatorURL"] == call["annotations"]["link"] == f"https://desk.example/redrive/incidents/{incident}"
        )
        assert [alert["labels"]["incident"] for alert in alertmanager.firing()] == [incident]

        until(lambda: len(api.letters()) == 2, what="both letters are collected")
        for letter in api.letters():
            assert api.client.delete(f"/api/v1/dlq/messages/{letter['message_id']}").status_code < 300
        assert (caller.next_call()["status"], alertmanager.firing()) == ("resolved", [])

        die(empty_redis, "3")
        again = caller.next_call()
        assert (again["status"], again["labels"]) == ("firing", call["labels"])


def test_a_service_without_its_alertmanager_collects_counts_the_failure_and_tells_it_later(
    tmp_path: Path, empty_redis: str, alertmanager: Alertmanager, caller: Somebody
) -> None:
    alertmanager.kill()
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis, REDRIVE_ALERTS_ALERTMANAGER=alertmanager.url)
    with shop.service("--queue", "orders") as api:
        die(empty_redis, "1")
        failed = 'redrive_notifier_failures_total{notifier="alertmanager"}'
        until(lambda: failed in api.client.get("/metrics").text, what="the failure is counted")
        assert api.payloads() == ["1"]
        assert set(api.readiness().values()) == {"ok"}

        alertmanager.start()

        assert caller.next_call()["status"] == "firing"


def test_a_queue_in_which_a_rule_is_broken_is_called_about_until_it_is_not(
    tmp_path: Path, empty_redis: str, alertmanager: Alertmanager, caller: Somebody
) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis, REDRIVE_ALERTS_SIZE="2", REDRIVE_ALERTS_NEW_INCIDENT="false")
    for payload in "123":
        die(empty_redis, payload)
    with shop.service("--queue", "orders") as api:
        until(lambda: len(api.letters()) == 3, what="the letters are collected")
    shop.env["REDRIVE_ALERTS_ALERTMANAGER"] = alertmanager.url
    with shop.service("--queue", "orders") as api:
        call = caller.next_call()
        for letter in api.letters():
            assert api.client.delete(f"/api/v1/dlq/messages/{letter['message_id']}").status_code < 300
        ended = caller.next_call()

    assert (call["status"], call["labels"]) == ("firing", {"alertname": "RedriveSize", "queue": "orders"})
    assert call["annotations"]["summary"] == "orders: 3 letters are open, the limit is 2"
    assert (ended["status"], ended["labels"]) == ("resolved", call["labels"])


def test_an_alert_that_ended_while_no_service_ran_is_ended_by_the_next(
    tmp_path: Path, empty_redis: str, alertmanager: Alertmanager, caller: Somebody
) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis, REDRIVE_ALERTS_ALERTMANAGER=alertmanager.url)
    with shop.service("--queue", "orders"):
        die(empty_redis, "1")
        assert caller.next_call()["status"] == "firing"
    (letter,) = shop.facts("letters", "list")
    shop.run("letters", "discard", letter["letter_id"], "--yes")

    with shop.service("--queue", "orders"):
        assert caller.next_call()["status"] == "resolved"


@pytest.mark.parametrize("hostile", ["", "\x00", "\ud800", 'a"b\\\n', "x" * 100_000, "\x1b[31m"])
async def test_whatever_an_incident_is_called_it_is_taken(
    alertmanager: Alertmanager, caller: Somebody, hostile: str
) -> None:
    clock = SystemClock()
    notifier = AlertmanagerNotifier(alertmanager.url, clock=clock)
    at = clock.now() - timedelta(minutes=1)
    alert = Alert(
        incident_id=hostile, error_type=hostile, queues=(hostile,), open=1, total=1, began_at=at, last_at=at, link=""
    )

    await notifier.tell([alert])
    assert caller.next_call()["status"] == "firing"
    await notifier.tell([replace(alert, ended_at=clock.now())])
    assert caller.next_call()["status"] == "resolved"
