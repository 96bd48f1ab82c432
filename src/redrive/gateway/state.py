"""What a gateway tells about itself to whoever looks: how each model stands, in the records of who is alive."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

import msgspec

from redrive.core.ports import Clock, Subscription, TellsState
from redrive.gateway.gateway import Gateway

EVERY: Final = timedelta(seconds=1)


def state_of(gateway: Gateway, model: str) -> str:
    """How one model stands, as JSON: its requests by where they are, its limits now, and its breaker."""
    config = gateway.models[model]
    told: dict[str, Any] = {
        "gateway": model,
        **asdict(gateway.stats()[model]),
        "most": config.concurrency,
        "requests_per_minute": config.requests_per_minute,
        "tokens_per_minute": config.tokens_per_minute,
    }
    return msgspec.json.encode(told).decode()


async def tell_states(gateway: Gateway, subscriptions: Mapping[str, Subscription], *, clock: Clock) -> None:
    """Let the heartbeats of these subscriptions, by model, say how things stand; until cancelled."""
    tellers = {model: one for model, one in subscriptions.items() if isinstance(one, TellsState)}
    while tellers:
        for model, teller in tellers.items():
            teller.state = state_of(gateway, model)
        await clock.sleep(EVERY)
    await asyncio.Event().wait()
