"""aiohttp alone: one session, the answer read as JSON; nothing is retried, limited, queued or written down."""

import asyncio
from typing import Any

import aiohttp

from benchmarks.gateway.driving import MESSAGES, drive


def run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    return asyncio.run(_run(url, messages, in_flight))


async def _run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    address = f"{url}/ok/aiohttp/v1/chat/completions"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            async with session.post(address, json={"model": "model-1", "messages": MESSAGES}) as response:
                response.raise_for_status()
                await response.json()

        return await drive(ask, messages=messages, in_flight=in_flight)
