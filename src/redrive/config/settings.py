"""The settings as values: what the outside says about how to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from redrive.config.alerts import AlertSettings
from redrive.config.kafka import KafkaSettings
from redrive.core.errors import ConfigError

DEFAULT_BROKER = "sqlite:///redrive.db"
DEFAULT_STORE = "sqlite:///letters.db"

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """A broker, and what is collected from it.

    `name` is its name in letters, part of their identity; None is the name of its kind. `queues` are those whose
    letters are collected, None for every queue that has a DLQ, also later. `dlqs` are further DLQs, whatever they are
    called, each with the queue of those letters that do not say it themselves. With `keep` letters are copied, and
    their entries stay where they are.
    """

    url: str
    name: str | None = None
    queues: tuple[str, ...] | None = None
    dlqs: Mapping[str, str | None] = field(default_factory=dict)
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How `redrive serve` serves. `rate_limit` is requests per second of one caller, `body_limit` is bytes.

    `public_url` is where people find the console, for links to it; `trace_url` is where they find a trace.
    """

    host: str = "127.0.0.1"
    port: int = 8800
    collect: bool = True
    redrive: bool = True
    rate_limit: float = 100.0
    body_limit: int = 8_000_000
    public_url: str | None = None
    trace_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """Letters of this state and queue are removed when they failed longer ago than this; None means any."""

    older_than: timedelta
    state: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the outside says about how to run. `color` is False where NO_COLOR is set.

    `url` is the service that commands about letters and queues ask, instead of a store and a broker of their own.
    `metrics_label` is a field of letters by which they are counted too. `encryption_keys_file` has the keys with which
    letters are encrypted.
    """

    brokers: tuple[BrokerSettings, ...] = (BrokerSettings(url=DEFAULT_BROKER),)
    store: str = DEFAULT_STORE
    url: str | None = None
    log_level: LogLevel = "info"
    log_format: LogFormat = "auto"
    color: bool = True
    service: ServiceSettings = field(default_factory=ServiceSettings)
    metrics_label: str | None = None
    encryption_keys_file: str | None = None
    alerts: AlertSettings = field(default_factory=AlertSettings)
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    retention: tuple[RetentionSettings, ...] = ()

    @property
    def broker(self) -> BrokerSettings:
        """The only broker. Raises `ConfigError` if there are several."""
        if len(self.brokers) > 1:
            names = ", ".join(str(broker.name) for broker in self.brokers)
            raise ConfigError(f"--broker: there are several, say which: {names}")
        return self.brokers[0]
