"""async-batch-llm's pool: over aiohttp where its cost is measured, over the official client where faults are met."""

import asyncio
import importlib
import logging
from functools import partial
from typing import Any

from benchmarks.gateway.driving import PROMPT, RETRIES, TIMEOUT, drive, meet


def run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    return asyncio.run(_run(url, messages, in_flight))


def faults(url: str) -> dict[str, Any]:
    return asyncio.run(_faults(url))


async def _run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    library, aiohttp = importlib.import_module("async_batch_llm"), importlib.import_module("aiohttp")
    address = f"{url}/ok/async-batch-llm/v1/chat/completions"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def invoke(prompt: str, **_: Any) -> Any:
            said = {"model": "model-1", "messages": [{"role": "user", "content": prompt}]}
            async with session.post(address, json=said) as response:
                response.raise_for_status()
                answer = await response.json()
            text, usage = answer["choices"][0]["message"]["content"], answer["usage"]
            return library.CallOutcome(text, {name: usage[name] for name in ("prompt_tokens", "completion_tokens")})

        config = library.ProcessorConfig(max_workers=in_flight)
        async with library.LLMCallPool(library.CallableStrategy(invoke), config=config) as pool:
            return await drive(partial(_ask, pool), messages=messages, in_flight=in_flight)


async def _ask(pool: Any) -> Any:
    return await pool.submit(PROMPT)


async def _faults(url: str) -> dict[str, Any]:
    logging.disable(logging.CRITICAL)
    return await meet(lambda fault: partial(_ask, _pool(f"{url}/{fault}/async-batch-llm/v1")))


def _pool(url: str) -> Any:
    library, openai = importlib.import_module("async_batch_llm"), importlib.import_module("openai")
    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    model = library.OpenAIModel("model-1", client, api_surface="chat_completions")
    config = library.ProcessorConfig(
        max_workers=1, attempt_timeout=TIMEOUT, retry=library.RetryConfig(max_attempts=RETRIES + 1)
    )
    return library.LLMCallPool(library.OpenAIStrategy(model), config=config)
