"""The book of tokens."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redrive.core.access import Role, Token, secret_hash
from redrive.core.errors import LetterNotFound
from redrive.testing.conformance.store.bench import AT, Bench, Suite, an_act

LATER = AT + timedelta(hours=1)


def a_token(name: str = "ci", **changes: Any) -> Token:
    """A token that says everything but when it was revoked."""
    values: dict[str, Any] = {"role": Role.OPERATOR, "created_at": AT, "created_by": "ann", "expires_at": LATER}
    return Token(**({"token_id": f"t-{name}", "name": name} | values | changes))


def a_hash(name: str = "ci") -> str:
    """The hash of the secret of that token."""
    return secret_hash(f"rdt_{name}")


async def put(bench: Bench, *tokens: Token) -> None:
    """Keep tokens."""
    for token in tokens:
        await bench.store.put_token(token, sha256=a_hash(token.name), act=an_act("tokens.issue"))


class Tokens(Suite):
    """`put_token`, `token_by_hash`, `tokens` and `revoke_token`."""

    @pytest.mark.parametrize("role", [*Role])
    async def test_a_token_is_found_by_the_hash_of_its_secret(self, bench: Bench, role: Role) -> None:
        token = a_token(role=role, expires_at=LATER if role is Role.VIEWER else None)
        await put(bench, token, a_token("other"))
        found = await bench.store.token_by_hash(a_hash())

        assert found == token
        assert isinstance(found.role, Role)

    async def test_another_hash_finds_nothing(self, bench: Bench) -> None:
        await put(bench, a_token())
        hashed = a_hash()
        others = [a_hash("other"), hashed[:-1] + ("0" if hashed[-1] != "0" else "1"), hashed[:32], hashed.upper(), ""]

        assert [await bench.store.token_by_hash(one) for one in others] == [None] * len(others)

    async def test_every_token_is_listed_the_latest_first(self, bench: Bench) -> None:
        tokens = [a_token(name, created_at=AT + timedelta(minutes=minute)) for minute, name in enumerate("abc")]
        await put(bench, tokens[1], tokens[2], tokens[0])
        await bench.store.revoke_token("t-b", at=LATER, act=an_act("tokens.revoke"))

        assert [*await bench.store.tokens()] == [tokens[2], replace(tokens[1], revoked_at=LATER), tokens[0]]

    async def test_names_may_be_given_twice_and_hold_anything(self, bench: Bench) -> None:
        first, second = a_token(name := "ü\x00\ud800"), a_token(name, token_id="t-2")  # noqa: S106
        await bench.store.put_token(first, sha256=a_hash("1"), act=an_act("tokens.issue"))
        await bench.store.put_token(second, sha256=a_hash("2"), act=an_act("tokens.issue"))

        assert await bench.store.token_by_hash(a_hash("2")) == second
        assert len(await bench.store.tokens()) == 2

    async def test_a_revoked_token_is_seen_as_such_at_once_by_others(self, bench: Bench) -> None:
        await put(bench, a_token())
        elsewhere = await bench.under_test.reopen()
        assert await elsewhere.token_by_hash(a_hash()) == a_token()
        revoked = await bench.store.revoke_token("t-ci", at=LATER, act=an_act("tokens.revoke"))

        assert revoked == a_token(revoked_at=LATER)
        assert await elsewhere.token_by_hash(a_hash()) == revoked

    async def test_revoking_twice_keeps_the_first_instant(self, bench: Bench) -> None:
        await put(bench, a_token())
        first = await bench.store.revoke_token("t-ci", at=LATER, act=an_act("tokens.revoke"))
        second = await bench.store.revoke_token("t-ci", at=LATER + timedelta(days=1), act=an_act("tokens.revoke"))

        assert first == second == await bench.store.token_by_hash(a_hash())
        assert len((await bench.store.records()).rows) == 2

    async def test_revoking_at_the_same_time_is_recorded_once(self, bench: Bench) -> None:
        await put(bench, a_token())
        elsewhere = await bench.under_test.reopen()
        revoked = await asyncio.gather(
            *(
                store.revoke_token("t-ci", at=LATER + timedelta(seconds=number), act=an_act("tokens.revoke"))
                for number, store in enumerate([bench.store, elsewhere] * 4)
            )
        )

        assert len({token.revoked_at for token in revoked}) == 1
        assert [one.verb for one in (await bench.store.records()).rows] == ["tokens.revoke", "tokens.issue"]

    async def test_a_token_that_is_not_there_cannot_be_revoked(self, bench: Bench) -> None:
        with pytest.raises(LetterNotFound, match="t-nothing"):
            await bench.store.revoke_token("t-nothing", at=LATER, act=an_act("tokens.revoke"))

        assert (await bench.store.records()).rows == []

    async def test_a_token_put_twice_stays_as_it_is(self, bench: Bench) -> None:
        await put(bench, a_token())
        revoked = await bench.store.revoke_token("t-ci", at=LATER, act=an_act("tokens.revoke"))
        await put(bench, a_token())

        assert [*await bench.store.tokens()] == [revoked]
        assert len((await bench.store.records()).rows) == 2

    async def test_every_change_is_audited_without_the_hash(self, bench: Bench) -> None:
        await put(bench, a_token(), a_token("lasting", expires_at=None, role=Role.ADMIN))
        await bench.store.revoke_token("t-ci", at=LATER, act=an_act("tokens.revoke", detail={"via": "cli"}))
        records = [*reversed((await bench.store.records()).rows)]
        about = {"token": "t-ci", "name": "ci", "role": "operator", "expires_at": LATER.isoformat()}

        assert [(one.verb, one.who, one.letter_id) for one in records] == [
            ("tokens.issue", "ann", ""),
            ("tokens.issue", "ann", ""),
            ("tokens.revoke", "ann", ""),
        ]
        assert [one.detail for one in records] == [
            about,
            {"token": "t-lasting", "name": "lasting", "role": "admin"},
            {"via": "cli", **about},
        ]
        assert not any(a_hash() in repr(one) for one in records)
        assert await bench.store.verify() is None
