"""The service as people run it: a process of its own beside the workers, on servers that come and go."""

from pathlib import Path

from tests.e2e.serving import Shop, die, until
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer, ask


def test_the_simple_case_needs_no_file(tmp_path: Path, empty_redis: str) -> None:
    shop = Shop(tmp_path)
    with shop.service("--broker", empty_redis, "--queue", "orders", "--store", "sqlite:///letters.db") as api:
        assert api.get("/healthz") == {"status": "ok"}
        until(api.is_ready, what="ready")
        assert api.readiness() == {"store": "ok", "broker:redis": "ok"}

        die(empty_redis, '{"id": 1}')
        until(lambda: api.payloads(queue="orders") == ['{"id": 1}'], what="the letter is shown")

        assert ask(empty_redis, "XLEN", "orders:dlq") == 0


def test_a_redis_that_goes_away_is_told_and_waited_for(tmp_path: Path, fresh_redis: RedisServer) -> None:
    shop = Shop(tmp_path)
    with shop.service("--broker", fresh_redis.url, "--queue", "orders") as api:
        until(api.is_ready, what="ready")
        fresh_redis.kill()
        until(lambda: api.readiness()["broker:redis"] != "ok", what="told")
        assert api.readiness()["store"] == "ok"
        assert api.get("/healthz") == {"status": "ok"}
        assert api.letters() == []

        fresh_redis.start()
        die(fresh_redis.url, "later")
        until(api.is_ready, what="ready again")
        until(lambda: api.payloads() == ["later"], what="caught up")


def test_a_redis_that_is_away_at_the_start_is_waited_for(tmp_path: Path, fresh_redis: RedisServer) -> None:
    die(fresh_redis.url, "before")
    fresh_redis.stop()
    shop = Shop(tmp_path)
    with shop.service("--broker", fresh_redis.url, "--queue", "orders") as api:
        until(lambda: api.readiness()["broker:redis"] != "ok", what="told")

        fresh_redis.start()
        until(lambda: api.payloads() == ["before"], what="caught up")
        until(api.is_ready, what="ready")
        assert ask(fresh_redis.url, "XLEN", "orders:dlq") == 0, "collecting moves"


def test_a_store_that_cannot_be_opened_at_the_start_is_waited_for(tmp_path: Path, empty_redis: str) -> None:
    die(empty_redis, "before")
    shop = Shop(tmp_path)
    with shop.service("--broker", empty_redis, "--queue", "orders", "--store", "sqlite:///data/letters.db") as api:
        until(lambda: api.readiness()["store"] != "ok", what="told")
        assert ask(empty_redis, "XLEN", "orders:dlq") == 1
        assert api.client.get("/api/v1/dlq/messages").status_code == 503

        (tmp_path / "data").mkdir()
        until(api.is_ready, what="ready")
        until(lambda: api.client.get("/api/v1/dlq/messages").status_code == 200, what="open")
        until(lambda: api.payloads() == ["before"], what="caught up")


def test_a_postgres_that_goes_away_loses_nothing(tmp_path: Path, empty_redis: str) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis, REDRIVE_COLLECT_QUEUES="orders")
    with PostgresServer() as server, shop.service("--store", server.url) as api:
        until(api.is_ready, what="ready")
        die(empty_redis, "1")
        until(lambda: api.payloads() == ["1"], what="the first")

        server.kill()
        until(lambda: api.readiness()["store"] != "ok", what="told")
        die(empty_redis, "2")
        assert api.readiness()["broker:redis"] == "ok"
        assert api.client.get("/api/v1/dlq/messages").status_code == 503

        server.start()
        until(api.is_ready, what="ready again")
        until(lambda: api.payloads() == ["1", "2"], what="caught up")


def test_several_brokers_are_collected_and_a_worker_s_letter_goes_back_to_its_own(
    tmp_path: Path, empty_redis: str
) -> None:
    """A worker knows its broker only by the name of its kind."""
    shop = Shop(tmp_path, SHOP_BROKER=empty_redis)
    other = f"{empty_redis.rpartition('/')[0]}/8"
    ask(other, "FLUSHDB")
    (tmp_path / "redrive.toml").write_text(
        f'[brokers.cache]\nurl = "{empty_redis}"\nqueues = ["orders"]\n'
        f'[brokers.other]\nurl = "{other}"\nqueues = ["orders"]\n',
        "utf-8",
    )
    die(other, "elsewhere")
    with shop.service() as api, shop.process("worker", "first:app"):
        shop.run("publish", "orders", "mine", "--broker", "cache")
        until(lambda: api.payloads() == ["elsewhere", "mine"], what="both are collected")
        brokers = {letter["payload"]: letter["broker"] for letter in api.letters()}
        assert brokers == {"elsewhere": "other", "mine": "cache"}

        (tmp_path / "mended").touch()
        (mine,) = [letter for letter in api.letters() if letter["payload"] == "mine"]
        answer = api.client.post(f"/api/v1/dlq/messages/{mine['message_id']}/retry")
        assert (answer.status_code, answer.json()["status"]) == (202, "requeued")
        until(lambda: api.payloads(state="resolved") == ["mine"], what="resolved")


def test_processes_apart_do_the_same(tmp_path: Path, empty_redis: str) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis, REDRIVE_COLLECT_QUEUES="orders")
    with shop.service("--no-collect", "--no-redrive") as api:
        until(api.is_ready, what="ready")
        die(empty_redis, "1")
        with shop.process("collect"):
            until(lambda: api.payloads() == ["1"], what="collected by the other process")
        die(empty_redis, "2")
        assert ask(empty_redis, "XLEN", "orders:dlq") == 1, "without it nobody collects"
        assert api.payloads() == ["1"]


def test_off_loopback_it_does_not_start_before_somebody_has_a_token(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    said = shop.run("serve", "--host", "0.0.0.0", "--port", "0", status=2)  # noqa: S104 - it must not

    assert "redrive tokens issue" in said
    assert len(said.splitlines()) == 1


def test_a_token_that_is_issued_while_it_runs_closes_the_door(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with shop.service() as api:
        assert api.letters() == []

        (issued,) = shop.facts("tokens", "issue", "kim", "--role", "viewer")
        until(lambda: api.client.get("/api/v1/dlq/messages").status_code == 401, what="closed")

        bearer = {"Authorization": f"Bearer {issued['secret']}"}
        assert api.client.get("/api/v1/dlq/messages", headers=bearer).status_code == 200


def test_a_port_that_is_taken_is_told_in_a_line(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with shop.service() as api:
        port = str(api.client.base_url.port)

        said = shop.run("serve", "--port", port, "--store", "sqlite:///other.db", status=2)

        assert said.startswith(f"redrive: --port: cannot listen on 127.0.0.1 port {port}")
        assert len(said.splitlines()) == 1
