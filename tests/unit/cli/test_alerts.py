import json

import pytest

from tests.servers.ports import free_port
from tests.unit.cli.conftest import Shop


def test_where_nobody_is_told_the_answer_is_no_and_says_what_is_missing(shop: Shop) -> None:
    said = shop.run("alerts", "test")

    assert (said.status, said.out) == (
        1,
        "nobody is told: [alerts] names neither a webhook nor an Alertmanager\n",
    )


def test_who_did_not_take_it_is_said_and_why_without_the_secret(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_ALERTS_WEBHOOK", "http://127.0.0.1:1/s3cret")
    monkeypatch.setenv("REDRIVE_ALERTS_ALERTMANAGER", f"http://127.0.0.1:{free_port()}")
    said = shop.run("alerts", "test", "--json")
    facts = [json.loads(line) for line in said.lines]

    assert said.status == 1
    assert [(one["notifier"], one["taken"]) for one in facts] == [("alertmanager", False), ("webhook", False)]
    assert "no answer from 127.0.0.1" in facts[0]["why"]
    assert "alerts.allow_private" in facts[1]["why"]
    assert "s3cret" not in said.out + said.err
