"""Every key there is: what it expects, the flag that says the same, and where it goes."""

from dataclasses import dataclass
from typing import get_args

from redrive.config.alerts import ALERT_KINDS
from redrive.config.kafka import KAFKA_KINDS
from redrive.config.kinds import (
    DLQS,
    DURATION,
    FLAG,
    NAMES,
    RATE,
    SIZE,
    TEXT,
    Kind,
    broker,
    one_of,
    url,
    url_of,
    whole,
)
from redrive.config.settings import DEFAULT_BROKER, DEFAULT_STORE, LogFormat, LogLevel
from redrive.core.life import LetterState

PREFIX = "REDRIVE_"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of `redrive.toml`. `flag` is what a command may say instead."""

    kind: Kind
    flag: str = ""


KEYS = {
    "broker": Key(broker(DEFAULT_BROKER), "--broker"),
    "store": Key(url(DEFAULT_STORE), "--store"),
    "url": Key(url("http://127.0.0.1:8800"), "--url"),
    "log.level": Key(one_of(*get_args(LogLevel))),
    "log.format": Key(one_of(*get_args(LogFormat))),
    "collect.queues": Key(NAMES, "--queue"),
    "collect.dlqs": Key(DLQS, "--dlq"),
    "collect.keep": Key(FLAG, "--keep"),
    "service.host": Key(TEXT, "--host"),
    "service.port": Key(whole(0, 65535), "--port"),
    "service.collect": Key(FLAG, "--no-collect"),
    "service.redrive": Key(FLAG, "--no-redrive"),
    "service.rate_limit": Key(RATE),
    "service.body_limit": Key(SIZE),
    "service.public_url": Key(url("https://redrive.example.org")),
    "service.trace_url": Key(url_of("trace_id", "https://traces.example.org/trace/{trace_id}")),
    **{name: Key(kind) for name, kind in ALERT_KINDS.items()},
    "metrics.label": Key(TEXT),
    "encryption.keys_file": Key(TEXT),
    **{name: Key(kind) for name, kind in KAFKA_KINDS.items()},
}
"""The keys that every installation has; REDRIVE_LOG_LEVEL and so on say the same."""

BROKER_KEYS = {"url": Key(url(DEFAULT_BROKER)), "queues": Key(NAMES), "dlqs": Key(DLQS), "keep": Key(FLAG)}
"""The keys of each `[brokers.<name>]`."""

RETENTION_KEYS = {
    "older_than": Key(DURATION),
    "state": Key(one_of(*(state.value for state in LetterState))),
    "queue": Key(TEXT),
}
"""The keys of each `[[retention]]`; they have no variables."""


def variable(key: str) -> str:
    """The variable that says the same as a key.

    >>> variable("brokers.my-shop.url")
    'REDRIVE_BROKERS_MY_SHOP_URL'
    """
    return PREFIX + key.upper().replace(".", "_").replace("-", "_")
