"""What stands in deploy/, as far as it runs without a container engine."""

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.serving import Shop, until
from tests.servers.alertmanager import Alertmanager
from tests.servers.ports import free_port
from tests.servers.prometheus import Prometheus
from tests.servers.promtool import promtool
from tests.servers.redis import RedisServer, ask

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def loopback_yml() -> str:
    (block,) = re.findall(r"```yaml\n(.*?)```", (DEPLOY / "README.md").read_text(), re.DOTALL)
    return str(block)


def test_prometheus_accepts_its_settings(tmp_path: Path) -> None:
    token = tmp_path / "prometheus_token"
    token.touch()
    inside = (DEPLOY / "prometheus.yml").read_text().replace("/run/secrets/prometheus_token", str(token))
    for name, text in {"inside.yml": inside, "loopback.yml": loopback_yml()}.items():
        (tmp_path / name).write_text(text)
        said = subprocess.run(
            [promtool(), "check", "config", tmp_path / name], capture_output=True, text=True, check=False, timeout=60
        )
        assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("name", ["alerts", "compat"])
def test_prometheus_accepts_the_rules_and_they_do_what_is_said_beside_them(name: str) -> None:
    for words in (("check", "rules", f"{name}.rules.yaml"), ("test", "rules", f"{name}.test.yaml")):
        said = subprocess.run(
            [promtool(), *words], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False, timeout=60
        )
        assert said.returncode == 0, said.stdout + said.stderr


def test_promtool_would_notice_that_an_alert_came_too_early(tmp_path: Path) -> None:
    for path in (DEPLOY / "prometheus").glob("alerts.*.yaml"):
        (tmp_path / path.name).write_text(path.read_text("utf-8").replace("for: 30m", "for: 10m"), "utf-8")
    said = subprocess.run(
        [promtool(), "test", "rules", tmp_path / "alerts.test.yaml"], capture_output=True, check=False, timeout=60
    )

    assert said.returncode == 1


def test_alertmanager_starts_with_its_settings(tmp_path: Path) -> None:
    server = Alertmanager(tmp_path, "http://127.0.0.1:9/")
    shutil.copy(DEPLOY / "alertmanager" / "alertmanager.yml", tmp_path)
    with server:
        assert server.firing() == []


def test_the_doctor_has_nothing_to_say_about_the_redis(tmp_path: Path) -> None:
    lines = [line.split(maxsplit=1) for line in (DEPLOY / "redis.conf").read_text().splitlines() if line[:1].isalpha()]
    settings = {name: value for name, value in lines if name != "include"}
    with RedisServer(tmp_path / "redis", settings) as server:
        found = Shop(tmp_path).facts("doctor", "--broker", server.url)

    assert settings
    assert {one["check"]: one["level"] for one in found if one["level"] != "ok"} == {}


def test_prometheus_sees_worker_and_service_until_its_token_is_revoked(
    tmp_path: Path, empty_redis: str, empty_postgres: str
) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER=empty_redis, REDRIVE_STORE=empty_postgres)
    shutil.copy(ROOT / "examples" / "shop.py", tmp_path)
    (issued,) = shop.facts("tokens", "issue", "prometheus", "--role", "viewer")
    shop.run("tokens", "issue", "kim", "--role", "admin")  # without a valid token a service on loopback is open again
    (tmp_path / "prometheus_token").write_text(issued["secret"] + "\n")
    port = free_port()
    with shop.service() as api, shop.process("worker", "shop:app", "--metrics-port", str(port)):
        config = loopback_yml().replace("127.0.0.1:8800", urlsplit(str(api.client.base_url)).netloc)
        config = config.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace("15s", "1s")
        (tmp_path / "loopback.yml").write_text(config)
        with Prometheus(tmp_path / "prometheus", tmp_path / "loopback.yml") as prometheus:
            up = {"redrive-service": "up", "redrive-worker": "up"}
            until(lambda: prometheus.health() == up, what="both are up")

            shop.run("publish", "orders", '{"id": 2}')
            until(lambda: "no customer" in shop.run("letters", "list"), what="the letter is collected")

            shop.run("tokens", "revoke", issued["token_id"])
            until(lambda: "401" in prometheus.health()["redrive-service"], what="the service is closed to it")
            assert prometheus.health()["redrive-worker"] == "up"
    assert ask(empty_redis, "XLEN", "orders:dlq") == 0
