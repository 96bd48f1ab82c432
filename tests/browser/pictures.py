"""`make screenshots`: a picture of every page, in both themes and two widths."""

import argparse
import tempfile
from itertools import product
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.browser.house import house
from tests.browser.pages import pages
from tests.servers.chromium import FLAGS, chromium

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS: dict[str, ViewportSize] = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--only", help="pages whose names begin so")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        with house(browser, Path(name)) as there:
            for page, stop in pages(there.stock).items():
                if not given.only or page.startswith(given.only):
                    with there.at(browser, stop) as visitor:
                        take(visitor.page, given.folder / page)
        browser.close()


def take(page: Page, named: Path) -> None:
    """Pictures of a page as it stands, in every look; of a long one in a narrow window only what is on top."""
    for theme, (width, size) in product(THEMES, WIDTHS.items()):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size(size)
        file = named.with_name(f"{named.name}-{theme}-{width}.png")
        page.screenshot(path=file, full_page=width == "wide" and not named.name.startswith("letter-large"))
        print(file)


if __name__ == "__main__":
    main()
