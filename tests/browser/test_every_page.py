"""Every page, looked at by a real Chromium: everybody can use it, it fits the window, and what letters hold is text."""

import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from typing import Literal

import pytest
from playwright.sync_api import Browser, Response, ViewportSize, expect

from tests.browser.house import House, house
from tests.browser.pages import pages
from tests.browser.stock import Stock

STOPS = pages(Stock(*[""] * len(fields(Stock))))
HEAVIEST = 150_000  # bytes, with style and script
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES: tuple[ViewportSize, ...] = ({"width": 1280, "height": 900}, {"width": 360, "height": 740})
HUGE: ViewportSize = {"width": 3840, "height": 2160}


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(browser, tmp_path_factory.mktemp("console")) as found:
        yield found


@pytest.mark.parametrize("name", STOPS)
def test_everybody_can_use_it_and_it_fits(browser: Browser, served: House, name: str) -> None:
    with served.at(browser, pages(served.stock)[name]) as visitor:
        page = visitor.page
        for scheme, size in product(SCHEMES, SIZES):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            assert visitor.violations() == [], (scheme, size)
            wide, there = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= there, f"{wide} px of {there}"
        assert page.locator("h1").count() == 1
        assert page.title() != "owned"


def test_what_has_just_come_can_be_read_though_the_theme_changes(browser: Browser, served: House) -> None:
    with served.visit(browser, color_scheme="light") as visitor:
        page = visitor.go("/letters?q=onerror")  # a search is not asked again by itself, so its rows stay
        rows = page.locator("tr[data-key]")
        rows.evaluate_all("(all) => all.forEach((row) => row.classList.add('fresh'))")
        page.evaluate("document.getAnimations().forEach((one) => one.pause())")
        grounds = set()
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert visitor.violations() == [], scheme
            grounds.add(rows.first.evaluate("(row) => getComputedStyle(row).backgroundColor"))
        assert len(grounds) == len(SCHEMES)


@pytest.mark.parametrize("name", [name for name, stop in STOPS.items() if not stop.steps])
def test_no_page_is_heavy(browser: Browser, served: House, name: str) -> None:
    answers: list[Response] = []
    stop = pages(served.stock)[name]
    with served.visit(browser, stop) as visitor:
        visitor.page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - it must be a function of Python
        visitor.go(stop.path)
        weights = {answer.url: len(answer.body()) for answer in answers}
    assert len(weights) >= 3
    assert sum(weights.values()) < HEAVIEST, weights


def test_what_letters_hold_is_text_everywhere(browser: Browser, served: House) -> None:
    found = served.stock
    with served.visit(browser) as visitor:
        for path in (f"/letters/{found.hostile}", "/letters", "/incidents", "/", "/letters?q=onerror"):
            page = visitor.go(path)
            assert page.title() != "owned"
            assert page.locator("img[src=x]").count() == 0
            assert "\u202e" not in page.content()
            assert "\x1b" not in page.content()
        visitor.go(f"/letters/{found.hostile}")
        visitor.sees("<img src=x onerror=")


@pytest.mark.parametrize("size", SIZES)
def test_however_long_a_name_is_its_value_can_be_read_beside_it(
    browser: Browser, served: House, size: ViewportSize
) -> None:
    found = served.stock
    with served.visit(browser, viewport=size) as visitor:
        page = visitor.go(f"/letters/{found.hostile}")
        rooms = page.locator("dl.facts").evaluate_all(
            "(all) => all.map((one) => [one.clientWidth, one.scrollWidth,"
            " Math.min(...[...one.querySelectorAll('dd')].map((value) => value.clientWidth))])"
        )

    assert len(rooms) >= 2
    for there, taken, narrowest in rooms:
        assert taken <= there
        assert narrowest >= there / 2


def test_a_letter_is_revealed_on_record_and_only_when_asked(browser: Browser, served: House) -> None:
    found = served.stock
    with served.visit(browser) as visitor:
        page = visitor.go(f"/letters/{found.letter}")
        expect(page.get_by_role("main")).not_to_contain_text("@shop.example")
        page.get_by_role("button", name=re.compile("^Reveal")).click()
        visitor.sees("@shop.example")
        visitor.go(f"/audit?letter_id={found.letter}")
        visitor.sees("letters.reveal")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_can_be_read_on_a_very_large_screen(
    browser: Browser, served: House, scheme: Literal["light", "dark"]
) -> None:
    with served.visit(browser, viewport=HUGE, color_scheme=scheme) as visitor:
        page = visitor.go("/letters")
        assert float(page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")) >= 18


def test_a_form_is_sent_once_however_often_its_button_is_pressed(browser: Browser, served: House) -> None:
    found = served.stock
    with served.visit(browser) as visitor:
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
