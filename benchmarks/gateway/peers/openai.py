"""The official client: one for all callers, two retries."""

import asyncio
import importlib
from functools import partial
from typing import Any

from benchmarks.gateway.driving import MESSAGES, RETRIES, TIMEOUT, Ask, drive, meet


def run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    return asyncio.run(_run(url, messages, in_flight))


def faults(url: str) -> dict[str, Any]:
    return asyncio.run(_faults(url))


def _client(url: str, **options: Any) -> Any:
    openai = importlib.import_module("openai")
    return openai.AsyncOpenAI(base_url=url, api_key="none", **options)


async def _run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    async with _client(f"{url}/ok/openai/v1") as client:
        return await drive(partial(_ask, client), messages=messages, in_flight=in_flight)


async def _ask(client: Any) -> str | None:
    answer = await client.chat.completions.create(model="model-1", messages=MESSAGES)
    return answer.choices[0].message.content if answer.choices else None


async def _faults(url: str) -> dict[str, Any]:
    def asks(fault: str) -> Ask:
        return partial(_ask, _client(f"{url}/{fault}/openai/v1", timeout=TIMEOUT, max_retries=RETRIES))

    return await meet(asks)
