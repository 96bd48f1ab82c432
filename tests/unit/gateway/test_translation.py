import json
from typing import Any

import pytest

from redrive.core.errors import RequestRejected
from redrive.gateway.forms import AnthropicForm, Form
from redrive.gateway.from_anthropic import Chunks, from_anthropic
from redrive.gateway.to_anthropic import to_anthropic

HI = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}}}


def test_a_conversation_with_tools_and_images_is_said_in_the_other_form() -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "add", "arguments": json.dumps({"a": n})}}
        for n in (1, 2)
    ]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    linked = {"type": "image_url", "image_url": {"url": "https://host/picture.png"}}
    messages, params = to_anthropic(
        {
            "model": "fast",
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "look"}, picture, linked]},
                {"role": "assistant", "content": "well", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "c1", "content": "3"},
                {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "4"}]},
                {"role": "assistant", "content": "done"},
                HI,
            ],
            "max_completion_tokens": 50,
            "temperature": 0.5,
            "stop": "END",
            "tools": [TOOL],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "user": "kim",
            "stream": True,
            "n": 1,
            "seed": None,
        }
    )

    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://host/picture.png"}},
    ]
    assert messages[2]["content"] == [
        {"type": "text", "text": "well"},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "add", "input": {"a": 2}},
    ]
    assert [block["tool_use_id"] for block in messages[3]["content"]] == ["c1", "c2"]
    assert params == {
        "max_tokens": 50,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "tools": [{"name": "add", "description": "adds", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "metadata": {"user_id": "kim"},
    }


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "add"}}, {"type": "tool", "name": "add"}),
    ],
)
def test_a_choice_of_tools_is_said(choice: Any, said: dict[str, Any]) -> None:
    assert to_anthropic({"messages": [HI], "tool_choice": choice})[1]["tool_choice"] == said


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"n": 2}, "n"),
        ({"store": True}, "store"),
        ({"metadata": {"job": "7"}}, "metadata"),
        ({"messages": [{**HI, "name": "kim"}]}, "messages[0].name"),
        ({"messages": [{"role": "assistant", "refusal": "no"}]}, "messages[0].refusal"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role"),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}, "tools[0].function.strict"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"a": 1}}]}]},
            "messages[0].content[0].cache_control",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"detail": "low"}}]}]},
            "messages[0].content[0].image_url.detail",
        ),
        ({"temperature": 1.5}, "temperature"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
        ({"tools": 7}, "tools"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"messages": [{"role": "assistant", "tool_calls": 7}]}, "messages[0].tool_calls"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
        ({"messages": [HI, {"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[1].content[0].type"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "audio": {"id": "1"}}]}, "messages[0].audio"),
        ({"messages": [{"role": "system", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "assistant", "tool_calls": [7]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x,y"}}]}]},
            "messages[0].content[0].image_url",
        ),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(body: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        to_anthropic({"messages": [HI], **body})

    assert str(caught.value).partition(": ")[0] == field


def test_what_asks_for_nothing_is_left_out() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://host/picture.png", "detail": "high"}}
    messages, params = to_anthropic(
        {
            "messages": [
                {"role": "user", "content": [picture], "name": None},
                {"role": "assistant", "content": "well", "refusal": None, "audio": None, "annotations": []},
                {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "3"},
            ],
            "store": False,
            "metadata": {},
            "tools": [{"type": "function", "function": {"name": "f", "strict": False}}],
        }
    )

    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert params == {"tools": [{"name": "f", "input_schema": {"type": "object"}}]}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("something new", "stop"),
    ],
)
def test_an_answer_is_said_back(told: str, said: str) -> None:
    raw = {
        "id": "msg_1",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "hello"},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        ],
        "stop_reason": told,
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 4},
    }
    answer = from_anthropic(raw, model="fast")

    choice = answer["choices"][0]
    assert choice["finish_reason"] == said
    assert choice["message"]["content"] == "hello"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
    assert answer["usage"] == {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "message_start", "message": 5},
        {"type": "message_delta", "usage": 5, "delta": 5},
        {"type": "message_delta", "delta": {"stop_reason": [{}]}},
        {"type": "content_block_start", "index": {}, "content_block": {"type": "tool_use", "id": [], "name": {}}},
        {"type": "content_block_delta", "index": [], "delta": {"type": "input_json_delta", "partial_json": [1]}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": {"a": 1}}},
        {"type": "ping"},
    ],
)
def test_a_strange_event_is_no_trouble(event: dict[str, Any]) -> None:
    assert len([*Chunks(model="fast", usage=True).of(event)]) <= 1
    strange = {"content": 5, "usage": {"input_tokens": "many"}, "stop_reason": {"a": []}}
    assert from_anthropic(strange, model="m")["usage"]["total_tokens"] == 0


def test_an_answer_in_one_piece_is_one_chunk_in_both_forms() -> None:
    whole = {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}]}
    (chunk,) = Form().chunks(whole)
    assert chunk["choices"] == [{"index": 0, "delta": {"role": "assistant", "content": "x"}}]
    assert chunk["object"] == "chat.completion.chunk"

    (chunk,) = AnthropicForm("fast", {}).chunks({"type": "message", "content": [{"type": "text", "text": "x"}]})
    assert chunk["choices"][0]["delta"]["content"] == "x"
