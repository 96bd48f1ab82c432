"""Commands at a service: who they are there, what they are shown, and whom they do not fall for."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redrive.cli.at_service.client import Client
from redrive.clock import SystemClock
from redrive.core.access import Role
from redrive.core.letter import payload_hash
from redrive.core.ports.store import Store
from redrive.triage import access
from redrive.triage.desk import Desk
from tests.servers.certificate import Certificate
from tests.servers.ports import free_port
from tests.unit.cli.conftest import Shop, a_letter
from tests.unit.cli.living import living_service
from tests.unit.cli.stranger import Asked, stranger

LETTER = f"{1:032x}"
SECRET = b'{"id": 1, "password": "hunter2", "email": "kim@example.org"}'
REAL = "rdt_" + "x" * 43


@pytest.fixture
def kept(shop: Shop) -> Shop:
    shop.collect(a_letter(1, payload=SECRET, payload_sha256=payload_hash(SECRET)), a_letter(2))
    return shop


@pytest.fixture
def service(kept: Shop, nobody: Path) -> Iterator[str]:
    with living_service(nobody, needs_token=True) as url:
        yield url


def token(shop: Shop, role: Role, **terms: str) -> str:
    async def issued(store: Store) -> str:
        return (await access.issue(Desk(store, SystemClock(), "sam"), f"a {role}", role=role, **terms)).secret

    return shop.ask_store(issued)


@pytest.fixture
def known(kept: Shop, monkeypatch: pytest.MonkeyPatch) -> Callable[[Role], None]:
    """Be somebody with this role."""
    return lambda role: monkeypatch.setenv("REDRIVE_TOKEN", token(kept, role))


def test_the_audit_knows_a_caller_by_the_name_of_the_token(
    kept: Shop, service: str, known: Callable[[Role], None]
) -> None:
    known(Role.OPERATOR)

    kept.run("letters", "note", LETTER, "seen", "--url", service)
    said = kept.run("audit", "--json", "--url", service)

    assert json.loads(said.lines[0])["who"] == "a operator"


def test_content_is_masked_until_it_is_revealed_which_goes_on_record(
    kept: Shop, service: str, known: Callable[[Role], None]
) -> None:
    known(Role.OPERATOR)

    masked = kept.run("letters", "show", LETTER, "--url", service)
    fact = json.loads(kept.run("letters", "show", LETTER, "--url", service, "--json").out)
    revealed = kept.run("letters", "show", LETTER, "--reveal", "--url", service)
    done = [json.loads(line) for line in kept.run("audit", "--letter", LETTER, "--json", "--url", service).lines]

    assert masked.lines[0].endswith("; masked, --reveal shows it whole")
    assert "payload, masked, sha256" in masked.out
    assert not any(text in masked.out for text in ("hunter2", "kim@example.org"))
    assert (fact["masked"], fact["payload_sha256"]) == (True, payload_hash(SECRET))
    assert '"password": "hunter2"' in revealed.out
    assert [(one["who"], one["verb"]) for one in done] == [("a operator", "letters.reveal")]


def test_a_payload_that_is_masked_is_compared_all_the_same(
    kept: Shop, service: str, known: Callable[[Role], None], nobody: Path
) -> None:
    known(Role.VIEWER)
    (nobody / "same").write_bytes(SECRET)

    assert kept.run("letters", "verify", LETTER, "same", "--url", service).status == 0


@pytest.mark.parametrize(
    ("role", "tokens", "needs"),
    [
        (Role.VIEWER, ("letters", "show", LETTER, "--reveal"), "reveal"),
        (Role.VIEWER, ("letters", "export", "--all"), "reveal"),
        (Role.VIEWER, ("letters", "try", LETTER, "first:app"), "reveal"),
        (Role.VIEWER, ("letters", "discard", LETTER), "discard"),
        (Role.VIEWER, ("letters", "redrive", "--all"), "redrive"),
        (Role.VIEWER, ("queues", "pause", "orders"), "pause"),
        (Role.OPERATOR, ("letters", "purge", "--older-than", "1d"), "purge"),
        (Role.OPERATOR, ("tokens", "list"), "tokens"),
        (Role.OPERATOR, ("tokens", "issue", "me", "--role", "admin"), "tokens"),
    ],
    ids=str,
)
def test_a_role_that_does_not_permit_it_is_told_which_one_does(
    kept: Shop, service: str, known: Callable[[Role], None], role: Role, tokens: tuple[str, ...], needs: str
) -> None:
    known(role)

    said = kept.run(*tokens, "--url", service)

    assert (said.status, said.out, len(said.err.splitlines())) == (1, "", 1)
    assert said.err.startswith(f"redrive: {needs} needs the role ")
    assert kept.states() == {"open": 2}


def test_an_import_needs_an_admin_also_if_it_is_refused_before_all_is_sent(
    kept: Shop, service: str, known: Callable[[Role], None], nobody: Path
) -> None:
    known(Role.OPERATOR)
    (nobody / "large").write_bytes(b"x" * 20_000_000)

    said = kept.run("letters", "import", "large", "--url", service)

    assert (said.status, said.err) == (1, "redrive: import needs the role admin; a operator is operator\n")


def test_without_a_token_or_with_one_that_is_unknown_or_expired_the_door_stays_shut(
    kept: Shop, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token(kept, Role.ADMIN)
    for secret in ("", REAL, token(kept, Role.ADMIN, expires_in="1ms")):
        monkeypatch.setenv("REDRIVE_TOKEN", secret)
        said = kept.run("letters", "list", "--url", service)
        assert said.status == 1
        assert said.err == f"redrive: {service} wants a token that is valid: REDRIVE_TOKEN, or --token-file\n"


def test_a_token_may_be_in_a_file_which_wins_over_the_variable(
    kept: Shop, service: str, monkeypatch: pytest.MonkeyPatch, nobody: Path
) -> None:
    (nobody / "token").write_text(f"{token(kept, Role.VIEWER)}\n")
    monkeypatch.setenv("REDRIVE_TOKEN", REAL)

    assert kept.run("letters", "list", "--url", service, "--token-file", "token").status == 0


@pytest.mark.parametrize("content", [b"-----BEGIN PRIVATE KEY-----\n", b"", b"\xff\xfe", REAL.encode() + b"\r\nX: y"])
def test_what_is_no_token_is_neither_sent_nor_shown(kept: Shop, nobody: Path, content: bytes) -> None:
    (nobody / "token").write_bytes(content)

    said = kept.run("letters", "list", "--url", "http://127.0.0.1:1", "--token-file", "token")

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert said.err.startswith("redrive: --token-file: token: expected a token")
    assert "PRIVATE" not in said.err


def test_a_file_for_a_token_that_is_not_there_is_told(kept: Shop) -> None:
    said = kept.run("letters", "list", "--url", "http://127.0.0.1:1", "--token-file", "absent")

    assert (said.status, said.err) == (2, "redrive: --token-file: absent cannot be read: No such file or directory\n")


def test_a_service_that_is_away_is_exit_status_3(kept: Shop) -> None:
    url = f"http://127.0.0.1:{free_port()}"

    said = kept.run("letters", "list", "--url", url)

    assert (said.status, said.err) == (3, f"redrive: no service answers at {url}: Connection refused\n")


def page(asked: Asked) -> None:
    asked.say(200, "text/html", b"<h1>welcome</h1>")


def other_api(asked: Asked) -> None:
    asked.say(404, "application/json", b'{"detail": "Not Found"}')


def other_list(asked: Asked) -> None:
    asked.say(200, "application/json", b'[{"id": 1}]')


def older(asked: Asked) -> None:
    asked.say(404, "application/problem+json", b'{"title": "Not Found", "status": 404, "detail": "Not Found"}')


def nonsense(asked: Asked) -> None:
    asked.wfile.write(b"220 mail.example.org ESMTP\r\n")


@pytest.mark.parametrize("answer", [page, other_api, other_list, older, nonsense])
def test_what_is_no_redrive_is_told_so(kept: Shop, answer: Callable[[Asked], None]) -> None:
    with stranger(answer) as url:
        said = kept.run("letters", "list", "--url", url)

    assert (said.status, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert said.err.startswith(f"redrive: --url: no Redrive service is at {url}: ")


def test_a_proxy_with_nobody_behind_it_is_a_service_that_is_away(kept: Shop) -> None:
    with stranger(lambda asked: asked.say(502, "text/html", b"<h1>bad gateway</h1>")) as url:
        said = kept.run("letters", "list", "--url", url)

    assert (said.status, said.err) == (3, f"redrive: no service answers at {url}: a proxy says 502\n")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_token_does_not_go_where_somebody_points_to(kept: Shop, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("REDRIVE_TOKEN", REAL)
    seen: list[str | None] = []
    with (
        stranger(lambda asked: seen.append(asked.headers["Authorization"])) as thief,
        stranger(lambda asked: asked.say(status, "text/html", b"", Location=f"{thief}/api/v1/letters")) as url,
    ):
        said = kept.run("letters", "list", "--url", url)

    assert (said.status, seen) == (2, [])
    assert f"points to {thief}" in said.err


def test_proxies_of_the_environment_are_not_asked(kept: Shop, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setenv("REDRIVE_TOKEN", token(kept, Role.VIEWER))
    with stranger(lambda asked: seen.append(asked.path)) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        said = kept.run("letters", "list", "--url", service)

    assert (said.status, seen) == (0, [])


def test_over_https_a_service_has_to_prove_who_it_is(kept: Shop, nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Certificate.make(nobody)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate.certificate, certificate.key)
    with stranger(lambda asked: asked.say(200, "application/json", b"[]"), tls=tls) as url:
        unknown = kept.run("letters", "list", "--url", url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
        trusted = kept.run("letters", "list", "--url", url)

    assert unknown.status == 2
    assert unknown.err.startswith(f"redrive: --url: {url} cannot prove who it is: ")
    assert (trusted.status, trusted.out) == (0, "no open letters\n")


def test_a_path_that_a_proxy_has_put_before_the_service_is_kept(kept: Shop) -> None:
    paths: list[str] = []

    def answer(asked: Asked) -> None:
        paths.append(asked.path.partition("?")[0])
        asked.say(200, "application/json", b"[]")

    with stranger(answer) as url:
        kept.run("letters", "list", "--url", f"{url}/redrive/")

    assert paths == ["/redrive/api/v1/letters"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "http://",
        "http://sam:s3cret@host",
        "http://host?token=s3cret",
        "http://host:port",
        "http://h/ß",
        "http://[::1",
        "host:8800",
    ],
)
def test_an_address_that_is_none_is_told_without_its_password(kept: Shop, url: str) -> None:
    said = kept.run("letters", "list", "--url", url)

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert said.err.startswith("redrive: --url: expected ")
    assert "s3cret" not in said.err


def test_an_export_that_breaks_off_is_not_taken_for_a_whole_one(kept: Shop) -> None:
    def answer(asked: Asked) -> None:
        asked.protocol_version = "HTTP/1.1"
        asked.send_response(200)
        asked.send_header("Content-Type", "application/jsonl")
        asked.send_header("Transfer-Encoding", "chunked")
        asked.end_headers()
        asked.wfile.write(b"3\r\n{}\n\r\n")

    with stranger(answer) as url:
        said = kept.run("letters", "export", "--all", "--url", url)

    assert (said.status, said.out) == (3, "{}\n")
    assert said.err == f"redrive: no service answers at {url}: the answer broke off\n"


def test_who_asks_too_often_is_patient(kept: Shop, nobody: Path) -> None:
    kept.collect(*(a_letter(number) for number in range(3, 9)))
    with living_service(nobody, rate_limit=2.0) as url:
        said = kept.run("letters", "discard", *(f"{number:032x}" for number in range(1, 9)), "--url", url)

    assert (said.status, said.out) == (0, "discarded 8 letters\n")


@pytest.mark.parametrize("flag", ["--store", "--broker"])
def test_a_service_and_a_store_or_a_broker_are_too_much(kept: Shop, flag: str) -> None:
    said = kept.run("letters", "redrive", "--all", "--url", "http://127.0.0.1:1", flag, "sqlite:///x.db")

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert said.err.startswith("redrive: --url: ")


def test_a_flag_that_names_a_store_or_a_broker_wins_over_a_service_of_the_settings(
    kept: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRIVE_URL", "http://127.0.0.1:1")
    kept.subscribe("orders")

    assert kept.run("letters", "list").status == 3
    assert kept.run("letters", "list", "--store", "sqlite:///letters.db").status == 0
    assert kept.run("queues", "list", "--broker", kept.url).status == 0


def test_the_service_may_be_named_in_the_settings(kept: Shop, nobody: Path) -> None:
    with living_service(nobody) as url:
        (nobody / "redrive.toml").write_text(f'url = "{url}"\n')
        said = kept.run("letters", "note", LETTER, "seen")
        done = kept.run("audit", "--json", "--count", "1")

    assert (said.status, json.loads(done.out)["who"]) == (0, "local")


def test_a_broker_of_a_service_is_named_and_has_to_be_one(kept: Shop, nobody: Path) -> None:
    kept.subscribe("orders")
    with living_service(nobody) as url:
        paused = kept.run("queues", "pause", "orders", "--broker", "sqlite", "--url", url)
        unknown = kept.run("queues", "pause", "orders", "--broker", "redis", "--url", url)
        listed = kept.run("queues", "--broker", "redis", "--url", url)

    assert (paused.status, paused.out) == (0, "paused orders for shop: paused by local\n")
    assert (unknown.status, unknown.err) == (4, "redrive: no broker is named 'redis'; there are sqlite\n")
    assert listed.out == "no queues yet\n"


@pytest.mark.parametrize(
    "tokens",
    [
        ("letters", "list", "--json"),
        ("letters", "show", f"{2:032x}", "--json"),
        ("letters", "stats"),
        ("letters", "stats", "--json"),
        ("letters", "discard", "--all"),
        ("letters", "discard", "--all", "--json"),
        ("letters", "redrive", "--all"),
        ("letters", "redrive", "--all", "--json"),
        ("incidents", "list", "--json"),
        ("incidents", "show", "aaaa", "--json"),
        ("redrives", "list", "--json"),
        ("audit", "list"),
        ("audit", "list", "--json"),
        ("audit", "verify"),
        ("tokens", "list", "--json"),
        ("queues", "list", "--json"),
    ],
    ids=" ".join,
)
def test_a_service_is_shown_as_its_store_and_its_broker_are(shop: Shop, nobody: Path, tokens: tuple[str, ...]) -> None:
    shop.subscribe("orders")
    shop.collect(*(a_letter(number, fingerprint="aaaa", broker="sqlite") for number in (1, 2, 3)))
    shop.run("letters", "note", f"{2:032x}", "seen")
    shop.run("letters", "edit", f"{2:032x}", "--body", "changed")
    shop.run("incidents", "assign", "aaaa", "kim")
    shop.run("tokens", "issue", "ci", "--role", "viewer", "--expires", "90d")

    with living_service(nobody) as url:
        assert shop.run(*tokens, "--url", url) == shop.run(*tokens)


def test_a_mistake_that_the_service_finds_is_told_by_the_flag(kept: Shop, nobody: Path) -> None:
    with living_service(nobody) as url:
        said = kept.run("letters", "list", "--since", "1969-12-31", "--user", "", "--url", url)

    assert said.status == 2
    assert [line.split(":")[1].strip() for line in said.err.splitlines()] == ["--user", "--since"]


def test_a_long_list_is_read_page_by_page(kept: Shop, nobody: Path) -> None:
    kept.collect(*(a_letter(number) for number in range(3, 251)))
    with living_service(nobody) as url:
        first = kept.run("letters", "list", "--count", "230", "--json", "--url", url)
        cursor = first.err.split("--after ")[1].strip()
        rest = kept.run("letters", "list", "--count", "230", "--json", "--after", cursor, "--url", url)

    found = [json.loads(line)["letter_id"] for line in (*first.lines, *rest.lines)]
    assert found == [f"{number:032x}" for number in range(250, 0, -1)]


def test_collecting_is_the_services_own_work(shop: Shop) -> None:
    said = shop.run("collect", "--url", "http://127.0.0.1:1")

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert "a service collects by itself" in said.err


def test_one_that_stops_answering_is_left_at_once_when_interrupted(kept: Shop) -> None:
    reached, leave = threading.Event(), threading.Event()

    def silent(_: Asked) -> None:
        reached.set()
        leave.wait()

    async def interrupted(url: str) -> None:
        asking = asyncio.create_task(Client(url, token=None).get("/letters", read=list))
        await asyncio.to_thread(reached.wait)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with stranger(silent) as url:
        asyncio.run(interrupted(url))  # waits for its threads: one that still listened would keep it here
        leave.set()
