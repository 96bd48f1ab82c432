"""What a dead letter tells about its message: chosen by `context=`, filtered for secrets, bounded."""

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redrive.core.errors import ConfigError
from redrive.core.failure import Failure
from redrive.core.message import Headers, Message
from redrive.core.privacy import PrivacyFilter

_LIMIT = 8 * 1024
_NOTE = 64
_FIELD = 256
_ABSENT = object()
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*", re.DOTALL)


class OwnFields(NamedTuple):
    """What a letter has fields of its own for."""

    user_id: str | None = None
    tenant_id: str | None = None
    trace_id: str | None = None
    task_type: str | None = None


_NOTHING = OwnFields()
_SPOKEN = frozenset((*OwnFields._fields, "traceparent"))


@dataclass(frozen=True, slots=True)
class ContextRule:
    """What to take from a message into its letter: header names and dotted payload fields, or a function.

    `privacy` hides secrets in it, and in the text of the failure.

    >>> rule = ContextRule(names=("user_id", "card"), privacy=PrivacyFilter(names=("user_id",)))
    >>> rule.read(Message("1", "orders", b'{"user_id": 7, "card": "4111", "total": 5}'))
    {'user_id': '***', 'card': '***'}
    """

    names: tuple[str, ...] = ()
    function: Callable[[Message], Mapping[str, Any]] | None = None
    privacy: PrivacyFilter = field(default_factory=PrivacyFilter)

    @classmethod
    def of(cls, spec: "ContextSpec") -> "ContextRule":
        """Read `context=` as people write it. Raises `ConfigError`."""
        if isinstance(spec, ContextRule):
            return spec
        if inspect.iscoroutinefunction(spec):
            raise ConfigError(f"context: expected a plain function, got the coroutine function {spec!r}")
        if callable(spec):
            return cls(function=spec)
        if isinstance(spec, str | bytes) or not isinstance(spec, Sequence):
            raise ConfigError(f"context: expected a list of names or a function, got {spec!r}")
        wrong = [name for name in spec if not isinstance(name, str) or not name]
        if wrong:
            raise ConfigError([f"context: expected the name of a header or a field, got {name!r}" for name in wrong])
        return cls(names=tuple(spec))

    def read(self, message: Message) -> dict[str, Any]:
        """The context of a message in at most 8 KiB of JSON, secrets masked.

        Never raises: a function that does leaves its trouble in the context instead.
        """
        if not self.names and self.function is None:
            return {}
        try:
            found = _named(message, self.names) if self.function is None else dict(self.function(message))
        except Exception as trouble:  # noqa: BLE001 - the user's function must not lose the message
            failure = Failure.of(trouble)
            found = {"context_error": f"{failure.error_type}: {failure.error_message}"}
        masked = self.privacy.mask(found)
        return _bounded(masked if isinstance(masked, dict) else {"context": masked})

    def own_fields(self, context: Mapping[str, Any], headers: Headers) -> OwnFields:
        """The letter's own fields, as found in the context or else in the headers.

        A header counts in any spelling: `user_id`, `User-Id`, `X-User-ID`; `traceparent` gives the trace.
        """
        if not headers and not context:
            return _NOTHING
        spoken = {known: value for name, value in reversed(headers) if (known := _spelled(name)) in _SPOKEN}
        if not spoken and not context:
            return _NOTHING
        found = {}
        for name in OwnFields._fields:
            value = _word(context.get(name)) or _word(spoken.get(name))
            if not value and name == "trace_id":
                value = _trace(_word(spoken.get("traceparent")))
            if value and not self.privacy.hides(name):
                found[name] = value
        return OwnFields(**found)


ContextSpec = ContextRule | Sequence[str] | Callable[[Message], Mapping[str, Any]]
"""What `context=` accepts."""


def _named(message: Message, names: Sequence[str]) -> dict[str, Any]:
    headers = dict(reversed(message.headers))  # of a name that stands twice, the first counts
    found: dict[str, Any] = {name: headers[name] for name in names if name in headers}
    wanted = [name for name in names if name not in headers]
    payload = _payload(message.body) if wanted else None
    for name in wanted:
        value = _field(payload, name)
        if value is not _ABSENT:
            found[name] = value
    return {name: found[name] for name in names if name in found}


def _payload(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _field(payload: Any, name: str) -> Any:
    """The value at a dotted name; a key that itself holds dots wins."""
    if isinstance(payload, dict) and name in payload:
        return payload[name]
    for part in name.split("."):
        if isinstance(payload, dict) and part in payload:
            payload = payload[part]
        elif isinstance(payload, list) and part.isdecimal() and int(part[:9]) < len(payload):
            payload = payload[int(part[:9])]
        else:
            return _ABSENT
    return payload


def _bounded(context: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    omitted = []
    room = _LIMIT - _NOTE
    for name, value in context.items():
        size = len(json.dumps({name: value}))
        if size <= room:
            kept[name] = value
            room -= size
        else:
            omitted.append(name)
    if omitted:
        kept["context_omitted"] = f"{len(omitted)} of {len(context)}, too large"
    return kept


@functools.lru_cache(maxsize=1024)
def _spelled(name: str) -> str:
    return name.lower().replace("-", "_").removeprefix("x_")


def _word(value: Any) -> str:
    if isinstance(value, bytes):
        value = value[:_FIELD].decode("utf-8", "backslashreplace")
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:_FIELD].strip()


def trace_of(headers: Headers) -> str:
    """The id of the trace that headers speak of; empty if they speak of none.

    >>> trace_of((("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),))
    '0af7651916cd43dd8448eb211c80319c'
    """
    return next((_trace(_word(value)) for name, value in headers if _spelled(name) == "traceparent"), "")


def _trace(traceparent: str) -> str:
    match = _TRACEPARENT.fullmatch(traceparent)
    return match[1] if match else ""
