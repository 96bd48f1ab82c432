"""`validate=`: whether a message is fit for its handler, decided before that runs."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.worker.json_schema import Schema, compiled
from redrive.worker.payload import InvalidPayload, read_signature

Check = Callable[[Delivery], None]


@dataclass(frozen=True, slots=True)
class Validation:
    """What a message must be before its handler runs, and which of those that are refused become dead letters.

    `check` is a JSON Schema (a mapping, or the path of a file), or a plain function that asks for the payload,
    `Message` or `Delivery` by annotation, as a handler does. A function refuses by raising `InvalidPayload` or
    `ValueError`, or by returning False; whatever else it raises is a failure like one of the handler. `codes` are the
    codes of refusals that become dead letters, those of annotated models included; None: all. A message refused with
    another code is acked, counted and logged with its hash. Raises `ConfigError`.
    """

    check: Schema | Callable[..., object] | None = None
    codes: Collection[str] | None = None
    run: Check | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codes = self.codes
        if isinstance(codes, str) or not (codes is None or all(isinstance(code, str) for code in codes)):
            raise ConfigError(f"validate.codes: expected a list of codes, or None for all, got {codes!r}")
        object.__setattr__(self, "codes", None if codes is None else frozenset(codes))
        object.__setattr__(self, "run", None if self.check is None else _check(self.check))

    @classmethod
    def of(cls, spec: "ValidateSpec") -> "Validation | None":
        """Read `validate=` as people write it. Raises `ConfigError`, `MissingExtra`."""
        return spec if spec is None or isinstance(spec, Validation) else cls(spec)

    def acks(self, error: BaseException) -> bool:
        """Whether a message that is refused with this error is acked, instead of becoming a dead letter."""
        return self.codes is not None and isinstance(error, InvalidPayload) and error.code not in self.codes


ValidateSpec = Validation | Schema | Callable[..., object] | None
"""What `validate=` accepts."""


def _check(spec: Any) -> Check:
    if isinstance(spec, Mapping | bool | Path):
        check_body = compiled(spec)
        return lambda delivery: check_body(delivery.message.body)
    if inspect.iscoroutinefunction(spec):
        raise ConfigError(f"validate: expected a plain function, got the coroutine function {spec!r}")
    if not callable(spec):
        raise ConfigError(f"validate: expected a JSON Schema, a function or a Validation, got {spec!r}")
    return _function(spec)


def _function(function: Callable[..., object]) -> Check:
    arguments = read_signature(function).arguments
    refused = f"refused by {getattr(function, '__name__', type(function).__name__)}"

    def check(delivery: Delivery) -> None:
        given = arguments(delivery)
        try:
            answer = function(*given)
        except ValueError as error:
            raise InvalidPayload(f"{refused}: {error}", safe=refused) from error
        if answer is False:
            raise InvalidPayload(refused, safe=refused)

    return check
