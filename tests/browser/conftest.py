from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.servers.chromium import FLAGS, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each module: while it runs, no other event loop can in this thread."""
    program = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=[*FLAGS])
        yield found
        found.close()
