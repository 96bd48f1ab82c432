"""The message's own fields at the top of its document, so that people can ask for them in their own words.

A copy for questions only: what is sent back is the payload, byte for byte.
"""

import json
from math import isfinite
from typing import Any

from redrive.stores.mongo.values import is_plain

OURS = frozenset({"_id", "letter_id", "processed_at", "dlq_metadata", "redrive"})
"""Names at the top of a document that are not the message's."""

LARGEST = 1024 * 1024  # bytes of a payload whose fields are copied
_DEPTH = 50
_LONG = range(-(2**63), 2**63)


def fields_of(payload: bytes | None) -> dict[str, Any]:
    """The members of a payload that is a JSON object, but for those that MongoDB could not keep or that have our names.

    Nothing if it is something else, or large.
    """
    found = _object_in(payload)
    return {name: value for name, value in found.items() if name not in OURS and _is_name(name) and _fits(value)}


def _object_in(payload: bytes | None) -> dict[str, Any]:
    if payload is None or len(payload) > LARGEST:
        return {}
    try:
        found = json.loads(payload.decode())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_name(name: str) -> bool:
    return bool(name) and not name.startswith("$") and "." not in name and is_plain(name)


def _fits(value: Any, depth: int = _DEPTH) -> bool:
    if isinstance(value, str):
        return is_plain(value)
    if isinstance(value, int):
        return value in _LONG
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return depth > 0 and all(_is_name(name) and _fits(one, depth - 1) for name, one in value.items())
    if isinstance(value, list):
        # Not every server that speaks the protocol keeps an array in an array.
        return depth > 0 and all(not isinstance(one, list) and _fits(one, depth - 1) for one in value)
    return True
