from datetime import UTC, datetime, timedelta

import pytest

from redrive.core.access import Role, Token, is_secret, secret_hash

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
SECRET = "rdt_" + "aB3_-" * 8 + "xyz"


def a_token(**ends: datetime) -> Token:
    return Token(token_id="1", name="ci", role=Role.VIEWER, created_at=AT, created_by="ann", **ends)  # noqa: S106


def test_a_role_includes_itself_and_those_below() -> None:
    assert {(one, other) for one in Role for other in Role if one.includes(other)} == {
        (Role.VIEWER, Role.VIEWER),
        (Role.OPERATOR, Role.VIEWER),
        (Role.OPERATOR, Role.OPERATOR),
        (Role.ADMIN, Role.VIEWER),
        (Role.ADMIN, Role.OPERATOR),
        (Role.ADMIN, Role.ADMIN),
    }


def test_a_token_expires_at_the_very_instant() -> None:
    token = a_token(expires_at=AT + timedelta(days=1))

    assert [token.is_valid(AT + timedelta(days=1) + late) for late in (-MOMENT, 0 * MOMENT, MOMENT)] == [
        True,
        False,
        False,
    ]


def test_a_token_without_an_end_is_valid_until_it_is_revoked() -> None:
    assert a_token().is_valid(AT + timedelta(days=36500))
    assert not a_token(revoked_at=AT).is_valid(AT)
    assert not a_token(revoked_at=AT + timedelta(days=1)).is_valid(AT)


@pytest.mark.parametrize(
    "text",
    [
        *("", "rdt_", SECRET[:-1], SECRET + "a", SECRET + "\n", " " + SECRET, SECRET.upper(), SECRET[4:]),
        *(
            "rdt_" + "é" * 43,
            "rdt_" + "\x00" * 43,
            "rdt_" + "\ud800" * 43,
            "rdt_" + "\u0661" * 43,
            "rdt_" + "a" * 10_000_000,
        ),
    ],
)
def test_what_does_not_have_the_form_of_a_secret_is_none(text: str) -> None:
    assert not is_secret(text)


def test_a_secret_is_kept_as_its_hash() -> None:
    assert is_secret(SECRET)
    assert len(secret_hash(SECRET)) == 64
    assert SECRET not in secret_hash(SECRET)
