"""httpx: one client, with as many connections as there are callers."""

import asyncio
import importlib
from typing import Any

from benchmarks.gateway.driving import MESSAGES, drive


def run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    return asyncio.run(_run(url, messages, in_flight))


async def _run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    httpx = importlib.import_module("httpx")
    address = f"{url}/ok/httpx/v1/chat/completions"
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:

        async def ask() -> None:
            response = await client.post(address, json={"model": "model-1", "messages": MESSAGES})
            response.raise_for_status().json()

        return await drive(ask, messages=messages, in_flight=in_flight)
