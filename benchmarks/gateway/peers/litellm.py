"""LiteLLM's Router: one deployment for each model, two retries."""

import asyncio
import importlib
import logging
import os
from functools import partial
from typing import Any

from benchmarks.gateway.driving import MESSAGES, RETRIES, TIMEOUT, drive, meet
from benchmarks.gateway.provider import FAULTS


def run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    return asyncio.run(_run(url, messages, in_flight))


def faults(url: str) -> dict[str, Any]:
    return asyncio.run(_faults(url))


def _router(models: dict[str, str], **options: Any) -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices when it is imported
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM Router").setLevel(logging.ERROR)
    deployments = [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/model-1", "api_base": url, "api_key": "none"},
        }
        for name, url in models.items()
    ]
    return litellm.Router(model_list=deployments, num_retries=RETRIES, **options)


async def _ask(router: Any, model: str) -> str | None:
    answer = await router.acompletion(model=model, messages=MESSAGES)
    return answer.choices[0].message.content if answer.choices else None


async def _run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    router = _router({"fast": f"{url}/ok/litellm/v1"})
    return await drive(partial(_ask, router, "fast"), messages=messages, in_flight=in_flight)


async def _faults(url: str) -> dict[str, Any]:
    router = _router({fault: f"{url}/{fault}/litellm/v1" for fault in (*FAULTS, "ok")}, timeout=TIMEOUT)
    return await meet(lambda fault: partial(_ask, router, fault))
