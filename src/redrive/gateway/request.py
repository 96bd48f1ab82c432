"""A request to a model, and its answer."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from redrive.core.duration import NOW, Duration, as_duration
from redrive.core.errors import RequestRejected

LONGEST_NAME: Final = 200
_SHOWN: Final = 100  # of what was given instead of what was expected: a mistake may be a whole conversation
_OURS: Final = frozenset({"model", "messages", "stream"})
_CHANCE: Final = Random()  # noqa: S311 - names, not secrets; asking the system for each would cost as much as the rest
os.register_at_fork(after_in_child=_CHANCE.seed)


@dataclass(frozen=True, slots=True, init=False)
class LLMRequest:
    """What an agent asks of a model.

    `params` go to the provider as they are (`temperature`, `max_tokens`, `tools` …). A higher `priority` is served
    sooner. `deadline` is for all of it: queue, attempts and waits; None is the model's own. `est_tokens` is what the
    request may cost, reserved before it is sent where the model has a limit of tokens. `metadata` stays here and goes
    into the dead letter. Two requests with one `request_id` are one request. What is put into the list of messages or
    taken out of it later is not in the request.

    Raises `RequestRejected` with every mistake at once.
    """

    agent_id: str
    model: str
    messages: Sequence[Mapping[str, Any]]
    params: Mapping[str, Any]
    request_id: str
    priority: int
    deadline: timedelta | None
    est_tokens: int | None
    metadata: Mapping[str, Any]

    def __init__(  # noqa: PLR0913 - the fields of a request, each by its name
        self,
        *,
        agent_id: str,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        params: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        priority: int = 0,
        deadline: Duration | None = None,
        est_tokens: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            "agent_id": agent_id,
            "model": model,
            "messages": [*messages] if isinstance(messages, list) else messages,
            "params": {} if params is None else params,
            "request_id": f"{_CHANCE.getrandbits(128):032x}" if request_id is None else request_id,
            "priority": priority,
            "deadline": deadline,
            "est_tokens": est_tokens,
            "metadata": {} if metadata is None else metadata,
        }
        mistakes = _mistakes(given)
        if deadline is not None:
            try:
                given["deadline"] = as_duration(deadline)
                if given["deadline"] == NOW:
                    mistakes.append("deadline: expected more than zero")
            except ValueError as error:
                mistakes.append(f"deadline: {error}")
        if mistakes:
            raise RequestRejected("\n".join(mistakes))
        put = object.__setattr__
        for name, value in given.items():
            put(self, name, value)

    def to_json(self) -> bytes:
        """The whole request, as it stands in a dead letter. Raises `RequestRejected` for what JSON cannot say."""
        row = {name: getattr(self, name) for name in _KEPT}
        row["deadline"] = None if self.deadline is None else self.deadline.total_seconds()
        return encode({name: value for name, value in row.items() if value or name in _ALWAYS})

    @property
    def fingerprint(self) -> str:
        """What is asked, in short: of two requests with one id and two fingerprints one is a mistake."""
        asked = {"model": self.model, "messages": self.messages, "params": self.params}
        return hashlib.sha256(encode(asked)).hexdigest()[:32]

    def within(self, deadline: Duration) -> "LLMRequest":
        """The same request with another deadline."""
        return LLMRequest(**{name: getattr(self, name) for name in _KEPT} | {"deadline": deadline})

    def named(self, request_id: str) -> "LLMRequest":
        """The same request with another id."""
        return LLMRequest(**{name: getattr(self, name) for name in _KEPT} | {"request_id": request_id})

    @classmethod
    def from_json(cls, body: bytes) -> "LLMRequest":
        """The request that `to_json` wrote. Raises `RequestRejected`."""
        try:
            row = msgspec.json.decode(body, type=dict[str, Any])
            return cls(**row)
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
            raise RequestRejected(f"this is no request to a model: {error}") from error


_KEPT: Final = LLMRequest.__dataclass_fields__.keys()
_ALWAYS: Final = ("agent_id", "model", "messages", "request_id")


class Usage(NamedTuple):
    """The tokens that an answer cost."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens


class LLMResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer. `raw` is the provider's, whole.

    `attempts` counts the one that succeeded. `latency_ms` is the time of that attempt, `queue_ms` the time from when
    the request was accepted, or its retry was due, until it was sent, `total_ms` all of it. `possibly_executed`: an
    earlier attempt may have been executed too. One that is kept has the `fingerprint` of its request.
    """

    request_id: str
    model: str
    text: str
    finish_reason: str = ""
    usage: Usage | None = None
    raw: Mapping[str, Any] = msgspec.field(default_factory=dict)
    attempts: int = 1
    provider_request_id: str = ""
    latency_ms: float = 0.0
    queue_ms: float = 0.0
    total_ms: float = 0.0
    possibly_executed: bool = False
    fingerprint: str = ""

    def __repr__(self) -> str:
        shown = ((name, getattr(self, name)) for name in self.__struct_fields__ if name not in ("raw", "fingerprint"))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def to_json(self) -> bytes:
        """The whole answer, to be kept."""
        return encode(self)

    @classmethod
    def from_json(cls, body: bytes) -> "LLMResponse":
        """The answer that `to_json` wrote. Raises `ValueError`."""
        return msgspec.json.decode(body, type=cls)


def encode(value: Any) -> bytes:
    """The value as JSON. Raises `RequestRejected` for what JSON cannot say."""
    try:
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise RequestRejected(f"this cannot be said in JSON: {error}") from error


def _mistakes(given: Mapping[str, Any]) -> list[str]:
    mistakes = [
        f"{name}: expected a text of 1 to {LONGEST_NAME} printable characters, got {_shown(given[name])}"
        for name in ("agent_id", "model", "request_id")
        if not _is_name(given[name])
    ]
    messages = given["messages"]
    if isinstance(messages, str | bytes) or not isinstance(messages, list | Sequence) or not messages:
        mistakes.append(f"messages: expected one message at least, got {_shown(messages)}")
    else:
        for index, one in enumerate(messages):
            if not _is_mapping(one) or not isinstance(one.get("role"), str):
                mistakes.append(f"messages[{index}]: expected a mapping with a role, got {_shown(one)}")
    for name in ("params", "metadata"):
        if not _is_mapping(given[name]):
            mistakes.append(f"{name}: expected a mapping, got {_shown(given[name])}")
        elif name == "params" and given[name] and (wrong := _OURS & given[name].keys()):
            mistakes.append(f"params: {', '.join(sorted(wrong))} cannot be given here")
    if isinstance(given["priority"], bool) or not isinstance(given["priority"], int):
        mistakes.append(f"priority: expected a whole number, got {given['priority']!r}")
    tokens = given["est_tokens"]
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1):
        mistakes.append(f"est_tokens: expected a whole number of 1 or more, got {tokens!r}")
    return mistakes


def _shown(value: Any) -> str:
    """The beginning of a value."""
    text = repr(value[:_SHOWN] if isinstance(value, str | bytes) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_mapping(value: Any) -> bool:
    return type(value) is dict or isinstance(value, Mapping)  # most are; asking the second costs four times as much


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()
