"""`make screenshots`: a picture of every page, in both themes and two widths."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.browsing import visiting
from tests.browser.pages import pages
from tests.browser.stock import stock
from tests.e2e.serving import Shop
from tests.servers.chromium import FLAGS, chromium

WIDTHS = {"wide": (1280, 900), "narrow": (360, 740)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--only", help="pages whose names begin so")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        found = stock(str(Path(name) / "letters.db"))
        shop = Shop(Path(name), REDRIVE_SERVICE_RATE_LIMIT="10000", REDRIVE_LOG_LEVEL="error")
        for number in range(4):
            shop.run("publish", "orders", f'{{"id": {number}}}')
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        with shop.service() as api:
            for page, path in pages(found).items():
                for theme in ("light", "dark"):
                    for width, size in WIDTHS.items():
                        if given.only and not page.startswith(given.only):
                            continue
                        options: Any = {
                            "color_scheme": theme,
                            "viewport": dict(zip(("width", "height"), size, strict=True)),
                        }
                        url = str(api.client.base_url).rstrip("/")
                        with visiting(browser, url, expects_trouble=True, **options) as visitor:
                            visitor.go(path)
                            file = given.folder / f"{page}-{theme}-{width}.png"
                            visitor.page.screenshot(path=file, full_page=width == "wide" and page != "letter-large")
                            print(file)
        browser.close()


if __name__ == "__main__":
    main()
