import asyncio
import sys
import webbrowser

import pytest

from redrive.cli.demo_console import Address, show_in_browser
from redrive.cli.demo_story import Story
from redrive.core.query import Query
from redrive.triage import letters
from tests.unit.triage.bench import Bench

URL = "http://127.0.0.1:8800"


class Window(webbrowser.BaseBrowser):
    """A browser with a window."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:  # noqa: FBT001, FBT002 - as it is there
        self.opened.append(url)
        return True


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Window:
    found = Window()
    monkeypatch.setattr(webbrowser, "get", lambda: found)
    monkeypatch.setattr(webbrowser, "open", found.open)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return found


async def test_where_there_is_a_screen_the_console_is_opened_in_a_browser(window: Window) -> None:
    await show_in_browser(URL)

    assert window.opened == [URL]


async def test_without_a_screen_nothing_is_opened(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY")
    await show_in_browser(URL)

    assert window.opened == []


async def test_a_browser_that_would_take_the_terminal_is_not_opened(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("lynx"))
    await show_in_browser(URL)

    assert window.opened == []


async def test_no_browser_at_all_is_no_trouble(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_found() -> webbrowser.BaseBrowser:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none_found)
    await show_in_browser(URL)

    assert window.opened == []


def test_the_address_says_when_it_is_not_the_usual_one() -> None:
    assert Address(URL, is_usual=True).words == f"The console is open at {URL}"
    assert Address("http://127.0.0.1:41", is_usual=False).words.endswith(":41   (port 8800 is taken)")


async def test_the_story_goes_on_where_somebody_at_the_console_was_quicker() -> None:
    bench = Bench()
    await bench.collect(6, queue="refunds", error_type="MissingRate")

    async def somebody_discards_all_of_them() -> None:
        await letters.discard(bench.desk, await bench.selection(query=Query(queue="refunds")))

    story = Story(bench.desk, bench.broker, deploy=somebody_discards_all_of_them)
    telling = asyncio.create_task(story.tell(after=0))
    while len(story.lines) < 3 and not telling.done():  # noqa: ASYNC110 - a story is looked at
        await asyncio.sleep(0.01)
    await story.end()
    await telling

    assert story.lines[-1].text == "sent back, canary first: somebody was quicker"
    assert story.lines[-1].done
