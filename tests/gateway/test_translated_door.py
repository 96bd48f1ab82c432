"""The front door before a model that speaks the Anthropic form, asked by the official client of the other one."""

import json
from typing import Any

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from tests.gateway.fault_server import EVENTS, event, refuse, say, write
from tests.gateway.test_front_door import a_client, a_door

MESSAGES: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "add 1 and 2"},
]
TOOLS: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
]
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "model-1",
    "content": [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


def named(**fields: Any) -> bytes:
    return f"event: {fields['type']}\n".encode() + event(**fields)


START = {**ANSWER, "content": [], "stop_reason": None}
STREAM = (
    EVENTS
    + named(type="message_start", message=START)
    + named(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
    + named(type="ping")
    + named(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "so"})
    + named(type="content_block_stop", index=0)
    + named(
        type="content_block_start",
        index=1,
        content_block={"type": "tool_use", "id": "c1", "name": "add", "input": {}},
    )
    + named(type="content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"a":'})
    + named(type="content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "1}"})
    + named(type="content_block_stop", index=1)
    + named(type="message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 9})
    + named(type="message_stop")
)


async def test_an_answer_comes_through_in_the_clients_own_form() -> None:
    async with a_door(wire="anthropic") as (door, server), a_client(door) as client:
        server.plan(refuse(529, "overloaded_error"), say(body=json.dumps(ANSWER).encode()))
        answer = await client.chat.completions.create(model="fast", messages=MESSAGES, tools=TOOLS, max_tokens=50)

        choice = answer.choices[0]
        assert (choice.message.content, choice.finish_reason) == ("so", "tool_calls")
        assert choice.message.tool_calls is not None
        assert choice.message.tool_calls[0].model_dump()["function"] == {"name": "add", "arguments": '{"a":1}'}
        assert answer.usage is not None
        assert answer.usage.total_tokens == 7
        sent = server.visits[1].body
        assert server.visits[1].path == "/v1/messages"
        assert sent["system"] == [{"type": "text", "text": "be brief"}]
        assert [message["role"] for message in sent["messages"]] == ["user"]
        assert (sent["max_tokens"], sent["tools"][0]["name"]) == (50, "add")


async def test_a_stream_comes_through_in_the_clients_own_form() -> None:
    async with a_door(wire="anthropic") as (door, server), a_client(door) as client:
        server.plan(write(STREAM))
        stream = await client.chat.completions.create(
            model="fast", messages=MESSAGES, tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]

    deltas = [chunk.choices[0] for chunk in chunks if chunk.choices]
    calls = [call for choice in deltas for call in choice.delta.tool_calls or ()]
    assert "".join(choice.delta.content or "" for choice in deltas) == "so"
    assert "".join(call.function.arguments or "" for call in calls if call.function) == '{"a":1}'
    assert (calls[0].id, deltas[-1].finish_reason) == ("c1", "tool_calls")
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (3, 9)


async def test_what_cannot_be_said_is_a_400_that_names_the_field() -> None:
    async with a_door(wire="anthropic") as (door, server), a_client(door) as client:
        with pytest.raises(openai.BadRequestError, match="logprobs: cannot be said"):
            await client.chat.completions.create(model="fast", messages=MESSAGES, logprobs=True)

        assert server.visits == []


async def test_the_answers_of_these_tests_are_those_of_the_real_thing() -> None:
    async with a_door() as (_, server), anthropic.AsyncAnthropic(api_key="k", base_url=server.url[:-3]) as client:
        server.plan(say(body=json.dumps(ANSWER).encode()), write(STREAM))
        asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        answer = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            streamed = await stream.get_final_message()

        for message in (answer, streamed):
            assert [block.type for block in message.content] == ["text", "tool_use"]
            assert message.stop_reason == "tool_use"
        assert server.visits[0].path == "/v1/messages"
