"""What leads in and out of the console: texts to take along, a call that is tried, a home in somebody else's app."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, expect

from tests.browser.browsing import visiting
from tests.e2e.charging import ChargingShop, states
from tests.e2e.serving import Shop, until
from tests.servers.ports import free_port
from tests.servers.webhook import Answer, chat

DOCUMENT = Path(__file__).parents[2] / "docs" / "console.md"


def pasted(shop: Shop, text: str) -> str:
    """What a shell says to a text that was copied from a page."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-ec", text],
        cwd=shop.folder,
        env={**shop.env, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, f"{text}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def test_what_is_copied_from_a_letter_works_where_it_is_pasted(browser: Browser, tmp_path: Path) -> None:
    shop = ChargingShop(tmp_path, broker="sqlite:///redrive.db", store="sqlite:///letters.db")
    with shop.service() as api, visiting(browser, str(api.client.base_url).rstrip("/")) as visitor:
        shop.die(api, range(1))
        (letter,) = api.letters()
        page = visitor.go(f"/letters/{letter['message_id']}")
        texts = {name: page.locator(f"#{name}").text_content() or "" for name in TEXTS}
        shop.env["SHOP_VERSION"] = "mended"
        looked, shown = pasted(shop, texts["as-curl"]), pasted(shop, texts["as-cli"])
        (tmp_path / "test_letter.py").write_text(texts["as-test"], "utf-8")
        tested = pasted(shop, "pytest -q -p no:cacheprovider test_letter.py")
        sent = pasted(shop, texts["send-curl"])
        with shop.worker("mended"):
            until(lambda: states(api) == {"resolved": 1}, what="what was sent by curl is back")

    assert letter["message_id"] in looked
    assert "ValueError" in shown
    assert "1 passed" in tested
    assert '"redrive_id"' in sent


TEXTS = ("as-curl", "as-cli", "as-test", "send-curl")


def test_a_test_of_the_alerts_is_heard_and_one_that_is_not_says_why(browser: Browser, tmp_path: Path) -> None:
    with chat(Answer(), Answer(404, b"no_such_hook")) as there:
        told = {"REDRIVE_ALERTS_WEBHOOK": there.url, "REDRIVE_ALERTS_ALLOW_PRIVATE": "true"}
        shop = Shop(tmp_path, REDRIVE_BROKER="sqlite:///redrive.db", REDRIVE_STORE="sqlite:///letters.db", **told)
        with shop.service() as api, visiting(browser, str(api.client.base_url).rstrip("/")) as visitor:
            page = visitor.go("/settings")
            row = page.get_by_role("row", name=re.compile("webhook"))
            page.get_by_role("button", name="Send a test alert").click()
            expect(row).to_contain_text("taken")
            heard = there.next_post()
            page.get_by_role("button", name="Send a test alert").click()
            expect(row).to_contain_text("not taken")
            expect(row).to_contain_text("404")
            assert "s3cret" not in page.content()
            assert visitor.violations() == []
            visitor.go("/audit")
            visitor.sees("alerts.test")

    assert "local wants to know whether this is heard" in str(heard.body)


@contextmanager
def mounted(shop: Shop) -> Iterator[str]:
    """The app of the documentation, served: where its console is."""
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (shop.folder / "host.py").write_text(example, "utf-8")
    url = f"http://127.0.0.1:{free_port()}"
    words = ("-m", "uvicorn", "host:app", "--port", url.rpartition(":")[2], "--log-level", "error")
    process = subprocess.Popen([sys.executable, *words], cwd=shop.folder, env=shop.env)
    try:
        until(lambda: _answers(f"{url}/redrive/sign-in"), what="the app answers")
        yield f"{url}/redrive"
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == httpx2.codes.OK
    except httpx2.TransportError:
        return False


def test_it_lives_in_an_app_of_somebody_else_below_a_path_of_theirs(browser: Browser, tmp_path: Path) -> None:
    shop = Shop(tmp_path, REDRIVE_BROKER="sqlite:///redrive.db", REDRIVE_STORE="sqlite:///letters.db")
    secret = shop.facts("tokens", "issue", "ann", "--role", "admin")[0]["secret"]
    with mounted(shop) as url, visiting(browser, url) as visitor:
        page = visitor.go("/letters")
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{url}/letters")
        visitor.press("g", "i")
        expect(page).to_have_url(f"{url}/incidents")
        for link in page.get_by_role("navigation", name="Main").get_by_role("link").all():
            assert (link.get_attribute("href") or "").startswith("/redrive/")
        assert visitor.violations() == []
