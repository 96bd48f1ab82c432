"""A request in the OpenAI form, said in the Anthropic form. What cannot be said is refused by name."""

from collections.abc import Callable, Container, Mapping
from typing import Any, Final

import msgspec

from redrive.core.errors import RequestRejected

Block = dict[str, Any]

_HOTTEST: Final = 1  # the highest temperature that this form knows
_SAME: Final = ("temperature", "top_p", "max_tokens")
_READ: Final = frozenset(
    {
        *(*_SAME, "max_completion_tokens", "stop", "tools", "tool_choice", "parallel_tool_calls"),
        *("user", "n", "stream_options", "model", "messages", "stream"),
    }
)
_UNLESS_SAID: Final = frozenset({"metadata", "store"})  # whose empty values ask for nothing
_SPOKEN: Final = {  # what a message may say, by its role
    "system": ("role", "content"),
    "developer": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls"),
    "tool": ("role", "content", "tool_call_id", "name"),  # the name is that of the call, which has it already
}
_FULL: Final = (None, "auto", "high")  # how this form looks at every image
_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}


def to_anthropic(body: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The messages and the parameters. Raises `RequestRejected` that names the first field that cannot be said."""
    asked = {name: value for name, value in body.items() if value or name not in _UNLESS_SAID}
    strange = sorted(name for name, value in asked.items() if name not in _READ and value is not None)
    if strange:
        raise _cannot(strange[0])
    said: list[dict[str, Any]] = []
    for index, message in enumerate(_list(body.get("messages"), "messages")):
        _append(said, _message(message, f"messages[{index}]"))
    return said, _params(body)


def _append(said: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Results of tools that were called together belong into one message."""
    last = said[-1] if said else {}
    if message["role"] == last.get("role") == "user" and _is_results(message) and _is_results(last):
        last["content"].extend(message["content"])
    else:
        said.append(message)


def _is_results(message: Mapping[str, Any]) -> bool:
    return all(block["type"] == "tool_result" for block in message["content"])


def _message(message: Any, place: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise RequestRejected(f"{place}: expected a mapping")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in _SPOKEN:
        raise _cannot(f"{place}.role")
    _only(message, _SPOKEN[role], place)
    if role in ("system", "developer"):
        return {"role": "system", "content": _blocks(content, place, only_text=True)}
    if role == "user":
        return {"role": "user", "content": _blocks(content, place)}
    if role == "tool":
        text = _blocks(content, place, only_text=True)
        result = {"type": "tool_result", "tool_use_id": str(message.get("tool_call_id") or ""), "content": text}
        return {"role": "user", "content": [result]}
    blocks = _blocks(content, place, only_text=True) if content else []
    calls = _list(message.get("tool_calls") or [], f"{place}.tool_calls")
    return {
        "role": "assistant",
        "content": blocks + [_use(c, f"{place}.tool_calls[{n}]") for n, c in enumerate(calls)],
    }


def _blocks(content: Any, place: str, *, only_text: bool = False) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise RequestRejected(f"{place}.content: expected a text or a list of parts")
    return [_block(part, f"{place}.content[{index}]", only_text=only_text) for index, part in enumerate(content)]


def _block(part: Any, place: str, *, only_text: bool) -> Block:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        _only(part, ("type", "text"), place)
        return {"type": "text", "text": str(part.get("text", ""))}
    if kind == "image_url" and not only_text:
        image = part.get("image_url")
        if isinstance(image, dict) and image.get("detail") not in _FULL:
            raise _cannot(f"{place}.image_url.detail")
        return {"type": "image", "source": _source(image.get("url") if isinstance(image, dict) else image, place)}
    raise _cannot(f"{place}.type")


def _source(url: Any, place: str) -> Block:
    if not isinstance(url, str):
        raise RequestRejected(f"{place}.image_url: expected a URL")
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, mark, data = url.removeprefix("data:").partition(";base64,")
    if not mark:
        raise _cannot(f"{place}.image_url")
    return {"type": "base64", "media_type": kind, "data": data}


def _use(call: Any, place: str) -> Block:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise _cannot(place)
    try:
        given = msgspec.json.decode(function.get("arguments") or "{}", type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise RequestRejected(f"{place}.function.arguments: expected a JSON object") from error
    return {
        "type": "tool_use",
        "id": str(call.get("id") or ""),
        "name": str(function.get("name") or ""),
        "input": given,
    }


def _params(body: Mapping[str, Any]) -> dict[str, Any]:
    if body.get("n") not in (None, 1):
        raise _cannot("n")
    if isinstance(body.get("temperature"), int | float) and body["temperature"] > _HOTTEST:
        raise _cannot("temperature")
    params: dict[str, Any] = {name: body[name] for name in _SAME if body.get(name) is not None}
    read: dict[str, Callable[[Any], dict[str, Any]]] = {
        "max_completion_tokens": lambda most: {"max_tokens": most},
        "stop": lambda stop: {"stop_sequences": [stop] if isinstance(stop, str) else stop},
        "user": lambda user: {"metadata": {"user_id": user}},
        "tools": lambda tools: {
            "tools": [_tool(tool, f"tools[{index}]") for index, tool in enumerate(_list(tools, "tools"))]
        },
        "tool_choice": lambda choice: {"tool_choice": _choice(choice)},
    }
    for name, make in read.items():
        if body.get(name) is not None:
            params |= make(body[name])
    if body.get("parallel_tool_calls") is False and "tools" in params:
        params.setdefault("tool_choice", {"type": "auto"})["disable_parallel_tool_use"] = True
    return params


def _tool(tool: Any, place: str) -> Block:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    if not isinstance(function, dict):
        raise _cannot(f"{place}.type")
    _only(function, ("name", "description", "parameters"), f"{place}.function")
    said = {"name": function.get("name"), "input_schema": function.get("parameters") or {"type": "object"}}
    return said | ({"description": function["description"]} if function.get("description") else {})


def _choice(choice: Any) -> Block:
    if isinstance(choice, str) and choice in _CHOICES:
        return {"type": _CHOICES[choice]}
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict):
        raise _cannot("tool_choice")
    return {"type": "tool", "name": function.get("name")}


def _only(said: Mapping[str, Any], known: Container[str], place: str) -> None:
    """Raises `RequestRejected` if anything else is said; an empty value says nothing."""
    strange = sorted(str(name) for name, value in said.items() if name not in known and value)
    if strange:
        raise _cannot(f"{place}.{strange[0]}")


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise RequestRejected(f"{place}: expected a list")
    return value


def _cannot(field: str) -> RequestRejected:
    return RequestRejected(f"{field}: cannot be said in the form of this model")
