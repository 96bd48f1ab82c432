"""How long a browser that was never here takes to show something of the console."""

from collections.abc import Sequence

from playwright.sync_api import sync_playwright

from tests.servers.chromium import FLAGS, chromium

_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def first_views(url: str, *, looked: int) -> Sequence[float]:
    """Seconds from asking to the first paint of the overview, by so many visitors with empty caches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        times = []
        for _ in range(looked + 1):
            context = browser.new_context()
            page = context.new_page()
            page.goto(url)
            while (painted := page.evaluate(_PAINTED)) is None:  # asked from outside: the page's policy allows no eval
                page.wait_for_timeout(10)
            times.append(painted / 1000)
            context.close()
        browser.close()
    return times[1:]  # the first one also waited for the browser itself
