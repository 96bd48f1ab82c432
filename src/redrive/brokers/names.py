"""Names of queues and groups: an allow-list, so that none means something to a path, a key or a pattern."""

import re

from redrive.core.errors import ConfigError

LONGEST = 249  # the strictest broker's limit (Kafka)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:/-]*")
_TAG = re.compile(r"\{([A-Za-z0-9_][A-Za-z0-9._:/-]*)\}")  # decides about the slot in a Redis cluster


def check_names(*, queue: str, group: str | None = None) -> None:
    """Raise `ConfigError` with every mistake in these names; a group of None is not looked at.

    One part of a queue's name may stand in braces.
    """
    mistakes = _mistakes("queue", queue, plain=_TAG.sub(r"\1", queue, count=1))
    if group is not None:
        mistakes += _mistakes("group", group, plain=group)
    if mistakes:
        raise ConfigError(mistakes)


def _mistakes(kind: str, name: str, *, plain: str) -> list[str]:
    if len(name) > LONGEST:
        return [f"{kind}: expected a name of at most {LONGEST} characters, got {len(name)}"]
    if _NAME.fullmatch(plain) is None or ".." in plain:
        return [f"{kind}: expected letters, digits and . _ : / - after a letter or digit, got {name!r}"]
    return []
