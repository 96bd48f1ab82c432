"""How a request is written for a provider, and how its answer is read: the OpenAI and the Anthropic form."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from redrive.core.errors import BadAnswer
from redrive.gateway.model import ModelConfig
from redrive.gateway.request import LLMRequest, Usage

ANTHROPIC_VERSION: Final = "2023-06-01"
_MAX_TOKENS: Final = 4096  # the Anthropic form cannot do without; what the OpenAI form leaves to the server


class Answer(NamedTuple):
    """What a provider's answer says."""

    text: str
    finish_reason: str
    usage: Usage | None
    raw: Mapping[str, Any]


class Part(NamedTuple):
    """What one event of a streamed answer says. `words`: something in it would be missed; `done`: it is the last.

    An event that only keeps the line alive says `nothing`. `spoke` and `finished` are choices of the answer, by index.
    """

    text: str = ""
    words: bool = False
    finish_reason: str = ""
    usage: Usage | None = None
    done: bool = False
    nothing: bool = False
    spoke: frozenset[int] = frozenset()
    finished: frozenset[int] = frozenset()


class Wire(NamedTuple):
    """One form: where requests go, which headers carry the key, how a body is made, and how answers are read."""

    path: str
    headers: Callable[[str], dict[str, str]]
    body: Callable[[ModelConfig, LLMRequest], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Answer]
    part: Callable[[Mapping[str, Any]], Part]


def _openai_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _openai_body(config: ModelConfig, request: LLMRequest) -> dict[str, Any]:
    return {"model": config.model_name, "messages": request.messages, **request.params}


def _openai_answer(raw: Mapping[str, Any]) -> Answer:
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise BadAnswer("the answer has no choices")
    content = message.get("content")
    if content is None and not message.keys() & {"tool_calls", "function_call", "refusal", "audio"}:
        raise BadAnswer("the answer's message has no content")
    text = content if isinstance(content, str) else _joined(content)
    return Answer(text, str(first.get("finish_reason") or ""), _usage(raw, "prompt_tokens", "completion_tokens"), raw)


def _openai_part(raw: Mapping[str, Any]) -> Part:
    choices = raw.get("choices")
    text = reason = ""
    words, spoke, finished = False, set[int](), set[int]()
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        index, delta, end = _count(choice.get("index")), choice.get("delta"), str(choice.get("finish_reason") or "")
        said: Mapping[str, Any] = delta if isinstance(delta, dict) else {}
        words = words or any(value for name, value in said.items() if name != "role")
        (finished if end else spoke).add(index)
        if index == 0:  # the answer, as in one that comes whole; the others are in the event
            text, reason = text + str(said.get("content") or ""), end
    usage = _usage(raw, "prompt_tokens", "completion_tokens")
    nothing = not (words or finished or usage)
    return Part(text, words, reason, usage, nothing=nothing, spoke=frozenset(spoke), finished=frozenset(finished))


def _anthropic_headers(key: str) -> dict[str, str]:
    version = {"anthropic-version": ANTHROPIC_VERSION}
    return {"x-api-key": key, **version} if key else version


def _anthropic_body(config: ModelConfig, request: LLMRequest) -> dict[str, Any]:
    system = [part for one in request.messages if one["role"] == "system" for part in _parts(one.get("content"))]
    body: dict[str, Any] = {"model": config.model_name, "max_tokens": _MAX_TOKENS}
    if system:
        body["system"] = system
    messages = [one for one in request.messages if one["role"] != "system"]
    return {**body, "messages": messages, **request.params}


def _anthropic_answer(raw: Mapping[str, Any]) -> Answer:
    content = raw.get("content")
    if raw.get("type", "message") != "message" or not isinstance(content, list):
        raise BadAnswer("the answer has no content")
    return Answer(
        _joined(content), str(raw.get("stop_reason") or ""), _usage(raw, "input_tokens", "output_tokens"), raw
    )


def _anthropic_part(raw: Mapping[str, Any]) -> Part:
    kind = raw.get("type")
    found = raw.get("delta")
    delta: Mapping[str, Any] = found if isinstance(found, dict) else {}
    if kind == "content_block_delta":
        return Part(str(delta.get("text") or ""), words=True)
    if kind == "message_start":
        message = raw.get("message")
        return Part(usage=_usage(message if isinstance(message, dict) else {}, "input_tokens", "output_tokens"))
    if kind == "message_delta":
        reason = str(delta.get("stop_reason") or "")
        return Part(finish_reason=reason, usage=_usage(raw, "input_tokens", "output_tokens"))
    return Part(done=kind == "message_stop", nothing=kind == "ping")


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]


def _joined(content: Any) -> str:
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def _usage(raw: Mapping[str, Any], read: str, written: str) -> Usage | None:
    usage = raw.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(_count(usage.get(read)), _count(usage.get(written)))


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


WIRES: Final[Mapping[str, Wire]] = {
    "openai": Wire("/chat/completions", _openai_headers, _openai_body, _openai_answer, _openai_part),
    "anthropic": Wire("/messages", _anthropic_headers, _anthropic_body, _anthropic_answer, _anthropic_part),
}
