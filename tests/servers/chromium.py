"""A real browser: Chromium, from the system's package, driven by Playwright."""

import subprocess
from functools import cache
from pathlib import Path

from tests.servers import roll
from tests.servers.install import Needed, on_path, require

CHROMIUM = Needed("chromium", on_path("chromium", "chromium-browser", "google-chrome"), "chromium", "chromium")
PATIENCE = 60
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


@cache
def chromium() -> Path:
    """Where it is, installed if it was not. Raises `Unavailable`."""
    found = require(CHROMIUM)
    said = subprocess.run(
        [found, "--no-sandbox", "--version"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    roll.used("chromium", said.split()[1])
    return found
