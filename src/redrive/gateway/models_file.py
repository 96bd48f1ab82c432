"""Models as they stand in a file: one TOML table for each, with the names of `ModelConfig`."""

import tomllib
from pathlib import Path
from typing import Any, Final

from redrive.core.errors import ConfigError
from redrive.gateway.model import ModelConfig, read_models

_FITS: Final = "http://a"  # in place of what is missing, so that the rest can be looked at


def read_models_file(path: Path) -> dict[str, ModelConfig]:
    """The models in a file such as

        [models.fast]
        base_url = "https://provider.example/v1"
        model_name = "model-1"
        api_key_env = "KEY"

    Raises `ConfigError` with every mistake at once.
    """  # noqa: D400, D415 - an example ends the sentence
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("models")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(tables, dict) or not tables:
        raise ConfigError(f"{path}: expected a table [models.NAME] at least")
    mistakes: list[str] = []
    models = {name: _model(name, table, mistakes) for name, table in tables.items()}
    good = {name: model for name, model in models.items() if model is not None}
    if mistakes:
        raise ConfigError([*mistakes, *_beside(good)])
    return good


def _beside(good: dict[str, ModelConfig]) -> list[str]:
    """The mistakes of models that are well made: their names, keys and scopes."""
    try:
        if good:
            read_models(good)
    except ConfigError as error:
        return [*error.mistakes]
    return []


def _model(name: str, table: Any, mistakes: list[str]) -> ModelConfig | None:
    known = ModelConfig.__dataclass_fields__.keys()
    if not isinstance(table, dict):
        mistakes.append(f"models.{name}: expected a table")
        return None
    strange = sorted(table.keys() - known)
    missing = [key for key in ("base_url", "model_name") if key not in table]
    mistakes.extend(f"models.{name}.{key}: there is no such setting" for key in strange)
    mistakes.extend(f"models.{name}.{key}: is missing" for key in missing)
    given = {key: value for key, value in table.items() if key in known}
    try:
        model = ModelConfig(**{**dict.fromkeys(missing, _FITS), **given})
    except ConfigError as error:
        mistakes.extend(f"models.{name}.{mistake}" for mistake in error.mistakes)
        return None
    return None if strange or missing else model
