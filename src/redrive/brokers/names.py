"""Names of queues and groups: an allow-list, so that none means something to a path, a key or a pattern."""

import re

from redrive.core.errors import ConfigError

LONGEST = 249  # the strictest broker's limit (Kafka)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:/-]*")


def check_names(*, queue: str, group: str | None = None) -> None:
    """Raise `ConfigError` with every mistake in these names; a group of None is not looked at."""
    mistakes = [*_mistakes("queue", queue), *(() if group is None else _mistakes("group", group))]
    if mistakes:
        raise ConfigError(mistakes)


def _mistakes(kind: str, name: str) -> list[str]:
    if len(name) > LONGEST:
        return [f"{kind}: expected a name of at most {LONGEST} characters, got {len(name)}"]
    if _NAME.fullmatch(name) is None or ".." in name:
        return [f"{kind}: expected letters, digits and . _ : / - after a letter or digit, got {name!r}"]
    return []
