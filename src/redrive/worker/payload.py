"""From bytes to what the handler asks for: typed payloads, and the other arguments by annotation."""

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.core.reason import Reason

Decode = Callable[[bytes], Any]
Fill = Callable[[Delivery, Any], Any]
Arguments = Callable[[Delivery], list[Any]]


class InvalidPayload(GiveUp):
    """The message is not what the handler asks for: a dead letter at once, a retry cannot help.

    `stage` is what refused it: `decode`, `schema` or `validate`, or a name of your own. `safe` is what may be said of
    it where nothing of the message may be kept: words of the program, never of the payload.
    """

    def __init__(
        self,
        why: str,
        *,
        code: str = "invalid_payload",
        stage: str = "validate",
        severity: str = "error",
        safe: str = "",
    ) -> None:
        super().__init__(why, code=code, reason=Reason.INVALID, severity=severity)
        self.stage = stage
        self.safe = safe


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler asks for, read once.

    `arguments` makes the handler's arguments for one delivery and raises `InvalidPayload`; `only` makes the one
    argument of a handler that has one, and `decode` makes it of the payload alone, if it asks for nothing else.
    `wants_delivery` says whether a deadline must be worked out.
    """

    arguments: Arguments
    wants_delivery: bool
    only: Callable[[Delivery], Any] | None = None
    decode: Decode | None = None

    def after(self, check: Callable[[Delivery], None]) -> "Signature":
        """The same, with every delivery checked first: what the check raises is raised."""
        arguments, only = self.arguments, self.only

        def checked(delivery: Delivery) -> list[Any]:
            check(delivery)
            return arguments(delivery)

        def checked_only(delivery: Delivery) -> Any:
            check(delivery)
            return only(delivery) if only is not None else None

        return Signature(checked, self.wants_delivery, None if only is None else checked_only)

    def call(self, handler: Callable[..., T]) -> Callable[[Delivery], T]:
        """The handler as a function of one delivery: made for every message, so the usual ones are made directly."""
        only, arguments = self.only, self.arguments
        if only is None:
            return lambda delivery: handler(*arguments(delivery))
        if only is _body:
            return lambda delivery: handler(delivery[0][2])
        return lambda delivery: handler(only(delivery))

    def by_body(self, handler: Callable[..., T]) -> Callable[[bytes], T] | None:
        """The handler as a function of a payload; None if it asks for more."""
        decode = self.decode
        if decode is None:
            return None
        return handler if decode is bytes else lambda body: handler(decode(body))


def read_signature(handler: Callable[..., Any], *, resources: Sequence[object] = (), batch: bool = False) -> Signature:
    """Read a handler's parameters. Raises `ConfigError` naming every parameter that cannot be filled.

    `Message` and `Delivery` are filled by annotation, and so is whatever `lifespan` yielded. The one parameter
    that is left is the payload. A batch handler's parameter is a list of any of these.
    """
    hints = _hints(handler)
    decode: Decode = _nothing
    fill: list[Fill] = []
    mistakes: list[str] = []
    payloads = 0
    wants_delivery = False
    for parameter in _parameters(handler):
        hint = hints.get(parameter.name, Any)
        wanted = _item_of(hint) if batch else hint
        if wanted is Message:
            fill.append(_message)
        elif wanted is Delivery:
            wants_delivery = True
            fill.append(lambda delivery, _: delivery)
        elif (found := _resource(hint, resources)) is not None:
            fill.append(lambda _, __, found=found: found)  # type: ignore[misc]
        elif payloads == 0:
            payloads = 1
            decode = _decoder(wanted)
            fill.append(_payload)
        else:
            mistakes.append(
                f"{_name(handler)}: nothing to fill parameter {parameter.name!r} with; "
                f"expected Message, Delivery, or what lifespan yields, got {hint!r}"
            )
    if mistakes:
        raise ConfigError(mistakes)
    return Signature(
        _arguments(decode, fill), wants_delivery, _only(decode, fill), decode if fill == [_payload] else None
    )


def _only(decode: Decode, fill: Sequence[Fill]) -> Callable[[Delivery], Any] | None:
    if fill == [_message]:
        return _just_message
    if fill == [_payload]:
        return _body if decode is bytes else lambda delivery: decode(delivery[0][2])
    return None


def _arguments(decode: Decode, fill: Sequence[Fill]) -> Arguments:
    if list(fill) == [_payload]:  # most often: nothing else is asked for
        return lambda delivery: [decode(delivery[0][2])]

    def arguments(delivery: Delivery) -> list[Any]:
        value = decode(delivery.message.body)
        return [one(delivery, value) for one in fill]

    return arguments


def _payload(_: Delivery, value: Any) -> Any:
    return value


def _message(delivery: Delivery, _: Any) -> Message:
    return delivery.message


def _just_message(delivery: Delivery) -> Message:
    return delivery[0]


def _body(delivery: Delivery) -> bytes:
    return delivery[0][2]


def _name(handler: Callable[..., Any]) -> str:
    return getattr(handler, "__qualname__", repr(handler))


def _hints(handler: Callable[..., Any]) -> dict[str, Any]:
    function = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise ConfigError(f"{_name(handler)}: its annotations cannot be read: {error}") from error


def _parameters(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        parameter
        for parameter in inspect.signature(handler).parameters.values()
        if parameter.default is parameter.empty and parameter.kind in _POSITIONAL
    ]


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _item_of(hint: Any) -> Any:
    arguments = typing.get_args(hint)
    return arguments[0] if arguments and typing.get_origin(hint) is not dict else hint


def _resource(hint: Any, resources: Sequence[object]) -> object | None:
    if not isinstance(hint, type) or hint in (object, dict, bytes, str, list):
        return None
    return next((resource for resource in resources if isinstance(resource, hint)), None)


def _nothing(body: bytes) -> None:
    """The handler asks for no payload."""


def _decoder(hint: Any) -> Decode:
    if hint is bytes:
        return bytes
    if hint is str:
        return _text
    validate = getattr(hint, "model_validate_json", None)
    if validate is not None:
        return _checked(validate, of=hint)
    try:
        decode = msgspec.json.Decoder(hint).decode
    except TypeError as error:
        raise ConfigError(f"payload: cannot decode into {hint!r}: {error}") from error
    return _checked(decode, of=hint)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        text = "the body is not UTF-8"
        raise InvalidPayload(f"{text}: {error}", code="invalid_text", stage="decode", safe=text) from error


def _checked(decode: Decode, *, of: Any) -> Decode:
    other = f"not a {_shown(of)}"

    def checked(body: bytes) -> Any:
        try:
            return decode(body)
        except msgspec.ValidationError as error:
            raise InvalidPayload(str(error), safe=other) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise not_json(error) from error
        except ValueError as error:  # pydantic's ValidationError, or a validator of the user's own
            raise InvalidPayload(f"{other}: {error}", safe=other) from error

    return checked


def not_json(error: Exception) -> InvalidPayload:
    """What is said of a body that cannot be read as JSON."""
    text = "the body is not JSON"
    return InvalidPayload(f"{text}: {error}", code="invalid_json", stage="decode", safe=text)


def _shown(hint: Any) -> str:
    return getattr(hint, "__name__", repr(hint))


def encode(value: object) -> bytes:
    """What a producer handed over, as body bytes: bytes as they are, text as UTF-8, anything else as JSON.

    Raises `TypeError` for what JSON cannot say.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    dump = getattr(value, "model_dump_json", None)
    if dump is not None:
        return str(dump()).encode()
    return msgspec.json.encode(value)
