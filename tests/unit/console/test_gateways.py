"""The page of gateways: what each of them tells about itself."""

import json
from datetime import timedelta
from typing import Any

import pytest

from redrive.core.ports import Options, TellsState
from tests.unit.console.stage import ConsoleStage

NOTE = "A gateway without a broker lives in the memory of its process: it is not shown."


async def a_gateway(stage: ConsoleStage, model: str = "fast", *, state: str | None = None, **told: Any) -> None:
    """A gateway that is alive, and has told this."""
    options = Options(owner=f"web-{model}")
    subscription = await stage.broker.subscribe(f"llm.{model}", group="gateway", options=options)
    assert isinstance(subscription, TellsState)
    subscription.state = json.dumps({"gateway": model, "limit": 8, "most": 64, **told}) if state is None else state
    await subscription.heartbeat()


def cells(row: list[str]) -> list[str]:
    return [row[1], *row[4:11]]


async def test_without_a_gateway_the_page_says_what_is_not_shown() -> None:
    async with ConsoleStage() as stage:
        await stage.consumer("orders")
        seen = await stage.see("/gateways")

        assert seen.headings[:2] == ["Gateways", "No gateway is alive here"]
        assert NOTE in seen.text


async def test_a_gateway_is_shown_with_its_queues_limits_and_postponed_requests() -> None:
    async with ConsoleStage() as stage:
        told: dict[str, Any] = {"queued": 3, "in_flight": 7, "postponed": 2, "answered": 1200, "failed": 4}
        await a_gateway(stage, **told, requests_per_minute=600, tokens_per_minute=90_000)
        seen = await stage.see("/gateways")

        (row,) = seen.rows
        assert row[0].startswith("fast ")
        assert "heard of" in row[0]
        assert row[2:4] == ["0", "0"]
        assert cells(row) == ["running", "3", "2", "7", "8 of 64", "600 requests 90,000 tokens", "1,200", "4"]
        assert NOTE in seen.text
        assert (await stage.live("/gateways")).rows == seen.rows


async def test_what_holds_a_model_back_is_said() -> None:
    async with ConsoleStage() as stage:
        until = stage.clock.now() + timedelta(minutes=2)
        await a_gateway(stage, "broken", breaker="half of 40 calls failed")
        await a_gateway(stage, "told", closed_until=until.isoformat())
        await a_gateway(stage, "was-told", closed_until=(until - timedelta(hours=1)).isoformat())
        await stage.broker.pause("llm.was-told", group="gateway", why="a person said so")
        states = {row[0].split()[0]: row[1] for row in (await stage.see("/gateways")).rows}

        assert states["broken"] == "breaker open half of 40 calls failed"
        assert states["told"].startswith("told to wait for 2")
        assert states["was-told"] == "paused a person said so"


@pytest.mark.parametrize("state", ["", "no JSON", "[]", '{"gateway": 3}', '{"limit": 1}', "{" * 5000])
async def test_who_tells_nothing_or_nonsense_is_no_gateway(state: str) -> None:
    async with ConsoleStage() as stage:
        await a_gateway(stage, state=state)

        assert (await stage.see("/gateways")).rows == []


async def test_what_a_gateway_says_of_itself_is_text() -> None:
    async with ConsoleStage() as stage:
        await a_gateway(stage, "fast", breaker="<script>alert(1)</script>")
        page = (await stage.get("/gateways")).text

        assert "<script>alert" not in page


async def test_a_viewer_sees_the_page() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.as_("viewer")
        assert (await stage.see("/gateways")).headings[0] == "Gateways"
