"""The command line at a service of its own: the whole way back, and a person who no longer looks on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.core.wire import to_json
from tests.e2e.serving import Api, Shop, die
from tests.servers.redis import ask
from tests.unit.cli.conftest import a_letter


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path, SHOP_BROKER="sqlite:///redrive.db")
    letters = [a_letter(number, broker="sqlite", payload=b'{"id": %d}' % number) for number in range(1, 4)]
    (tmp_path / "letters.jsonl").write_bytes(b"".join(to_json(letter) + b"\n" for letter in letters))
    return made


def url_of(api: Api) -> str:
    return str(api.client.base_url).rstrip("/")


def test_letters_are_brought_edited_and_sent_back_through_the_service(shop: Shop) -> None:
    (shop.folder / "mended").touch()
    with shop.process("worker", "first:app", "--no-collect"), shop.service() as api:
        shop.env["REDRIVE_URL"] = url_of(api)
        imported = shop.run("letters", "import", "letters.jsonl")
        first = shop.facts("letters", "list")[-1]["letter_id"]
        edited = shop.run("letters", "edit", first, "--body", "mended by hand")
        said = shop.run("letters", "redrive", "--queue", "orders", "--canary", "1", "--yes")
        shown = shop.facts("letters", "show", first)[0]

    assert imported == "imported 3 new, 0 reopened, 0 known already\n"
    assert edited.startswith(f"edit 1 of {first} is kept")
    assert "3 resolved, 0 unconfirmed" in said.splitlines()[-1]
    assert (shown["state"], shown["outcomes"][0]["succeeded"]) == ("resolved", True)


def test_who_no_longer_looks_on_does_not_stop_the_redrive(shop: Shop) -> None:
    with shop.service() as api:
        shop.env["REDRIVE_URL"] = url_of(api)
        shop.run("letters", "import", "letters.jsonl")
        command = (sys.executable, "-m", "redrive.cli", "letters", "redrive", "--all", "--yes")
        looking = subprocess.Popen(command, cwd=shop.folder, env=shop.env, stderr=subprocess.PIPE, text=True)
        assert looking.stderr is not None
        with looking.stderr:
            assert looking.stderr.readline() == "redrive: waiting: no consumer is alive on this queue\n"
            looking.send_signal(signal.SIGINT)
            said = looking.stderr.read()
        status = looking.wait()
        (redrive,) = shop.facts("redrives")

    assert status == 130
    assert "the service carries it out all the same" in said
    assert f"redrive redrives watch {redrive['redrive_id']}" in said
    assert (redrive["state"], redrive["progress"]) == ("running", [{"sent": 3}])


def test_a_queue_that_only_others_use_or_that_is_not_there_yet_is_no_trouble(tmp_path: Path, empty_redis: str) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis)
    die(empty_redis, "1")
    ask(empty_redis, "XADD", "mails", "*", "payload", "1")
    ask(empty_redis, "XGROUP", "CREATE", "mails", "theirs", "0")

    with shop.service("--queue", "orders", "--queue", "mails", "--no-collect") as service:
        rows = shop.facts("queues", "--url", str(service.client.base_url))

    assert [(row["queue"], row.get("waiting"), row.get("dead")) for row in rows] == [
        ("mails", None, None),
        ("orders", 0, 1),
    ]
