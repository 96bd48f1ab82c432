"""A Prometheus, from the package that its tool comes from."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers import roll
from tests.servers.install import Unavailable
from tests.servers.ports import free_port
from tests.servers.promtool import PACKAGE, promtool
from tests.servers.server import PATIENCE, Server


class Prometheus(Server):
    """A Prometheus that scrapes what this file says. Raises `Unavailable`."""

    def __init__(self, folder: Path, config: Path) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._config = config
        self._program = promtool().with_name("prometheus")
        if not self._program.exists():
            raise Unavailable("prometheus", f"is not beside promtool; apt install {PACKAGE}")

    def command(self) -> Sequence[str]:
        return (
            str(self._program),
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        )

    def start(self) -> None:
        super().start()
        roll.used("prometheus", self._get("status/buildinfo")["version"])

    def is_ready(self) -> bool:
        try:
            return bool(self._get("status/runtimeinfo"))
        except (urllib.error.URLError, ConnectionError):
            return False

    def health(self) -> Mapping[str, str]:
        """How each job is, as seen at the last scrape: unknown, up, or down and why."""
        targets = self._get("targets")["activeTargets"]
        return {one["labels"]["job"]: f"{one['health']} {one['lastError']}".strip() for one in targets}

    def query(self, expression: str) -> Sequence[tuple[Mapping[str, str], float]]:
        """What an expression gives now: labels and value of each series. Raises `ValueError` for a wrong one."""
        try:
            found = self._get(f"query?{urllib.parse.urlencode({'query': expression})}")["result"]
        except urllib.error.HTTPError as refused:
            raise ValueError(json.load(refused)["error"]) from None
        return [(one["metric"], float(one["value"][1])) for one in found]

    def _get(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]
