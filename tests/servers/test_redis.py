import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import redis
import redis.asyncio

from tests.servers.certificate import Certificate
from tests.servers.frozen_time import FrozenClock
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer, ask
from tests.servers.redis_cluster import RedisCluster
from tests.servers.redis_sentinel import WatchedRedis
from tests.servers.server import PATIENCE, StartFailed, until


def test_a_server_is_ready_when_it_has_started(redis_server: RedisServer) -> None:
    assert redis_server.ask("PING") == "PONG"


def test_what_was_acknowledged_outlives_a_killed_server(fresh_redis: RedisServer) -> None:
    fresh_redis.ask("SET", "kept", "yes")
    first_pid = fresh_redis.pid
    fresh_redis.kill()
    with pytest.raises(redis.ConnectionError):
        fresh_redis.ask("PING")
    fresh_redis.start()

    assert fresh_redis.pid != first_pid
    assert fresh_redis.ask("GET", "kept") == "yes"


def test_a_server_comes_back_at_the_same_place(fresh_redis: RedisServer) -> None:
    before = fresh_redis.url
    fresh_redis.restart()

    assert fresh_redis.url == before
    assert fresh_redis.ask("PING") == "PONG"


def test_a_paused_server_answers_when_it_is_resumed(fresh_redis: RedisServer) -> None:
    with socket.create_connection(("127.0.0.1", fresh_redis.port)) as connection:
        fresh_redis.pause()
        connection.sendall(b"PING\r\n")
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(100)
        fresh_redis.resume()
        connection.settimeout(PATIENCE)

        assert connection.recv(100) == b"+PONG\r\n"


def test_a_paused_server_can_be_stopped(fresh_redis: RedisServer) -> None:
    fresh_redis.pause()
    fresh_redis.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", fresh_redis.port))


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="no-such-setting"):
        RedisServer(tmp_path, {"no-such-setting": "1"}).start()


def test_somebody_elses_server_is_not_taken_for_ours(fresh_redis: RedisServer, tmp_path: Path) -> None:
    late = RedisServer(tmp_path / "late", {"port": f"{fresh_redis.port}"})
    late.port = fresh_redis.port

    with pytest.raises(StartFailed, match="Address already in use"):
        late.start()


def test_a_password_and_a_socket_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    with RedisServer(tmp_path / "redis", {"requirepass": "secret", "unixsocket": f"{path}"}) as server:
        with pytest.raises(redis.AuthenticationError):
            ask(f"redis://127.0.0.1:{server.port}", "PING")

        assert server.ask("PING") == "PONG"
        assert ask(f"unix://:secret@{path}", "PING") == "PONG"


def test_a_server_with_a_certificate_is_reached_by_tls_only(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", certificate=Certificate.make(tmp_path)) as server:
        assert server.url.startswith("rediss://")
        assert server.ask("PING") == "PONG"
        with pytest.raises(redis.RedisError):
            ask(f"redis://127.0.0.1:{server.port}", "PING")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of the death of its parent")
def test_a_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import pathlib, signal, sys\n"
        "from tests.servers.redis import RedisServer\n"
        "server = RedisServer(pathlib.Path(sys.argv[1]) / 'redis')\n"
        "server.start()\n"
        "print(server.url, flush=True)\n"
        "signal.pause()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as starter:
        assert starter.stdout is not None
        url = starter.stdout.readline().strip()
        answer = ask(url, "PING")
        os.kill(starter.pid, signal.SIGKILL)

    assert answer == "PONG"
    until(lambda: not _answers(url), what="the server gone")


async def test_time_on_a_frozen_server_passes_only_by_its_clock(tmp_path: Path) -> None:
    clock = FrozenClock(tmp_path)
    with RedisServer(tmp_path / "redis", clock=clock) as server:
        server.ask("XADD", "orders", "*", "payload", "1")
        server.ask("XGROUP", "CREATE", "orders", "shop", "0")
        server.ask("XREADGROUP", "GROUP", "shop", "worker", "STREAMS", "orders", ">")
        server.ask("SET", "key", "value", "PX", 60_000)
        left = server.ask("PTTL", "key")
        clock.advance("59.999s")
        almost = server.ask("GET", "key"), server.ask("XPENDING", "orders", "shop", "IDLE", 60_001, "-", "+", 1)
        clock.advance(0.002)
        over = server.ask("GET", "key"), server.ask("XPENDING", "orders", "shop", "IDLE", 60_001, "-", "+", 1)

        assert left == 60_000
        assert almost == ("value", [])
        assert over == (None, [[f"{_ms(clock) - 60_001}-0", "worker", 60_001, 1]])
        assert server.ask("TIME") == [f"{_ms(clock) // 1000}", "1000"]


def test_a_frozen_server_shows_every_millisecond_as_its_clock_does(
    frozen_redis: tuple[RedisServer, FrozenClock],
) -> None:
    server, clock = frozen_redis
    shown = []
    for _ in range(100):
        clock.advance(0.007)
        seconds, microseconds = _numbers(server.ask("TIME"))
        shown.append(seconds * 1_000_000 + microseconds - _ms(clock) * 1000)

    assert set(shown) == {0}


async def test_a_blocked_client_notices_that_its_time_has_come(
    frozen_redis: tuple[RedisServer, FrozenClock],
) -> None:
    server, clock = frozen_redis
    async with redis.asyncio.Redis.from_url(server.url, socket_timeout=PATIENCE) as client:
        waiting = asyncio.ensure_future(client.xread({"nothing-comes-here": "$"}, block=1_000))
        await asyncio.to_thread(until, lambda: server.info("clients")["blocked_clients"] == "1", what="the wait begun")
        clock.advance(2)

        assert not await waiting


def test_a_cluster_keeps_working_when_a_primary_dies(tmp_path: Path) -> None:
    with RedisCluster(tmp_path, replicated=True) as cluster:
        number = cluster.number_of("orders")
        primary, replica = cluster.primaries[number], cluster.replicas[number]
        _set_on_both(primary, "orders", "1")
        primary.kill()
        cluster.wait_for_promotion(replica)

        assert replica.ask("GET", "orders") == "1"


def test_a_sentinel_promotes_the_replica_of_a_dead_primary(tmp_path: Path) -> None:
    with WatchedRedis(tmp_path) as watched:
        first, second = watched.servers
        _set_on_both(first, "orders", "1")
        before = watched.primary
        first.kill()
        watched.wait_for_promotion(second)

        assert before is first
        assert second.ask("GET", "orders") == "1"


def test_a_port_is_handed_out_once() -> None:
    ports = [free_port() for _ in range(100)]

    assert len(set(ports)) == 100


def _set_on_both(primary: RedisServer, key: str, value: str) -> None:
    with redis.Redis(port=primary.port, single_connection_client=True) as client:
        client.set(key, value)
        client.wait(1, 0)  # for what this connection has written


def _answers(url: str) -> bool:
    try:
        return ask(url, "PING") == "PONG"
    except redis.ConnectionError:
        return False


def _numbers(answer: object) -> list[int]:
    return [int(str(word)) for word in answer] if isinstance(answer, list) else []


def _ms(clock: FrozenClock) -> int:
    return round(clock.now().timestamp() * 1000)
