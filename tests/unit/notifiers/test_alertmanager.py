"""What an Alertmanager is told, where there is one and where there is none."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, Self

import pytest

from redrive.core.alert import Alert, Rule
from redrive.core.errors import ConfigError, NotifierError
from redrive.notifiers.alertmanager import AlertmanagerNotifier
from redrive.testing import ManualClock
from tests.servers.ports import free_port

AT = datetime(2029, 12, 31, tzinfo=UTC)
ALERT = Alert(
    incident_id="f1", error_type="KeyError", queues=("orders",), open=3, total=5, began_at=AT, last_at=AT, link="x://y"
)


class Answering:
    """A server that answers every call alike, and keeps what it was told."""

    def __init__(self, status: int) -> None:
        told = self.told = list[tuple[str, Mapping[str, str], list[dict[str, Any]]]]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(b"so \x1b[31m it is")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


async def test_an_alert_that_fires_goes_on_for_five_minutes_and_one_that_ended_has_ended() -> None:
    with Answering(200) as server:
        notifier = AlertmanagerNotifier(
            f"http://ann:s%40cret@127.0.0.1:{server.port}/am/", labels={"severity": "critical"}, clock=ManualClock()
        )
        await notifier.tell([ALERT, replace(ALERT, open=0, ended_at=AT)])

    ((path, headers, (firing, ended)),) = server.told
    assert path == "/am/api/v2/alerts"
    assert headers["Authorization"] == "Basic YW5uOnNAY3JldA=="
    assert firing["labels"] == ended["labels"]
    assert firing["labels"] == {
        "alertname": "RedriveIncident",
        "severity": "critical",
        "incident": "f1",
        "error_type": "KeyError",
        "queue": "orders",
    }
    assert (firing["startsAt"], firing["endsAt"]) == ("2029-12-31T00:00:00+00:00", "2030-01-01T00:05:00+00:00")
    assert ended["endsAt"] == "2029-12-31T00:00:00+00:00"
    assert firing["generatorURL"] == firing["annotations"]["link"] == "x://y"
    assert firing["annotations"]["summary"] == "KeyError in orders: 3 open letters"


async def test_each_rule_has_its_name_and_what_it_found_is_described() -> None:
    rules = [Rule.RELAPSE, Rule.GROWTH, Rule.THRESHOLD, Rule.SIZE, Rule.AGE]
    growth = Alert(rule=Rule.GROWTH, queues=("orders",), open=12, said="orders: 12 died", began_at=AT, last_at=AT)
    with Answering(200) as server:
        notifier = AlertmanagerNotifier(f"http://127.0.0.1:{server.port}", clock=ManualClock())
        await notifier.tell([replace(ALERT, rule=rules[0]), *(replace(growth, rule=rule) for rule in rules[1:])])

    ((_, _, told),) = server.told
    names = [one["labels"]["alertname"] for one in told]
    assert names == ["RedriveIncident", "RedriveGrowth", "RedriveThreshold", "RedriveSize", "RedriveAge"]
    assert told[1]["labels"] == {"alertname": "RedriveGrowth", "queue": "orders"}
    assert told[1]["annotations"]["summary"] == told[1]["annotations"]["description"] == "orders: 12 died"
    assert [one["annotations"]["rule"] for one in told] == [rule.value for rule in rules]


def test_its_place_has_no_password() -> None:
    assert AlertmanagerNotifier("http://ann:s3cret@am:9093", clock=ManualClock()).place == "http://ann:***@am:9093"


@pytest.mark.parametrize("status", [301, 400, 401, 500])
async def test_whatever_is_no_yes_is_a_failure_that_says_what_was_answered(status: int) -> None:
    with Answering(status) as server:
        notifier = AlertmanagerNotifier(f"http://127.0.0.1:{server.port}", clock=ManualClock())
        with pytest.raises(NotifierError, match=rf"answered {status} .*so \\x1b\[31m it is"):
            await notifier.tell([ALERT])


async def test_one_that_is_away_is_a_failure_too() -> None:
    notifier = AlertmanagerNotifier(f"http://127.0.0.1:{free_port()}", clock=ManualClock())

    with pytest.raises(NotifierError, match="no answer"):
        await notifier.tell([ALERT])


@pytest.mark.parametrize(
    "url", ["alertmanager:9093", "ftp://host", "http://", "http://host?a=1", "http://host#a", "http://host:port"]
)
def test_a_url_that_is_none_is_a_mistake(url: str) -> None:
    with pytest.raises(ConfigError, match=r"alerts\.alertmanager: expected a URL"):
        AlertmanagerNotifier(url, clock=ManualClock())
