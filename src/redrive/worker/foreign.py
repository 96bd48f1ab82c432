"""A message in the hands of another framework's handler: what it holds, and what it says about being redriven."""

import inspect
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.marks import read_marks
from redrive.core.message import Headers, Message, without_reserved
from redrive.worker.payload import encode

MessageRule = Callable[[tuple[Any, ...], dict[str, Any]], object]
"""From a handler's arguments to its message: a `Message`, or the payload as bytes, text or anything JSON can say."""

# Exceptions by which a handler speaks to its framework rather than fails; known by name, so that none is imported.
_SIGNALS = frozenset(
    {
        "arq.worker.Retry",
        "arq.worker.RetryJob",
        "celery.exceptions.TaskPredicate",
        "dramatiq.errors.Retry",
        "faststream.exceptions.HandlerException",
        "faststream.exceptions.IgnoredException",
        "huey.exceptions.CancelExecution",
        "huey.exceptions.RetryTask",
        "taskiq.exceptions.NoResultError",
    }
)


def is_signal(error: BaseException) -> bool:
    """Whether an exception is meant for the framework: Celery's `Retry`, FastStream's `NackMessage` and the like."""
    return any(f"{kind.__module__}.{kind.__qualname__}" in _SIGNALS for kind in type(error).__mro__)


def all_arguments(handler: Callable[..., Any]) -> MessageRule:
    """The rule for a handler that has none: a single argument is the payload, several are written together.

    The `self` of a method or of a bound task is not counted.
    """
    first = 1 if _takes_self(handler) else 0

    def rule(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        values = (*args[first:], *kwargs.values())
        return values[0] if len(values) == 1 else {"args": args[first:], "kwargs": kwargs}

    return rule


def delivery_of(given: object, *, queue: str, now: datetime) -> Delivery:
    """What a rule gave, as a delivery from `queue`.

    Marks of a redrive are honoured only if they name this queue and no group: a group has a lane of its own. Raises
    `ConfigError` for an object with nothing in it that could be sent back.
    """
    message = _message(given, queue=queue)
    plain = message._replace(headers=without_reserved(message.headers))
    marks = read_marks(message.headers, queue=queue)
    if marks is None:
        return Delivery(plain, "", now)
    return Delivery(
        plain._replace(origin=marks.origin or message.origin),
        "",
        now,
        generation=marks.generation,
        letter_id=marks.letter_id,
        attempts_allowed=marks.attempts_allowed,
    )


def _message(given: object, *, queue: str) -> Message:
    message = given if isinstance(given, Message) else Message("", queue, _body(given))
    # Not from a `Random`: processes forked from one parent would draw the same ids for different messages.
    return message._replace(
        id=message.id or uuid.uuid4().hex,
        queue=queue,
        body=_body(message.body),
        headers=_headers(message.headers),
        key=None if message.key is None else _body(message.key),
    )


def _body(given: object) -> bytes:
    try:
        return encode(given)
    except Exception as error:  # noqa: BLE001 - a value can refuse in many ways, a model's own code among them
        return _readable(given, error)


def _readable(given: object, error: Exception) -> bytes:
    """What `encode` cannot say, as JSON in which objects without data stand as the name of their type."""
    try:
        text = json.dumps(given, default=_plain)
    except (TypeError, ValueError, RecursionError):
        text = ""
    if not text or text == json.dumps(_name(given)):
        why = f"expected a rule that finds the payload, because {_name(given)} cannot be written into a letter"
        raise ConfigError(f"message: {why}") from error
    return text.encode()


def _plain(value: object) -> object:
    try:
        dump = getattr(value, "model_dump", None)
        return msgspec.to_builtins(value, enc_hook=_name) if dump is None else dump(mode="json")
    except Exception:  # noqa: BLE001 - the same as in `_body`
        return _name(value)


def _name(value: object) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _headers(given: Mapping[str, object] | Iterable[tuple[str, object]] | None) -> Headers:
    """Headers of any client: pairs, a mapping or nothing, with values that are not always bytes."""
    pairs = given.items() if isinstance(given, Mapping) else given or ()
    return tuple((str(name), _header_value(value)) for name, value in pairs)


def _header_value(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return str(value).encode("utf-8", "surrogatepass")


def _takes_self(handler: Callable[..., Any]) -> bool:
    try:
        return next(iter(inspect.signature(handler).parameters), "") in {"self", "cls"}
    except (TypeError, ValueError):  # some builtins have no signature
        return False
