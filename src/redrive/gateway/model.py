"""How one model is reached, and how much of it may be used."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from redrive.core.backoff import read_delay
from redrive.core.duration import Duration
from redrive.core.errors import ConfigError
from redrive.core.url import mask_url

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a model may be called here: its name is part of a queue's."""

_MIB: Final = 1024 * 1024
_WIRES: Final = ("openai", "anthropic")


@dataclass(frozen=True, slots=True, init=False)
class ModelConfig:
    """One model behind one endpoint, with one key: the scope of every limit.

    The key is read from the environment variable `api_key_env` when the gateway opens; without one none is sent.
    `concurrency` is the most calls in flight: the gateway finds out by itself how many of them do good. Calls and
    tokens in any minute stay below `requests_per_minute` and `tokens_per_minute`. `queue_size` is how many accepted
    requests may be unfinished. `attempt_timeout` ends a call whatever it is doing, `deadline` a request that has none
    of its own (None: never). A request that the provider puts off for longer than `postpone_after` is *postponed*.

    With a `batch_size` above 1, requests are sent together when so many are ready or the first has waited
    `batch_wait`: each in a call of its own, or with `batch_path` all in one call to an endpoint that answers each of
    them. `idempotency` sends an `Idempotency-Key` that is the same in every attempt.

    Raises `ConfigError` with every mistake at once.
    """

    base_url: str
    model_name: str
    api_key_env: str | None
    wire: Literal["openai", "anthropic"]
    concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    queue_size: int
    batch_size: int
    batch_wait: timedelta
    batch_path: str | None
    attempt_timeout: timedelta
    connect_timeout: timedelta
    deadline: timedelta | None
    postpone_after: timedelta
    max_answer_bytes: int
    idempotency: bool

    def __init__(  # noqa: PLR0913 - settings, each by its name
        self,
        *,
        base_url: str,
        model_name: str,
        api_key_env: str | None = None,
        wire: Literal["openai", "anthropic"] = "openai",
        concurrency: int = 64,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        queue_size: int = 10_000,
        batch_size: int = 1,
        batch_wait: Duration = "5ms",
        batch_path: str | None = None,
        attempt_timeout: Duration = "2m",
        connect_timeout: Duration = "5s",
        deadline: Duration | None = "10m",
        postpone_after: Duration = "60s",
        max_answer_bytes: int = 16 * _MIB,
        idempotency: bool = False,
    ) -> None:
        given: dict[str, Any] = {
            "base_url": base_url,
            "model_name": model_name,
            "api_key_env": api_key_env,
            "wire": wire,
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "queue_size": queue_size,
            "batch_size": batch_size,
            "batch_wait": batch_wait,
            "batch_path": batch_path,
            "attempt_timeout": attempt_timeout,
            "connect_timeout": connect_timeout,
            "deadline": deadline,
            "postpone_after": postpone_after,
            "max_answer_bytes": max_answer_bytes,
            "idempotency": idempotency,
        }
        mistakes = _mistakes(given)
        for name in ("batch_wait", "attempt_timeout", "connect_timeout", "deadline", "postpone_after"):
            if given[name] is not None:
                given[name] = read_delay(given[name], key=name, mistakes=mistakes)
        mistakes.extend(
            f"{name}: expected more than zero"
            for name in ("attempt_timeout", "connect_timeout", "deadline")
            if given[name] == timedelta(0) and not any(one.startswith(f"{name}:") for one in mistakes)
        )
        if mistakes:
            raise ConfigError(mistakes)
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @property
    def scope(self) -> tuple[str, str | None, str]:
        """What a provider counts by: endpoint, key and model."""
        return self.base_url.rstrip("/"), self.api_key_env, self.model_name


def read_models(models: Mapping[str, ModelConfig]) -> dict[str, str]:
    """Check a table of models, and read their keys by the models' names. Raises `ConfigError` with every mistake."""
    mistakes: list[str] = []
    keys: dict[str, str] = {}
    scopes: dict[tuple[str, str | None, str], str] = {}
    given: Any = models
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"models: expected a name and a ModelConfig at least, got {models!r}")
    for name, config in given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            mistakes.append(f"models: expected names of letters, digits and . _ - up to 100, got {name!r}")
        if not isinstance(config, ModelConfig):
            mistakes.append(f"models.{name}: expected a ModelConfig, got {config!r}")
            continue
        twin = scopes.setdefault(config.scope, name)
        if twin != name:
            mistakes.append(
                f"models.{name}: expected another endpoint, key or model than {twin} has: limits are theirs"
            )
        if config.api_key_env is not None:
            keys[name] = os.environ.get(config.api_key_env, "").strip()
            if not keys[name].isprintable() or not keys[name]:
                mistakes.append(f"models.{name}.api_key_env: expected a key in the variable {config.api_key_env}")
    if mistakes:
        raise ConfigError(mistakes)
    return keys


def _mistakes(given: Mapping[str, Any]) -> list[str]:
    mistakes = []
    if not _is_url(given["base_url"]):
        mistakes.append(
            f"base_url: expected http:// or https:// without a user or a query, got {_shown(given['base_url'])}"
        )
    if not isinstance(given["model_name"], str) or not given["model_name"]:
        mistakes.append(f"model_name: expected the provider's name of the model, got {given['model_name']!r}")
    if given["api_key_env"] is not None and not re.fullmatch(r"[A-Za-z_]\w*", str(given["api_key_env"])):
        mistakes.append("api_key_env: expected the name of an environment variable")  # not the value: it may be the key
    if given["wire"] not in _WIRES:
        mistakes.append(f"wire: expected {' or '.join(map(repr, _WIRES))}, got {given['wire']!r}")
    if given["batch_path"] is not None and not str(given["batch_path"]).startswith("/"):
        mistakes.append(f"batch_path: expected a path such as '/batch', got {given['batch_path']!r}")
    optional = {"requests_per_minute", "tokens_per_minute"}
    mistakes.extend(
        f"{name}: expected a whole number of 1 or more, got {given[name]!r}"
        for name in ("concurrency", "queue_size", "batch_size", "max_answer_bytes", *sorted(optional))
        if not (_is_count(given[name]) or (name in optional and given[name] is None))
    )
    return mistakes


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _shown(value: Any) -> str:
    return mask_url(repr(value))


def _is_url(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return bool(
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0  # raises for one that is no number
            and not (parts.username or parts.password or parts.query or parts.fragment)
        )
    except ValueError:
        return False
