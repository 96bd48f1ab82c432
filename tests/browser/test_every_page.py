"""Every page, looked at by a real Chromium: everybody can use it, it fits the window, and what letters hold is text."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Response, expect

from tests.browser.browsing import visiting
from tests.browser.pages import pages
from tests.browser.stock import Stock, stock
from tests.e2e.serving import Shop

NAMES = [*pages(Stock(*[""] * 7))]
HEAVIEST = 150_000  # bytes, with style and script
LOOKS = {
    "light, wide": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark, narrow": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Stock]]:
    folder = tmp_path_factory.mktemp("console")
    found = stock(str(folder / "letters.db"))
    shop = Shop(folder, REDRIVE_SERVICE_RATE_LIMIT="10000", REDRIVE_LOG_LEVEL="error")
    shop.run("publish", "orders", '{"id": 1}')
    with shop.service() as api:
        yield str(api.client.base_url).rstrip("/"), found


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", NAMES)
def test_everybody_can_use_it_and_it_fits(browser: Browser, served: tuple[str, Stock], name: str, look: str) -> None:
    url, found = served
    options: Any = LOOKS[look]
    with visiting(browser, url, expects_trouble=name == "nowhere", **options) as visitor:
        page = visitor.go(pages(found)[name])
        assert visitor.violations() == []
        wide, there = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= there, f"{wide} px of {there}"
        assert page.locator("h1").count() == 1
        assert page.title() != "owned"


@pytest.mark.parametrize("name", NAMES)
def test_no_page_is_heavy(browser: Browser, served: tuple[str, Stock], name: str) -> None:
    url, found = served
    answers: list[Response] = []
    with visiting(browser, url, expects_trouble=name == "nowhere") as visitor:
        visitor.page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - it must be a function of Python
        visitor.go(pages(found)[name])
        weights = {answer.url: len(answer.body()) for answer in answers}
    assert len(weights) >= 3
    assert sum(weights.values()) < HEAVIEST, weights


def test_what_letters_hold_is_text_everywhere(browser: Browser, served: tuple[str, Stock]) -> None:
    url, found = served
    with visiting(browser, url) as visitor:
        for path in (f"/letters/{found.hostile}", "/letters", "/incidents", "/", "/letters?q=onerror"):
            page = visitor.go(path)
            assert page.title() != "owned"
            assert page.locator("img[src=x]").count() == 0
            assert "\u202e" not in page.content()
            assert "\x1b" not in page.content()
        visitor.go(f"/letters/{found.hostile}")
        visitor.sees("<img src=x onerror=")


@pytest.mark.parametrize("look", LOOKS)
def test_however_long_a_name_is_its_value_can_be_read_beside_it(
    browser: Browser, served: tuple[str, Stock], look: str
) -> None:
    url, found = served
    options: Any = LOOKS[look]
    with visiting(browser, url, **options) as visitor:
        page = visitor.go(f"/letters/{found.hostile}")
        rooms = page.locator("dl.facts").evaluate_all(
            "(all) => all.map((one) => [one.clientWidth, one.scrollWidth,"
            " Math.min(...[...one.querySelectorAll('dd')].map((value) => value.clientWidth))])"
        )

    assert len(rooms) >= 2
    for there, taken, narrowest in rooms:
        assert taken <= there
        assert narrowest >= there / 2


def test_a_letter_is_revealed_on_record_and_only_when_asked(browser: Browser, served: tuple[str, Stock]) -> None:
    url, found = served
    with visiting(browser, url) as visitor:
        page = visitor.go(f"/letters/{found.letter}")
        expect(page.get_by_role("main")).not_to_contain_text("@shop.example")
        page.get_by_role("button", name=re.compile("^Reveal")).click()
        visitor.sees("@shop.example")
        visitor.go(f"/audit?letter_id={found.letter}")
        visitor.sees("letters.reveal")


def test_nothing_jumps_while_news_arrives(browser: Browser, tmp_path: Path) -> None:
    stock(str(tmp_path / "letters.db"))
    shop = Shop(tmp_path, REDRIVE_SERVICE_RATE_LIMIT="10000", REDRIVE_LOG_LEVEL="error")
    watch = (
        "window.jumped = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
        " if (!one.hadRecentInput) window.jumped += one.value; }).observe({type: 'layout-shift', buffered: false})"
    )
    with shop.service() as api, visiting(browser, str(api.client.base_url).rstrip("/")) as visitor:
        page = visitor.go()
        page.wait_for_load_state("networkidle")
        page.evaluate(watch)
        shop.run("publish", "orders", '{"id": 1}')
        shop.env["SHOP_BROKER"] = "sqlite:///redrive.db"
        with shop.process("worker", "first:app", "--no-collect"):
            expect(page.locator("#live")).to_contain_text("no rate")
        assert page.evaluate("window.jumped") < 0.01


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_on_a_very_large_screen(
    browser: Browser, served: tuple[str, Stock], scheme: Literal["light", "dark"]
) -> None:
    url, _ = served
    size: Any = {"width": 3840, "height": 2160}
    with visiting(browser, url, viewport=size, color_scheme=scheme) as visitor:
        page = visitor.go("/letters")
        assert float(page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")) >= 18


def test_a_form_is_sent_once_however_often_its_button_is_pressed(browser: Browser, served: tuple[str, Stock]) -> None:
    url, found = served
    with visiting(browser, url) as visitor:
        page = visitor.go(f"/redrives/new?letter_id={found.letter}")
        button = page.get_by_role("button", name=re.compile("^Redrive 1 letter"))
        sent = button.evaluate(
            """(button) => {
                let sent = 0;
                addEventListener("submit", (event) => { sent += !event.defaultPrevented; event.preventDefault(); });
                button.click();
                button.click();
                return sent;
            }"""
        )

    assert sent == 1
