"""The story that the console is for, in a real Chromium, with worker and service as processes of their own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import Visitor, visiting
from tests.e2e.charging import ChargingShop, states
from tests.e2e.serving import Api, until


class Scene:
    """A shop whose orders die, and the service that shows them."""

    def __init__(self, shop: ChargingShop, api: Api) -> None:
        self.shop = shop
        self.api = api
        self.url = str(api.client.base_url).rstrip("/")

    def kill_orders(self, number: int) -> None:
        self.shop.die(self.api, range(number))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    shop = ChargingShop(tmp_path, broker="sqlite:///redrive.db", store="sqlite:///letters.db")
    with shop.service() as api:
        until(api.is_ready, what="the door is open")
        yield Scene(shop, api)


def resolve(visitor: Visitor) -> None:
    """On the page of a new redrive: look at it, begin it with a canary, and wait for its verdict."""
    page = visitor.page
    page.get_by_label("Canary").fill("1,5")
    page.get_by_role("button", name=re.compile("preview", re.IGNORECASE)).click()
    visitor.sees("1, then 5, then 14")
    page.get_by_role("button", name=re.compile("^Redrive 20")).click()
    visitor.sees("Sent 1, it succeeded on version mended; sent 5, then 14: 20 resolved, 0 unconfirmed")


def test_a_letter_arrives_live_is_understood_edited_and_sent_back_behind_a_canary(
    browser: Browser, scene: Scene
) -> None:
    with visiting(browser, scene.url) as visitor:
        page = visitor.go()
        scene.shop.publish(range(19))
        scene.shop.run("publish", "orders", json.dumps({"id": 19}))
        with scene.shop.worker("broken"):
            until(lambda: states(scene.api).get("open") == 20, what="all are dead")
        page.get_by_role("link", name=re.compile("ValueError")).first.click()
        visitor.sees("no rate")
        expect(page).to_have_url(re.compile("/incidents/"))

        page.goto(f"{scene.url}/letters?q=%22id%22%3A+19")
        page.locator("tr[data-key] a").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("ValueError")
        page.get_by_role("button", name="Edit").click()
        page.get_by_label(re.compile("^Body")).fill('{"id": 19, "price": 12}')
        page.get_by_role("button", name="See what it changes").click()
        visitor.sees('"price": 12')
        page.get_by_role("button", name="Keep", exact=True).click()

        page.locator("main a[href*='/incidents/']").first.click()
        page.get_by_role("link", name=re.compile("^Redrive all 20")).click()
        with scene.shop.worker("mended"):
            resolve(visitor)
    assert states(scene.api) == {"resolved": 20}
    assert [19, 1, 12] in scene.shop.noted()


def test_without_javascript_the_same_can_be_done(browser: Browser, scene: Scene) -> None:
    scene.kill_orders(20)
    with visiting(browser, scene.url, java_script_enabled=False) as visitor:
        page = visitor.go()
        page.get_by_role("link", name=re.compile("ValueError")).first.click()
        page.get_by_role("link", name=re.compile("^Redrive all 20")).click()
        page.get_by_label("Canary").fill("1,5")
        page.get_by_role("button", name=re.compile("preview", re.IGNORECASE)).click()
        with scene.shop.worker("mended"):
            page.get_by_role("button", name=re.compile("^Redrive 20")).click()
            expect(page).to_have_url(re.compile("/redrives/[0-9a-f]+$"))
            until(lambda: states(scene.api) == {"resolved": 20}, what="all are back")
            until(lambda: _says(page.reload(), "20 resolved, 0 unconfirmed"), what="the page says so")


def _says(answer: object, text: str) -> bool:
    return text in answer.text()  # type: ignore[attr-defined]


def test_by_keyboard_alone(browser: Browser, scene: Scene) -> None:
    scene.kill_orders(20)
    with visiting(browser, scene.url) as visitor:
        page = visitor.go()
        visitor.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        visitor.press("Escape")
        visitor.press("g", "i")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Incidents")
        visitor.press("j", "Enter")
        expect(page).to_have_url(re.compile("/incidents/"))
        visitor.press("/")
        expect(page.get_by_label("Search letters")).to_be_focused()
        page.keyboard.type('"id": 7')
        visitor.press("Enter")
        expect(page).to_have_url(re.compile("/letters[?]q="))
        visitor.press("j", "x")
        expect(page.locator("tr.chosen input[type=checkbox]")).to_be_checked()
        visitor.press("Enter")
        expect(page).to_have_url(re.compile("/letters/[0-9a-f]{32}"))


def test_a_viewer_is_not_offered_what_a_viewer_may_not_do_and_cannot_do_it(browser: Browser, scene: Scene) -> None:
    scene.kill_orders(3)
    secret = scene.shop.facts("tokens", "issue", "ann", "--role", "viewer")[0]["secret"]
    until(lambda: scene.api.client.get("/api/v1/letters").status_code == 401, what="a token is asked for")
    with visiting(browser, scene.url, expects_trouble=True) as visitor:
        page = visitor.go("/letters")
        page.get_by_label("Token").fill("rdt_" + "a" * 43)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("opens nothing")
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{scene.url}/letters")
        (cookie,) = [one for one in page.context.cookies() if one["name"] == "redrive-session"]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.locator("tr[data-key] a").first.click()
        for name in ("Redrive", "Discard", "Edit", "Reveal"):
            expect(page.get_by_role("main").get_by_role("button", name=name)).to_have_count(0)
            expect(page.get_by_role("main").get_by_role("link", name=re.compile(f"^{name}"))).to_have_count(0)
        status = page.evaluate(
            "async () => (await fetch('/discard', {method: 'POST', body: new URLSearchParams({all: 'true'})})).status"
        )
        assert status == 403
        page.goto(f"{scene.url}/redrives/new?all=true")
        visitor.sees("redrive needs the role operator")
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{scene.url}/letters")
        expect(page.get_by_label("Token")).to_be_visible()
