"""An answer in the Anthropic form, said in the OpenAI form: whole, and event by event."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def from_anthropic(raw: Mapping[str, Any], *, model: str) -> dict[str, Any]:
    """A whole answer. Thoughts, which the other form does not know, are left out."""
    content = raw.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _reason(raw.get("stop_reason"))}
    usage = _usage(raw.get("usage"))
    return {**_head(raw, "chat.completion", model), "choices": [choice], "usage": usage}


class Chunks:
    """The chunks of one streamed answer, in the OpenAI form, from its events."""

    def __init__(self, *, model: str, usage: bool) -> None:
        self._model = model
        self._tell_usage = usage
        self._head: Mapping[str, Any] = {}
        self._calls: dict[str, int] = {}  # the number of a call by the place of its block
        self._usage: dict[str, Any] = {}

    def of(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """What an event says; nothing, if the other form has no word for it."""
        kind, delta, block = event.get("type"), _dict(event.get("delta")), _dict(event.get("content_block"))
        if kind == "message_start":
            self._head = _dict(event.get("message"))
            self._usage |= _dict(self._head.get("usage"))
            yield self._chunk({"role": "assistant", "content": ""})
        elif kind == "content_block_start" and block.get("type") == "tool_use":
            number = self._calls[str(event.get("index"))] = len(self._calls)
            call = _call({**block, "input": None})
            yield self._chunk({"tool_calls": [{"index": number, **call}]})
        elif kind == "content_block_delta" and delta.get("type") == "text_delta":
            yield self._chunk({"content": str(delta.get("text") or "")})
        elif kind == "content_block_delta" and delta.get("type") == "input_json_delta":
            number = self._calls.get(str(event.get("index")), 0)
            call = {"index": number, "function": {"arguments": str(delta.get("partial_json") or "")}}
            yield self._chunk({"tool_calls": [call]})
        elif kind == "message_delta":
            self._usage |= _dict(event.get("usage"))
            yield self._chunk({}, finish=_reason(delta.get("stop_reason")))
        elif kind == "message_stop" and self._tell_usage:
            yield {
                **_head(self._head, "chat.completion.chunk", self._model),
                "choices": [],
                "usage": _usage(self._usage),
            }

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**_head(self._head, "chat.completion.chunk", self._model), "choices": [choice]}


def _head(raw: Mapping[str, Any], kind: str, model: str) -> dict[str, Any]:
    return {"id": str(raw.get("id") or ""), "object": kind, "created": 0, "model": model}


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    given = block.get("input")
    arguments = "" if given is None else msgspec.json.encode(given).decode()
    function = {"name": str(block.get("name") or ""), "arguments": arguments}
    return {"id": str(block.get("id") or ""), "type": "function", "function": function}


def _reason(told: Any) -> str | None:
    return None if told is None else _REASONS.get(str(told), "stop")


def _usage(told: Any) -> dict[str, int]:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    counts = [count if type(count) is int else 0 for count in map(_dict(told).get, names)]
    read, written = sum(counts[:-1]), counts[-1]
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
