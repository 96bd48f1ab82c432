"""Somebody at a browser: what they see, press and type. What goes wrong inside the page is noticed at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

PATIENCE = 30_000  # milliseconds: a loaded machine is no failure
MOST_STOPS = 200  # of the Tab key on one page
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")

expect.set_options(timeout=PATIENCE)


class Visitor:
    """A page of a browser that stands at the console's address."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.troubles: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        page.on("console", lambda said: self.troubles.append(said.text) if said.type == "error" else None)

    def go(self, path: str = "/") -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def sees(self, text: str) -> None:
        expect(self.page.get_by_role("main")).to_contain_text(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def types(self, text: str) -> None:
        self.page.keyboard.type(text)

    def tab_to(self, wanted: Locator) -> None:
        """Press Tab until it has the focus. Presses and types nothing else, so it must be within reach."""
        expect(wanted).to_be_visible()
        for _ in range(MOST_STOPS):
            if wanted.evaluate("(one) => one === document.activeElement"):
                return
            self.press("Tab")
        raise AssertionError(f"{wanted} is not reached by {MOST_STOPS} times Tab")

    def violations(self) -> list[str]:
        """What axe has to say against this page."""
        found = Axe().run(self.page, options={"runOnly": {"type": "tag", "values": RULES}})
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in found.response["violations"]
        ]


@contextmanager
def visiting(browser: Browser, url: str, *, expects_trouble: bool = False, **options: Any) -> Iterator[Visitor]:
    """A visitor with a browser of their own: no cookies of anybody else. Troubles inside the page are failures."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    try:
        visitor = Visitor(context.new_page(), url)
        yield visitor
        assert expects_trouble or not visitor.troubles, visitor.troubles
    finally:
        context.close()
