"""What must not leave the worker."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.errors import ConfigError
from redrive.core.privacy import _SECRET_TEXT, MASK, PrivacyFilter, _may_hide
from tests.unit.core.letters import json_values, texts

FILTER = PrivacyFilter()


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "user_password", "userPassword", "passwd", "db-pwd", "passphrase"),
        *("token", "accessToken", "ACCESS_TOKEN", "refresh-token", "idtoken", "x.auth.token"),
        *("authorization", "Proxy-Authorization", "auth", "bearer", "jwt"),
        *("api_key", "apiKey", "X-API-Key", "apikey", "private_key", "AWSSecretAccessKey", "signing-key"),
        *("secret", "client_secret", "clientsecret", "credentials", "set-cookie", "Cookie", "session"),
        *("card", "card_number", "creditCard", "cvv", "iban", "IBAN", "pin", "ssn", "dsn", "otp"),
    ],
)
def test_a_value_under_a_secret_name_is_masked_at_any_depth(name: str) -> None:
    value = {"order": [{"customer": ({name: {"inner": "hunter2"}},)}]}

    assert FILTER.mask(value) == {"order": [{"customer": [{name: MASK}]}]}


@pytest.mark.parametrize(
    "name",
    [
        *("user_id", "tenant_id", "trace_id", "task_type", "order", "secretary", "discard", "cardinality", "shipping"),
        *("max_tokens", "token_count", "author", "compass", "keyboard", "monkey", "key", "pinned", "panel"),
    ],
)
def test_an_innocent_name_is_left_alone(name: str) -> None:
    assert FILTER.mask({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GET /x Authorization: Bearer abc.def-123", f"GET /x Authorization: Bearer {MASK}"),
        ("authorization: bearer letters", f"authorization: bearer {MASK}"),
        ("basic dXNlcjpwYXNz", f"basic {MASK}"),
        ("got eyJhbGciOi.eyJzdWIiOiI.SflKxwRJSM now", f"got {MASK} now"),
        ("cannot reach postgres://shop:s3cret@db/x", "cannot reach postgres://shop:***@db/x"),
        ("login failed: password=hunter2, user=ann", f"login failed: password={MASK}, user=ann"),
        ('{"token": "abc def", "n": 1}', f'{{"token": {MASK}, "n": 1}}'),
        ("api-key: 'x y' was refused", f"api-key: {MASK} was refused"),
        ("key sk-abcdefghijklmnop1234 is invalid", f"key {MASK} is invalid"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- end", f"{MASK} end"),
        ("-----BEGIN PRIVATE KEY-----\nMII", MASK),
        ("basic auth failed: bearer token missing", "basic auth failed: bearer token missing"),
        ("the secretary took the password", "the secretary took the password"),
        ("order 7 of ann@example.org: 10 tokens", "order 7 of ann@example.org: 10 tokens"),
    ],
)
def test_a_secret_inside_text_is_masked(text: str, masked: str) -> None:
    assert FILTER.text(text) == masked
    assert FILTER.mask([text]) == [masked]


def test_names_and_patterns_can_be_added() -> None:
    chosen = PrivacyFilter(names=["birth_date"], patterns=[r"\d{3}-\d{4}", re.compile("ACME", re.IGNORECASE)])

    assert chosen.mask({"birthDate": "1.1.1970", "note": "call 555-1234 at Acme"}) == {
        "birthDate": MASK,
        "note": f"call {MASK} at {MASK}",
    }
    assert chosen.mask({"password": "x"}) == {"password": MASK}
    assert hash(chosen) == hash(PrivacyFilter(names=("birth_date",), patterns=chosen.patterns))


def test_every_mistake_in_the_settings_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        PrivacyFilter(names="password", patterns="x")
    assert len(caught.value.mistakes) == 2

    with pytest.raises(ConfigError) as caught:
        PrivacyFilter(patterns=["(", "[", "fine"])
    assert len(caught.value.mistakes) == 2


def test_cycles_depth_and_size_are_cut_short() -> None:
    cycle: dict[str, Any] = {"name": "x"}
    cycle["self"] = [cycle]
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]

    assert FILTER.mask(cycle) == {"name": "x", "self": ["(a cycle)"]}
    assert "(too deep)" in json.dumps(FILTER.mask(deep))
    assert len(FILTER.mask([*range(1000)])) == 101
    assert FILTER.mask({str(n): n for n in range(1000)})["…"] == "900 more"
    assert len(FILTER.mask("x" * 10**7)) < 2100


class Hostile(Mapping[str, Any]):
    def __getitem__(self, name: str) -> NoReturn:
        raise RuntimeError(name)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no names")

    def __len__(self) -> int:
        return 3


def boom(_: object) -> NoReturn:
    raise RuntimeError("boom")


Liar = type("Liar", (), {"__class__": property(boom), "__str__": boom})


@pytest.mark.parametrize("kind", [Hostile, Liar])
def test_what_cannot_be_read_is_said_to_be_unreadable(kind: type) -> None:
    assert FILTER.mask({"x": kind(), "y": 1}) == {"x": "(unreadable: RuntimeError)", "y": 1}


def test_strange_values_become_plain_ones() -> None:
    value = {
        1: b"bytes\xff",
        "at": datetime(2026, 3, 1, tzinfo=UTC),
        "set": {1},
        "nan": float("nan"),
        "huge": 10**5000,
        None: None,
    }

    assert FILTER.mask(value) == {
        "1": "bytes\\xff",
        "at": "2026-03-01 00:00:00+00:00",
        "set": [1],
        "nan": "nan",
        "huge": "(a number of 16610 bits)",
        "None": None,
    }


@given(json_values | st.binary() | st.dictionaries(st.binary() | st.integers(), texts))
def test_the_result_is_always_plain_json_and_stays_the_same_when_filtered_again(value: object) -> None:
    once = FILTER.mask(value)

    assert json.loads(json.dumps(once, allow_nan=False)) == once
    assert FILTER.mask(once) == once


# Pieces that secrets are made of, in more cases than two: the long s and the Kelvin sign match `s` and `k`.
pieces = st.sampled_from(
    [
        *("-----BEGIN ", "PRIVATE KEY-----", "Bearer", "BASIC", "bearer", "eyJ", "sk-", "pk_", "rk-", "ghp_", "gho_"),
        *(
            "xoxb-",
            "AKIA",
            "password",
            "PassWd",
            "pwd",
            "passphrase",
            "Secret",
            "pa\u017f\u017fword",
            "to\u212aen",
            "TOKEN",
        ),
        *("api-key", "API_KEY", "apikey", "access_key", "client-secret", "Authorization", "cookie"),
        *("=", ":", " ", ".", "-", "_", '"', "'", "a1B2c3D4e5F6g7H8i9", "ABCDEFGHIJKLMNOP", "x", "ü"),
    ]
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_no_secret_is_overlooked_by_the_first_look(text: str) -> None:
    assert _may_hide(text) or _SECRET_TEXT.search(text) is None
