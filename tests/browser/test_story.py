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

    def publish(self, number: int) -> None:
        """Orders that a mended worker can charge, and a last one that nobody can: it has no price."""
        self.shop.publish(range(number - 1))
        self.shop.run("publish", "orders", json.dumps({"id": number - 1}))

    def kill_orders(self, number: int) -> None:
        self.publish(number)
        with self.shop.worker("broken"):
            until(lambda: states(self.api).get("open") == number, what="all are dead")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    shop = ChargingShop(tmp_path, broker="sqlite:///redrive.db", store="sqlite:///letters.db")
    with shop.service() as api:
        until(api.is_ready, what="the door is open")
        yield Scene(shop, api)


NO_PRICE, PRICED = '"id": 19', '{"id": 19, "price": 12}'
VERDICT = "Sent 1, it succeeded on version mended; sent 5, then 14: 20 resolved, 0 unconfirmed"


def edit(visitor: Visitor) -> None:
    """From the page of the incident to the letter that nobody can charge; give it a price, and come back."""
    page = visitor.page
    page.get_by_role("link", name="Its letters").click()
    page.get_by_label(re.compile("^Text in id")).fill(NO_PRICE)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("tr[data-key]")).to_have_count(1)
    page.locator("tr[data-key] a").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ValueError")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label(re.compile("^Body")).fill(PRICED)
    page.get_by_role("button", name="See what it changes").click()
    visitor.sees('"price": 12')
    page.get_by_role("button", name="Keep", exact=True).click()
    visitor.sees("Edit 1 is kept")
    page.locator("main a[href*='/incidents/']").first.click()


def begin(visitor: Visitor) -> None:
    """From the page of the incident: look at what would be sent behind a canary, and send it."""
    page = visitor.page
    page.get_by_role("link", name=re.compile("^Redrive all 20")).click()
    page.get_by_label("Canary").fill("1,5")
    page.get_by_role("button", name=re.compile("preview", re.IGNORECASE)).click()
    visitor.sees("1, then 5, then 14")
    page.get_by_role("button", name=re.compile("^Redrive 20")).click()
    expect(page).to_have_url(re.compile("/redrives/[0-9a-f]+$"))


def test_a_letter_arrives_live_is_understood_edited_and_sent_back_behind_a_canary(
    browser: Browser, scene: Scene
) -> None:
    with visiting(browser, scene.url) as visitor:
        page = visitor.go()
        scene.kill_orders(20)
        page.get_by_role("link", name=re.compile("ValueError")).first.click()
        visitor.sees("no rate")
        expect(page).to_have_url(re.compile("/incidents/"))
        edit(visitor)
        with scene.shop.worker("mended"):
            begin(visitor)
            visitor.sees(VERDICT)
    assert states(scene.api) == {"resolved": 20}
    assert [19, 1, 12] in scene.shop.noted()


def test_without_javascript_the_same_can_be_done(browser: Browser, scene: Scene) -> None:
    scene.kill_orders(20)
    with visiting(browser, scene.url, java_script_enabled=False) as visitor:
        page = visitor.go()
        page.get_by_role("link", name=re.compile("ValueError")).first.click()
        visitor.sees("no rate")
        edit(visitor)
        with scene.shop.worker("mended"):
            begin(visitor)
            until(lambda: states(scene.api) == {"resolved": 20}, what="all are back")
            until(lambda: _says(page.reload(), VERDICT), what="the page says so")
    assert [19, 1, 12] in scene.shop.noted()


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
        visitor.types(NO_PRICE)
        visitor.press("Enter")
        expect(page).to_have_url(re.compile("/letters[?]q="))
        visitor.press("j", "x")
        expect(page.locator("tr.chosen input[type=checkbox]")).to_be_checked()
        visitor.press("Enter")
        expect(page).to_have_url(re.compile("/letters/[0-9a-f]{32}"))
        with scene.shop.worker("mended"):
            edit_by_keyboard(visitor)
            visitor.sees("1 resolved, 0 unconfirmed")
            redrive_by_keyboard(visitor)
            visitor.sees("Sent 1, it succeeded on version mended; sent 5, then 13: 19 resolved, 0 unconfirmed")
    assert states(scene.api) == {"resolved": 20}
    assert [19, 1, 12] in scene.shop.noted()


def edit_by_keyboard(visitor: Visitor) -> None:
    """On the page of the letter that nobody can charge: give it a price, and send it back alone."""
    page = visitor.page
    visitor.tab_to(page.get_by_role("button", name="Edit"))
    visitor.press("Enter")
    visitor.tab_to(page.get_by_label(re.compile("^Body")))
    visitor.press("ControlOrMeta+a")
    visitor.types(PRICED)
    visitor.tab_to(page.get_by_role("button", name="See what it changes"))
    visitor.press("Enter")
    visitor.sees('"price": 12')
    visitor.tab_to(page.get_by_role("button", name="Keep and redrive"))
    visitor.press("Enter")
    visitor.tab_to(page.get_by_role("button", name=re.compile("^Redrive 1 letter")))
    visitor.press("Enter")


def redrive_by_keyboard(visitor: Visitor) -> None:
    """From anywhere: the incident, and all that is left of it behind a canary."""
    page = visitor.page
    visitor.press("g", "i")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Incidents")
    visitor.press("j", "Enter")
    visitor.tab_to(page.get_by_role("link", name=re.compile("^Redrive all 19")))
    visitor.press("Enter")
    visitor.tab_to(page.get_by_label("Canary"))
    visitor.types("1,5")
    visitor.press("Enter")
    visitor.sees("1, then 5, then 13")
    visitor.tab_to(page.get_by_role("button", name=re.compile("^Redrive 19")))
    visitor.press("Enter")


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
