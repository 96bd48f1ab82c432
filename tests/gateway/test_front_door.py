"""The front door, asked by the official client of the form it speaks, and by strangers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from redrive.clock import SystemClock
from redrive.gateway import Gateway, ModelConfig
from redrive.gateway.front_door import FrontDoor
from tests.gateway.fault_server import DONE, EVENTS, PATIENCE, FaultServer, event, refuse, say, words, write

ROLE = event(id="c1", object="chat.completion.chunk", created=1, model="m", choices=[{"index": 0, "delta": {}}])
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]


@asynccontextmanager
async def a_door(**model: object) -> AsyncIterator[tuple[FrontDoor, FaultServer]]:
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE):
        fields: dict[str, object] = {"base_url": server.url, "model_name": "model-1", **model}
        models = {"fast": ModelConfig(**fields)}  # type: ignore[arg-type]
        async with Gateway(models, policy=[0, 0]) as gateway, FrontDoor(gateway, port=0) as door:
            yield door, server


@asynccontextmanager
async def a_client(door: FrontDoor) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=door.url, api_key="none", default_headers={"X-Agent-Id": "tester"}
    ) as client:
        yield client


async def ask(client: openai.AsyncOpenAI) -> ChatCompletion:
    return await client.chat.completions.create(model="fast", messages=MESSAGES)


async def test_the_official_client_gets_its_answer_after_a_fault_it_never_sees() -> None:
    async with a_door() as (door, server), a_client(door) as client:
        server.plan(say(503))
        answer = await client.chat.completions.create(model="fast", messages=MESSAGES, temperature=0.5)

        assert answer.choices[0].message.content == "hello"
        assert len(server.visits) == 2
        assert server.visits[1].body["model"] == "model-1"
        assert server.visits[1].body["temperature"] == 0.5


async def test_the_official_client_gets_a_stream() -> None:
    async with a_door() as (door, server), a_client(door) as client:
        server.plan(say(500), write(EVENTS + ROLE + words("hel") + words("lo", "stop") + DONE))
        stream = await client.chat.completions.create(model="fast", messages=MESSAGES, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]

        assert "".join(texts) == "hello"


async def test_the_official_client_sees_that_a_stream_was_cut() -> None:
    async with a_door() as (door, server), a_client(door) as client:
        server.plan(write(EVENTS + words("hel")))
        stream = await client.chat.completions.create(model="fast", messages=MESSAGES, stream=True)
        assert (await anext(aiter(stream))).choices[0].delta.content == "hel"
        with pytest.raises(openai.APIError, match="broke off"):
            await anext(aiter(stream))


@pytest.mark.parametrize(
    ("status", "code", "kind", "calls"),
    [
        (400, "bad_request", openai.BadRequestError, 1),
        (404, "model_not_found", openai.NotFoundError, 1),
        (422, "unprocessable", openai.UnprocessableEntityError, 1),
        (401, "invalid_api_key", openai.InternalServerError, 1),
        (429, "insufficient_quota", openai.RateLimitError, 1),
        (429, "rate_limit_exceeded", openai.RateLimitError, 3),
        (500, "boom", openai.InternalServerError, 3),
    ],
)
async def test_the_official_client_gets_its_own_errors_and_retries_nothing_again(
    status: int, code: str, kind: type[openai.APIStatusError], calls: int
) -> None:
    async with a_door() as (door, server), a_client(door) as client:
        server.rule = lambda _: refuse(status, code)
        with pytest.raises(kind) as caught:
            await ask(client)

        assert len(server.visits) == calls
        assert caught.value.code == code


async def test_models_and_health_are_shown() -> None:
    async with a_door() as (door, _), a_client(door) as client:
        assert [model.id async for model in client.models.list()] == ["fast"]
        async with httpx2.AsyncClient() as plain:
            health = (await plain.get(door.url.removesuffix("/v1") + "/health")).json()
        assert health["fast"]["queued"] == 0


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"{", {}, "no JSON object"),
        (b"[]", {}, "no JSON object"),
        (b"{}", {}, "messages"),
        (json.dumps({"model": "slow", "messages": MESSAGES}).encode(), {}, "expected one of fast"),
        (json.dumps({"model": "fast", "messages": MESSAGES}).encode(), {"X-Priority": "urgent"}, "X-Priority"),
        (json.dumps({"model": "fast", "messages": MESSAGES}).encode(), {"X-Priority": "9" * 5000}, "X-Priority"),
        (json.dumps({"model": "fast", "messages": MESSAGES}).encode(), {"X-Deadline": "soon"}, "deadline"),
        (json.dumps({"model": "fast", "messages": MESSAGES}).encode(), {"Content-Type": "text/plain"}, "Content-Type"),
    ],
)
async def test_what_is_no_request_is_a_400_that_says_why(body: bytes, headers: dict[str, str], said: str) -> None:
    async with a_door() as (door, server), httpx2.AsyncClient() as client:
        sent = {"Content-Type": "application/json", **headers}
        response = await client.post(f"{door.url}/chat/completions", content=body, headers=sent)

        assert response.status_code == 400
        assert said in response.json()["error"]["message"]
        assert server.visits == []


async def test_a_client_that_leaves_calls_its_request_off() -> None:
    async with a_door() as (door, server), a_client(door) as client:
        server.rule = lambda _: write(b"", then="hang")
        asking = asyncio.create_task(ask(client))
        await server.arrived(1)
        asking.cancel()
        await server.gone(1)

        assert (len(server.visits), server.left) == (1, 1)


async def test_the_headers_of_a_call_name_its_request() -> None:
    async with a_door() as (door, _), httpx2.AsyncClient() as client:
        body = {"model": "fast", "messages": MESSAGES}
        headers = {"X-Request-Id": "mine", "X-Priority": "-3", "X-Deadline": "90s"}
        response = await client.post(f"{door.url}/chat/completions", json=body, headers=headers)

        assert (response.status_code, response.headers["x-request-id"]) == (200, "mine")
        assert response.headers["x-redrive-attempts"] == "1"
