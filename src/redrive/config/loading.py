"""From what was said to settings: every mistake at once, and for each value where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redrive.config.alerts import AlertSettings
from redrive.config.apart import is_same_file
from redrive.config.brokers import brokers_of
from redrive.config.kafka import KafkaAttemptSettings, KafkaDlqSettings, KafkaSettings
from redrive.config.keys import RETENTION_KEYS
from redrive.config.settings import RetentionSettings, ServiceSettings, Settings
from redrive.config.sources import (
    Said,
    SettingsFile,
    did_you_mean,
    from_environment,
    from_flags,
    read_file,
    the_environment,
)
from redrive.core.errors import ConfigError

_FIELDS = {
    "store": "store",
    "url": "url",
    "log.level": "log_level",
    "log.format": "log_format",
    "metrics.label": "metrics_label",
    "encryption.keys_file": "encryption_keys_file",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings, and who said which of their values: what nobody said is a default."""

    settings: Settings
    said: Mapping[str, Said]
    file: SettingsFile


def load_settings(environ: Mapping[str, str] | None = None, *, flags: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings. Raises `ConfigError` that lists every mistake with its key and what was expected.

    `flags` are what a command was told, by key; they win.
    """
    return read_settings(environ, flags=flags).settings


def read_settings(environ: Mapping[str, str] | None = None, *, flags: Mapping[str, Any] | None = None) -> Reading:
    """As `load_settings`, and where each value came from."""
    environ = the_environment(environ)
    mistakes: list[str] = []
    file = read_file(environ, mistakes)
    everything = (
        *file.said(mistakes),
        *from_environment(environ, file.keys, mistakes),
        *from_flags(flags or {}),
    )
    said: dict[str, Said] = {}
    for one in everything:
        try:
            value = file.keys[one.key].kind.read(one.value, text=one.source == "variable")
        except ValueError as error:
            mistakes.append(f"{one.where}: {error}")
        else:
            said[one.key] = one._replace(value=value)
    settings = Settings(
        brokers=brokers_of(file.names, said, mistakes),
        color=not environ.get("NO_COLOR"),
        service=ServiceSettings(**_under("service.", said)),
        alerts=AlertSettings(**_under("alerts.", said)),
        kafka=KafkaSettings(
            dlq=KafkaDlqSettings(**_under("kafka.dlq.", said)),
            attempts=KafkaAttemptSettings(**_under("kafka.attempts.", said)),
        ),
        retention=_rules(file, mistakes),
        **{field: said[key].value for key, field in _FIELDS.items() if key in said},
    )
    mistakes += [mistake for broker in settings.brokers if (mistake := is_same_file(broker.url, settings.store))]
    if mistakes:
        raise ConfigError(mistakes)
    return Reading(settings, said, file)


def _under(prefix: str, said: Mapping[str, Said]) -> dict[str, Any]:
    return {key.removeprefix(prefix): one.value for key, one in said.items() if key.startswith(prefix)}


def _rules(file: SettingsFile, mistakes: list[str]) -> tuple[RetentionSettings, ...]:
    rules = file.rules
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, dict) for rule in rules):
        mistakes.append(f"{file.path}: retention: expected a table for each rule: [[retention]], got {rules!r}")
        return ()
    found = []
    for number, rule in enumerate(rules, 1):
        where = f"{file.path}: retention[{number}]"
        values = {}
        for name, value in rule.items():
            if name not in RETENTION_KEYS:
                mistakes.append(f"{where}.{name}: unknown key{did_you_mean(name, RETENTION_KEYS)}")
                continue
            try:
                values[name] = RETENTION_KEYS[name].kind.read(value, text=False)
            except ValueError as error:
                mistakes.append(f"{where}.{name}: {error}")
        if "older_than" not in rule:
            mistakes.append(f'{where}.older_than: expected a length of time such as "90d", got none')
        if "older_than" in values:
            found.append(RetentionSettings(**values))
    return tuple(found)
