"""A shop that is watched: worker, service, Prometheus and Alertmanager, each a process, with the rules that we ship.

Every time in the alerts is a two-hundredth of what it is in the shipped file, and sizes are measured twice a second
instead of once a minute.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from deploy.generator.alert_files import inhibitions, prometheus_alerts
from deploy.generator.compat import compat_rules
from tests.e2e.charging import begin, progress
from tests.e2e.serving import Api, Shop, until
from tests.servers.alertmanager import Alertmanager, Somebody, somebody
from tests.servers.ports import free_port
from tests.servers.prometheus import Prometheus
from tests.servers.redis import ask

SCALE = 1 / 200
AFTER_A_WINDOW = 'count(up{job=~"redrive-.*"} offset 2s) == 2'

APP = """
import os
import redrive

app = redrive.App(os.environ["SHOP_BROKER"], name="shop", grace=5)


@app.consumer("orders", retry=[0.01, 0.02], breaker=None, context=["task_type"])
async def charge(order: dict[str, str], delivery: redrive.Delivery) -> None:
    if order["kind"] == "bad" and not os.path.exists("mended"):
        raise TimeoutError("no answer")
    if order["kind"] == "shaky" and delivery.attempt == 1:
        raise ConnectionError("try again")


@app.consumer("decide", retry=None, breaker=None)
async def decide(question: dict[str, str]) -> None:
    pass
"""

HURRIED = """
from datetime import timedelta

from redrive.cli import main
from redrive.observe import sizes

sizes.EVERY = timedelta(milliseconds=500)
main()
"""


class HurriedShop(Shop):
    program = (sys.executable, "hurried.py")


class Scene:
    """Everybody at work."""

    def __init__(self, shop: Shop, api: Api, servers: tuple[Prometheus, Alertmanager, Somebody]) -> None:
        self.shop = shop
        self.api = api
        self.prometheus, self.alertmanager, self.somebody = servers
        self._calls: list[Mapping[str, Any]] = []

    def publish(self, queue: str, *bodies: object) -> None:
        (self.shop.folder / "bodies").write_text("\n".join(map(json.dumps, bodies)), "utf-8")
        self.shop.run("publish", queue, "@bodies", "--lines")

    def value(self, expression: str) -> float:
        """The sum of what an expression gives."""
        return sum(value for _, value in self.prometheus.query(expression))

    def seen(self, expression: str, wanted: Callable[[float], bool]) -> None:
        until(lambda: wanted(self.value(expression)), what=f"{expression} is seen")

    def called(self, status: str, alert: str, queue: str) -> Mapping[str, Any]:
        """Wait until somebody was called about this, now or before."""
        while True:
            for call in self._calls:
                labels = call["labels"]
                if (call["status"], labels["alertname"], labels["queue"]) == (status, alert, queue):
                    return call
            self._calls.append(self.somebody.next_call())

    def states(self, alert: str) -> Mapping[str, str]:
        """What Alertmanager does about an alert, by queue: active or suppressed."""
        firing = [one for one in self.alertmanager.firing() if one["labels"]["alertname"] == alert]
        return {one["labels"]["queue"]: one["status"]["state"] for one in firing}

    def redrive(self, queue: str, **order: Any) -> str:
        """Send back every open letter of a queue; in which state that ended."""
        redrive_id = begin(self.api, filter={"queue": queue}, **order)
        until(lambda: progress(self.api, redrive_id)["state"] not in {"planned", "running"}, what="the redrive ends")
        return str(progress(self.api, redrive_id)["state"])


@contextmanager
def watched(folder: Path, redis: str) -> Iterator[Scene]:
    """The scene, when Prometheus has known worker and service for a while."""
    shop = HurriedShop(
        folder,
        SHOP_BROKER=redis,
        REDRIVE_BROKER=redis,
        REDRIVE_METRICS_LABEL="task_type",
        REDRIVE_LOG_LEVEL="error",
    )
    (folder / "first.py").write_text(APP, "utf-8")
    (folder / "hurried.py").write_text(HURRIED, "utf-8")
    ask(redis, "SET", "decide:dlq", "not a stream")  # so its letters cannot be written
    port = free_port()
    worker = shop.process("worker", "first:app", "--metrics-port", str(port))
    with somebody() as called, shop.service() as api, worker:
        alertmanager = Alertmanager(folder / "alertmanager", called.url)
        settings = folder / "alertmanager" / "alertmanager.yml"
        settings.write_text(settings.read_text("utf-8") + yaml.safe_dump({"inhibit_rules": inhibitions()}), "utf-8")
        service = urlsplit(str(api.client.base_url)).netloc
        config = _prometheus(folder, alertmanager.port, service=service, worker=f"127.0.0.1:{port}")
        with alertmanager, Prometheus(folder / "prometheus", config) as prometheus:
            scene = Scene(shop, api, (prometheus, alertmanager, called))
            scene.seen(AFTER_A_WINDOW, bool)
            yield scene


def _prometheus(folder: Path, alertmanager: int, **targets: str) -> Path:
    for name, rules in {"alerts": prometheus_alerts(scale=SCALE), "compat": compat_rules()}.items():
        (folder / f"{name}.rules.yaml").write_text(yaml.safe_dump(rules), "utf-8")
    config = {
        "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "250ms"},
        "rule_files": ["*.rules.yaml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]},
        "scrape_configs": [
            {"job_name": f"redrive-{name}", "static_configs": [{"targets": [target]}]}
            for name, target in targets.items()
        ],
    }
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config), "utf-8")
    return path
