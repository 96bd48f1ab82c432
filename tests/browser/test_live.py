"""News arrives while somebody looks: what they point at, have chosen or read stays where it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, ViewportSize, expect

from tests.browser.browsing import Visitor, visiting
from tests.browser.stock import stock
from tests.e2e.serving import Shop

LOW: ViewportSize = {"width": 1280, "height": 400}


class Board:
    """The overview, and a row on it below what will arrive: that of a queue which nobody reads."""

    def __init__(self, shop: Shop, visitor: Visitor) -> None:
        self.shop = shop
        self.visitor = visitor
        link = visitor.page.get_by_role("link", name="emails")
        self.row: Locator = visitor.page.locator("tr[data-key]", has=link)
        self.pointed: Locator = visitor.page.locator("tr[data-key]:hover", has=link)  # the same, while it is

    def top(self) -> float:
        """Where the row stands in the window."""
        expect(self.row).to_be_in_viewport()
        return float(self.row.evaluate("(one) => one.getBoundingClientRect().top"))

    def news(self) -> None:
        """A message dies: when this returns, its incident stands above the row."""
        with self.shop.process("worker", "first:app", "--no-collect"):
            expect(self.visitor.page.locator("#live")).to_contain_text("no rate")


@contextmanager
def board(browser: Browser, folder: Path, *, size: ViewportSize) -> Iterator[Board]:
    shop = Shop(folder, REDRIVE_SERVICE_RATE_LIMIT="10000", REDRIVE_LOG_LEVEL="error")
    shop.env["SHOP_BROKER"] = "sqlite:///redrive.db"
    for queue in ("emails", "orders"):
        shop.run("publish", queue, '{"id": 1}')
    with shop.service() as api, visiting(browser, str(api.client.base_url).rstrip("/"), viewport=size) as visitor:
        visitor.go()
        yield Board(shop, visitor)


@pytest.mark.parametrize("is_stocked", [True, False])
def test_the_row_under_the_pointer_does_not_move(browser: Browser, tmp_path: Path, *, is_stocked: bool) -> None:
    if is_stocked:
        stock(str(tmp_path / "letters.db"))
    with board(browser, tmp_path, size={"width": 1280, "height": 900}) as seen:
        seen.row.hover()
        before = seen.top()
        seen.news()

        assert seen.top() == pytest.approx(before, abs=1)
        expect(seen.pointed).to_be_visible()


def test_the_row_that_was_chosen_by_keys_keeps_its_place_and_the_focus(browser: Browser, tmp_path: Path) -> None:
    stock(str(tmp_path / "letters.db"))
    with board(browser, tmp_path, size={"width": 1280, "height": 900}) as seen:
        while "chosen" not in (seen.row.get_attribute("class") or ""):
            seen.visitor.press("j")
        before = seen.top()
        seen.news()

        assert seen.top() == pytest.approx(before, abs=1)
        expect(seen.row.get_by_role("link").first).to_be_focused()
        expect(seen.row).to_have_class("chosen")


def test_what_somebody_has_scrolled_to_does_not_move(browser: Browser, tmp_path: Path) -> None:
    stock(str(tmp_path / "letters.db"))
    with board(browser, tmp_path, size=LOW) as seen:
        seen.visitor.page.mouse.move(2, 2)
        seen.row.evaluate("(one) => one.scrollIntoView({block: 'start', behavior: 'instant'})")
        before = seen.top()
        seen.news()

        assert seen.top() == pytest.approx(before, abs=1)
