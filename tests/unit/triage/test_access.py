import logging
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.access import Role, Token, is_secret
from redrive.core.errors import ConfigError, LetterNotFound, NotAllowed
from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from redrive.triage import access, audit
from redrive.triage.access import LOCAL, RIGHTS, Caller
from redrive.triage.desk import Desk
from tests.unit.core.letters import texts
from tests.unit.triage.bench import Bench

# Role by permission, as people were promised it. On purpose not made from the table it is compared with.
PROMISED = """
            viewer  operator  admin
read        yes     yes       yes
redrive     -       yes       yes
edit        -       yes       yes
discard     -       yes       yes
note        -       yes       yes
assign      -       yes       yes
mute        -       yes       yes
resolve     -       yes       yes
outcome     -       yes       yes
pause       -       yes       yes
reveal      -       yes       yes
purge       -       -         yes
import      -       -         yes
tokens      -       -         yes
retention   -       -         yes
notifiers   -       -         yes
decrypt     -       -         yes
"""
DOCS = Path(__file__).parents[3] / "docs" / "access.md"


def rows(text: str) -> dict[str, dict[str, bool]]:
    roles, *lines = (line.split() for line in text.strip().splitlines())
    return {name: dict(zip(roles, (one == "yes" for one in marks), strict=True)) for name, *marks in lines}


def test_the_table_of_rights_is_what_was_promised() -> None:
    granted = {name: {role.value: Caller("x", role).may(name) for role in Role} for name in RIGHTS}

    assert granted == rows(PROMISED)


def test_the_page_on_access_has_the_same_table() -> None:
    lines = [line.replace("`", "").strip("|") for line in DOCS.read_text("utf-8").splitlines() if line.startswith("|")]
    start = next(place for place, line in enumerate(lines) if "viewer" in line)
    documented = [line.split("|") for line in lines[start + 2 : start + 2 + len(RIGHTS)]]
    table = {cells[0].strip(): [cell.strip() == "yes" for cell in cells[1:4]] for cells in documented}

    assert table == {name: [*marks.values()] for name, marks in rows(PROMISED).items()}


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        RIGHTS["purge"] = Role.VIEWER  # type: ignore[index]


def test_a_caller_is_told_which_role_is_missing() -> None:
    caller = Caller("kim", Role.OPERATOR)
    caller.demand("redrive")

    with pytest.raises(NotAllowed, match="purge needs the role admin; kim is operator"):
        caller.demand("purge")


def test_a_permission_that_is_not_in_the_table_is_given_to_nobody() -> None:
    with pytest.raises(KeyError):
        LOCAL.may("everything")


async def test_whoever_has_the_secret_is_recognised() -> None:
    bench = Bench()
    issued = await access.issue(bench.desk, "kim", role=Role.OPERATOR)
    other = await access.issue(bench.desk, "bot", role=Role.VIEWER)

    assert await access.recognise(bench.store, issued.secret, bench.clock.now()) == Caller("kim", Role.OPERATOR)
    assert await access.recognise(bench.store, other.secret, bench.clock.now()) == Caller("bot", Role.VIEWER)
    assert {token.name for token in await access.tokens(bench.desk)} == {"bot", "kim"}
    assert (issued.token.created_by, issued.token.created_at) == ("sam", bench.clock.now())


async def test_a_token_opens_nothing_from_its_expiry_on() -> None:
    bench = Bench()
    issued = await access.issue(bench.desk, "kim", role=Role.ADMIN, expires_in="90d")
    last = bench.clock.now() + timedelta(days=90) - timedelta(microseconds=1)

    assert await access.recognise(bench.store, issued.secret, last) is not None
    assert await access.recognise(bench.store, issued.secret, last + timedelta(microseconds=1)) is None


async def test_a_revoked_token_opens_nothing_at_once() -> None:
    bench = Bench()
    issued = await access.issue(bench.desk, "kim", role=Role.ADMIN)
    first = await access.revoke(bench.desk, issued.token.token_id)
    bench.clock.advance("1h")
    again = await access.revoke(bench.desk, issued.token.token_id)

    assert await access.recognise(bench.store, issued.secret, issued.token.created_at) is None
    assert again == first


async def test_a_token_that_is_not_there_cannot_be_revoked() -> None:
    with pytest.raises(LetterNotFound):
        await access.revoke(Bench().desk, "nothing")


