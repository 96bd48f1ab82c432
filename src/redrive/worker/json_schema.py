"""JSON Schemas as checks of a body. What they say is in the words of the schema: nothing of the payload is quoted."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from redrive.core.errors import ConfigError, MissingExtra
from redrive.worker.payload import InvalidPayload, not_json

Schema = Mapping[str, Any] | bool | Path
"""A JSON Schema, or the file that holds one."""

FAILED: Final = "schema_validation_failed"
STAGE: Final = "schema"
_MASK: Final = "the value"
# Keywords whose message, its value masked, is made of the schema alone. Others may name what is in the payload.
_TOLD: Final = frozenset(
    (
        *("const", "contains", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength"),
        *("maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern"),
        *("required", "type", "uniqueItems"),
    )
)


def compiled(schema: Schema) -> Callable[[bytes], None]:
    """A check of bodies by a schema, which raises `InvalidPayload`. References are never fetched.

    Raises `ConfigError` for what is no schema, `MissingExtra`.
    """
    try:
        import jsonschema_rs  # noqa: PLC0415 - only where a schema is used
    except ImportError as error:
        raise MissingExtra("validate= with a JSON Schema", extra="validation") from error
    document = _read(schema) if isinstance(schema, Path) else schema if isinstance(schema, bool) else dict(schema)
    try:
        validator = jsonschema_rs.validator_for(document, mask=_MASK, retriever=_refuse)
    except Exception as error:
        raise ConfigError(f"validate: expected a JSON Schema: {str(error).partition(chr(10))[0]}") from error
    decode, errors_in = msgspec.json.Decoder().decode, validator.iter_errors

    def check(body: bytes) -> None:
        try:
            value = decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise not_json(error) from error
        try:
            found = next(errors_in(value), None)
            text = None if found is None else _said(found.kind.name, found.message, found.schema_path)
        except ValueError:  # what it has no room on the stack for
            text = "the body is nested too deeply"
        if text is not None:
            raise InvalidPayload(text, code=FAILED, stage=STAGE, safe=text)

    return check


def _said(keyword: str, message: str, path: list[str | int]) -> str:
    where = "/".join(("#", *map(str, path)))
    return f"{message}, says {where}" if keyword in _TOLD else f"refused by {where}"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"validate: {path} cannot be read as a JSON Schema: {error}") from error


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not in the schema: nothing is fetched")
