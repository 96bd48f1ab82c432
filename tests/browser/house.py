"""A service over the stock, with somebody of each role signed in: the house that every page is looked at in."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from tests.browser.browsing import Visitor, visiting
from tests.browser.pages import Stop
from tests.browser.stock import Stock, stock
from tests.e2e.serving import Shop, until

ROLES = {"admin": "ann", "viewer": "vic"}


@dataclass(frozen=True, slots=True)
class House:
    """Where the service is, what is in it, and what a browser keeps of each role's session."""

    url: str
    stock: Stock
    sessions: Mapping[str, Any]

    def visit(self, browser: Browser, stop: Stop | None = None, **options: Any) -> AbstractContextManager[Visitor]:
        """A visitor at the door, as whom a page says, or an admin."""
        role, is_refused = ("admin", False) if stop is None else (stop.role, stop.is_refused)
        session = self.sessions.get(role)
        return visiting(browser, self.url, expects_trouble=is_refused, storage_state=session, **options)

    @contextmanager
    def at(self, browser: Browser, stop: Stop, **options: Any) -> Iterator[Visitor]:
        """A visitor who has come to a page, as whom it says, and has done there what it says."""
        with self.visit(browser, stop, **options) as visitor:
            page = visitor.go(stop.path)
            for step in stop.steps:
                step(page)
            yield visitor


@contextmanager
def house(browser: Browser, folder: Path) -> Iterator[House]:
    found = stock(str(folder / "letters.db"))
    shop = Shop(folder, REDRIVE_SERVICE_RATE_LIMIT="10000", REDRIVE_LOG_LEVEL="error")
    shop.env["SHOP_BROKER"] = "sqlite:///redrive.db"
    (folder / "mended").touch()
    for queue in ("emails", "orders", "payments"):
        shop.run("publish", queue, '{"id": 1}')
    secrets = {role: shop.facts("tokens", "issue", name, "--role", role)[0]["secret"] for role, name in ROLES.items()}
    with shop.service() as api, shop.process("worker", "first:app", "--no-collect"):
        until(lambda: api.client.get("/api/v1/letters").status_code == 401, what="a token is asked for")
        url = str(api.client.base_url).rstrip("/")
        yield House(url, found, {role: _session(browser, url, secret) for role, secret in secrets.items()})


def _session(browser: Browser, url: str, secret: str) -> Any:
    with visiting(browser, url) as visitor:
        page = visitor.go("/sign-in")
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{url}/")
        return page.context.storage_state()