async def test_a_token_opens_until_it_expires_or_is_revoked_and_the_lock_stays() -> None:
    bench = Bench()
    before = await access.any_valid(bench.store, bench.clock.now())
    assert not await access.any_issued(bench.store)
    issued = await access.issue(bench.desk, "kim", role=Role.VIEWER, expires_in="1h")
    issued_now = await access.any_valid(bench.store, bench.clock.now())
    expired = await access.any_valid(bench.store, bench.clock.now() + timedelta(hours=1))
    await access.revoke(bench.desk, issued.token.token_id)

    assert (before, issued_now, expired) == (False, True, False)
    assert not await access.any_valid(bench.store, bench.clock.now())
    assert await access.any_issued(bench.store)


class Untouchable:
    """A book in which nobody may look."""

    async def token_by_hash(self, sha256: str) -> Token | None:
        raise AssertionError(f"looked for {sha256}")

    async def put_token(self, *_: object, **__: object) -> None:
        raise AssertionError

    async def tokens(self) -> Sequence[Token]:
        raise AssertionError

    async def revoke_token(self, *_: object, **__: object) -> Token:
        raise AssertionError


@pytest.mark.parametrize(
    "secret",
    [
        *(
            "",
            "secret",
            "rdt_",
            "rdt_" + "a" * 42,
            "rdt_" + "a" * 44,
            "Bearer rdt_" + "a" * 43,
            "rdt_" + "a" * 43 + "\n",
        ),
        *("rdt_" + "ä" * 43, "rdt_" + "\udcff" * 43, "rdt_" + "\x00" * 43, "a" * 10_000_000, "' OR 1=1 --"),
    ],
)
async def test_what_cannot_be_a_secret_is_refused_without_a_look_into_the_store(secret: str) -> None:
    assert await access.recognise(Untouchable(), secret, ManualClock().now()) is None


@given(secret=texts | st.from_regex(r"rdt_[A-Za-z0-9_-]{43}", fullmatch=True))
async def test_an_unknown_secret_is_nobodys(secret: str) -> None:
    bench = Bench()
    await access.issue(bench.desk, "kim", role=Role.ADMIN)

    assert await access.recognise(bench.store, secret, bench.clock.now()) is None


async def test_every_mistake_in_a_token_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        await access.issue(Bench().desk, "a\nb", role=Role.VIEWER, expires_in="soon")

    assert [mistake.split(":")[0] for mistake in told.value.mistakes] == ["name", "expires"]


@pytest.mark.parametrize("name", ["", " ", "a" * 65, "a\x00b", "a\u202eb", " a", "a ", "<b>", "local", "\ud800"])
async def test_a_name_that_would_mislead_a_reader_of_the_audit_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        await access.issue(Bench().desk, name, role=Role.VIEWER)


@pytest.mark.parametrize("name", ["a", "Kim", "kim@example.com", "Jörg Müller", "ci-deploy.2", "a" * 64])
async def test_names_of_people_and_machines_are_taken(name: str) -> None:
    assert (await access.issue(Bench().desk, name, role=Role.VIEWER)).token.name == name


@pytest.mark.parametrize("expires_in", [0, "0s", timedelta(0), -1, "11000d", "90 days"])
async def test_an_end_that_is_none_is_refused(expires_in: timedelta | float | str) -> None:
    with pytest.raises(ConfigError, match="expires"):
        await access.issue(Bench().desk, "kim", role=Role.VIEWER, expires_in=expires_in)


async def test_no_two_secrets_are_alike_and_all_have_the_form() -> None:
    bench = Bench()
    issued = [await access.issue(bench.desk, "kim", role=Role.VIEWER) for _ in range(50)]

    assert len({one.secret for one in issued}) == len({one.token.token_id for one in issued}) == 50
    assert all(is_secret(one.secret) for one in issued)


def content_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_secret_is_in_no_file_log_repr_or_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clock = ManualClock()
    store = SqlStore(tmp_path / "letters.db", clock=clock)
    desk = Desk(store, clock, "sam")
    try:
        issued = await access.issue(desk, "kim", role=Role.ADMIN, expires_in="90d")
        assert await access.recognise(store, issued.secret, clock.now())
        await access.revoke(desk, issued.token.token_id)
        assert await access.recognise(store, issued.secret, clock.now()) is None
        said = [repr(issued), str(issued), repr(await access.tokens(desk)), repr(await audit.find(desk)), caplog.text]
        kept = content_of(tmp_path)
    finally:
        await store.aclose()

    secret = issued.secret.removeprefix("rdt_")
    assert b"kim" in kept
    assert secret.encode() not in kept
    assert not any(secret in text for text in said)
