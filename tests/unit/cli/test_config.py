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


def test_settings_are_shown_as_json_too(shop: Shop) -> None:
    facts = [json.loads(line) for line in shop.run("config", "--json").lines]

    assert {"key": "store", "value": "sqlite:///letters.db", "origin": "default"} in facts


def test_mistakes_are_told_instead(shop: Shop) -> None:
    Path("redrive.toml").write_text("[service]\nprot = 1\n", "utf-8")

    said = shop.run("config", "show")

    assert (said.status, said.out) == (2, "")
    assert said.err == "redrive: redrive.toml: service.prot: unknown key; did you mean service.port?\n"
