"""Every page there is, over the stock of `stock.py`, also those that only a button leads to."""

import re
from collections.abc import Callable
from typing import NamedTuple

from playwright.sync_api import Page

from tests.browser.stock import Stock

Step = Callable[[Page], None]


class Stop(NamedTuple):
    """A page as somebody sees it: its address, what they do there first, and who they are.

    `is_refused` is true of a page whose status says that something was wrong: the browser complains of it too.
    """

    path: str
    steps: tuple[Step, ...] = ()
    role: str = "admin"
    is_refused: bool = False


def pages(stock: Stock) -> dict[str, Stop]:
    """Each by a name that a file can have."""
    return {**_addresses(stock), **_letters(stock), **_acts(stock), **_of_a_viewer(stock)}


def _addresses(stock: Stock) -> dict[str, Stop]:
    new = f"/redrives/new?fingerprint={stock.incident}"
    return {
        "overview": Stop("/"),
        "incidents": Stop("/incidents"),
        "incidents-muted": Stop("/incidents?state=muted"),
        "incident": Stop(f"/incidents/{stock.incident}"),
        "incident-table": Stop(f"/incidents/{stock.incident}#course"),
        "letters": Stop("/letters"),
        "letters-filtered": Stop("/letters?queue=orders&error_type=KeyError&state=open"),
        "letters-none": Stop("/letters?q=nowhere-to-be-found"),
        "letters-mistaken": Stop("/letters?from=yesterday", is_refused=True),
        "redrives": Stop("/redrives"),
        "redrive-new": Stop(f"{new}&canary=1,5,25&rate=50"),
        "redrive-mistaken": Stop(f"{new}&canary=few&rate=fast", is_refused=True),
        "redrive": Stop(f"/redrives/{stock.redrive}"),
        "redrive-paused": Stop(f"/redrives/{stock.paused}"),
        "discard": Stop(f"/discard?fingerprint={stock.incident}"),
        "gateways": Stop("/gateways"),
        "audit": Stop("/audit"),
        "audit-letter": Stop(f"/audit?letter_id={stock.edited}"),
        "settings": Stop("/settings"),
        "purge": Stop("/settings/purge?older_than=12h&state=resolved"),
        "purge-mistaken": Stop("/settings/purge?older_than=long", is_refused=True),
        "sign-in": Stop("/sign-in", role=""),
        "nowhere": Stop("/nowhere", is_refused=True),
    }


def _letters(stock: Stock) -> dict[str, Stop]:
    return {
        "letter": Stop(f"/letters/{stock.letter}"),
        "letter-text": Stop(f"/letters/{stock.letter}?view=text"),
        "letter-hex": Stop(f"/letters/{stock.binary}?view=hex"),
        "letter-digest": Stop(f"/letters/{stock.digest}"),
        "letter-hostile": Stop(f"/letters/{stock.hostile}"),
        "letter-large": Stop(f"/letters/{stock.large}"),
        "letter-edited": Stop(f"/letters/{stock.edited}"),
    }


def _acts(stock: Stock) -> dict[str, Stop]:
    letter, begin, look = f"/letters/{stock.letter}", send("Edit"), send("See what it changes")
    return {
        "letter-revealed": Stop(letter, (send("Reveal"),)),
        "edit": Stop(letter, (begin,)),
        "edit-hostile": Stop(f"/letters/{stock.hostile}", (begin,)),
        "edit-too-large": Stop(f"/letters/{stock.large}", (begin,)),
        "edit-checked": Stop(letter, (begin, write("Body", '{"order": 7}'), look)),
        "edit-mistaken": Stop(letter, (begin, write("Body", '{"order":'), look), is_refused=True),
        "letters-chosen": Stop("/letters", (tick("Select all"),)),
        "redrive-paused-open": Stop(f"/redrives/{stock.paused}", (unfold("Resume"), unfold("Cancel"))),
        "queue-pause": Stop("/", (unfold("Pause"),)),
        "token-issued": Stop("/settings", (write("For whom", "bob"), send("Issue a token"))),
        "token-refused": Stop("/settings", (write("For whom", " "), send("Issue a token")), is_refused=True),
        "token-revoke": Stop("/settings", (unfold("Revoke"),)),
        "keys": Stop("/letters", (press("Keyboard"),)),
        "sign-in-refused": Stop("/sign-in", (write("Token", "rdt_none"), send("Sign in")), role="", is_refused=True),
    }


def _of_a_viewer(stock: Stock) -> dict[str, Stop]:
    seen = ("overview", "incidents", "incident", "letters", "redrives", "redrive-paused", "audit", "settings")
    addresses = _addresses(stock)
    return {f"viewer-{name}": addresses[name]._replace(role="viewer") for name in seen} | {
        "viewer-letter": Stop(f"/letters/{stock.letter}", role="viewer"),
        "viewer-refused": Stop("/settings/purge", role="viewer", is_refused=True),
    }


def press(name: str) -> Step:
    """Press the button whose name begins so."""
    return lambda page: page.get_by_role("button", name=re.compile(f"^{name}")).first.click()


def send(name: str) -> Step:
    """Press the button whose name begins so, and wait for the page that it leads to."""

    def step(page: Page) -> None:
        with page.expect_navigation():
            press(name)(page)

    return step


def write(label: str, text: str) -> Step:
    return lambda page: page.get_by_label(re.compile(f"^{label}")).fill(text)


def tick(label: str) -> Step:
    return lambda page: page.get_by_label(re.compile(f"^{label}")).check()


def unfold(name: str) -> Step:
    """Open what is folded behind these words."""
    return lambda page: page.locator("summary", has_text=re.compile(f"^{name}")).first.click()
