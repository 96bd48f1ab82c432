import json
from datetime import UTC, datetime, timedelta

import pytest

from redrive.core.access import Role
from redrive.triage.access import Caller, recognise
from tests.unit.cli.conftest import Shop


@pytest.fixture
def shop(either: Shop) -> Shop:
    return either


def recognised(shop: Shop, secret: str, *, at: datetime | None = None) -> Caller | None:
    return shop.ask_store(lambda store: recognise(store, secret, at or datetime.now(UTC)))


def test_an_issued_token_is_recognised_by_its_secret_alone_on_stdout(shop: Shop) -> None:
    said = shop.run("tokens", "issue", "ci", "--role", "operator")

    assert said.status == 0
    assert len(said.lines) == 1
    assert recognised(shop, said.lines[0]) == Caller("ci", Role.OPERATOR)
    assert "ci is operator; this secret is not shown again" in said.err
    assert said.lines[0] not in said.err


def test_a_token_ends_when_it_was_said_to(shop: Shop) -> None:
    fact = json.loads(shop.run("tokens", "issue", "ci", "--role", "viewer", "--expires", "90d", "--json").out)
    expires_at = datetime.fromisoformat(fact["expires_at"])

    assert expires_at - datetime.fromisoformat(fact["created_at"]) == timedelta(days=90)
    assert recognised(shop, fact["secret"], at=expires_at - timedelta(seconds=1)) == Caller("ci", Role.VIEWER)
    assert recognised(shop, fact["secret"], at=expires_at) is None


def test_the_list_shows_every_token_and_no_secret(shop: Shop) -> None:
    secrets = [shop.run("tokens", "issue", name, "--role", "admin").lines[0] for name in ("ann", "bob")]
    shop.run("tokens", "issue", "old", "--role", "viewer", "--expires", "1ms")
    listed = {fact["name"]: fact for fact in map(json.loads, shop.run("tokens", "--json").lines)}
    shop.run("tokens", "revoke", listed["ann"]["token_id"])
    said = shop.run("tokens", "list")

    assert said.lines[0].split() == ["token", "name", "role", "state", "expires", "issued", "by"]
    states = {line.split()[1]: line.split()[3] for line in said.lines[1:]}
    assert states == {"ann": "revoked", "bob": "valid", "old": "expired"}
    assert not any(secret in text for secret in secrets for text in (said.out, json.dumps(listed)))


def test_a_revoked_token_opens_nothing_and_stays_revoked_since_the_first_time(shop: Shop) -> None:
    fact = json.loads(shop.run("tokens", "issue", "ci", "--role", "admin", "--json").out)
    first, again = (shop.run("tokens", "revoke", fact["token_id"], "--json") for _ in range(2))

    assert recognised(shop, fact["secret"]) is None
    assert json.loads(first.out) == json.loads(again.out)
    assert json.loads(first.out)["state"] == "revoked"


def test_a_token_that_is_not_there_is_told(shop: Shop) -> None:
    shop.states()
    said = shop.run("tokens", "revoke", "nothing")

    assert (said.status, said.err) == (4, "redrive: no token 'nothing' is in the store\n")


def test_every_mistake_is_told_on_its_line(shop: Shop) -> None:
    said = shop.run("tokens", "issue", "a\nb", "--role", "viewer", "--expires", "soon")

    assert (said.status, said.out) == (2, "")
    assert [line.split()[1] for line in said.err.splitlines()] == ["name:", "expires:"]


def test_a_role_has_to_be_named_and_to_be_one(shop: Shop) -> None:
    for flags in ((), ("--role", "boss")):
        said = shop.run("tokens", "issue", "ci", *flags)
        assert (said.status, said.out, len(said.err.splitlines())) == (2, "", 1)
        assert all(role in said.err for role in ("viewer", "operator", "admin"))


def test_an_empty_list_says_so(shop: Shop) -> None:
    shop.states()

    assert shop.run("tokens").out == "no token was issued yet\n"


def test_an_absent_store_is_not_made_by_looking(at_store: Shop) -> None:
    assert at_store.run("tokens").status == 4
    assert not at_store.store_file.exists()


def test_what_was_done_with_tokens_is_in_the_audit(shop: Shop) -> None:
    fact = json.loads(shop.run("tokens", "issue", "ci", "--role", "admin", "--json").out)
    shop.run("tokens", "revoke", fact["token_id"])
    said = shop.run("audit", "--json")

    assert [json.loads(line)["verb"] for line in said.lines] == ["tokens.revoke", "tokens.issue"]
    assert fact["secret"] not in said.out
