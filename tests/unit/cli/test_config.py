import json
from pathlib import Path

from tests.unit.cli.conftest import Shop


def test_settings_are_shown_with_their_origin_and_without_passwords(shop: Shop) -> None:
    Path("redrive.toml").write_text('[service]\nport = 9000\n[[retention]]\nolder_than = "90d"\n', "utf-8")

    said = shop.run("config", "show", "--broker", "redis://shop:s3cret@cache")

    assert (said.status, said.err) == (0, "")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in said.lines[1:]}
    assert rows["broker"] == "redis://shop:***@cache --broker"
    assert rows["service.port"] == "9000 redrive.toml:2"
    assert rows["service.collect"] == "true default"
    assert rows["retention[1].older_than"] == "90d redrive.toml:4"


def test_values_are_shown_as_they_are_written(shop: Shop) -> None:
    Path("redrive.toml").write_text("[service]\nrate_limit = 2.5\nbody_limit = 1234567\n", "utf-8")
    written = {line.split()[0]: line.split()[1] for line in shop.run("config").lines[1:]}
    Path("redrive.toml").unlink()
    usual = {line.split()[0]: line.split()[1] for line in shop.run("config").lines[1:]}

    assert (written["service.rate_limit"], written["service.body_limit"]) == ("2.5", "1234567B")
    assert (usual["service.rate_limit"], usual["service.body_limit"]) == ("100", "8MB")
    assert (usual["collect.queues"], usual["collect.dlqs"]) == ("none", "none")


def test_settings_are_shown_as_json_too(shop: Shop) -> None:
    facts = [json.loads(line) for line in shop.run("config", "--json").lines]

    assert {"key": "store", "value": "sqlite:///letters.db", "origin": "default"} in facts


def test_mistakes_are_told_instead(shop: Shop) -> None:
    Path("redrive.toml").write_text("[service]\nprot = 1\n", "utf-8")

    said = shop.run("config", "show")

    assert (said.status, said.out) == (2, "")
    assert said.err == "redrive: redrive.toml: service.prot: unknown key; did you mean service.port?\n"
