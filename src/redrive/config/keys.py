"""Every key there is: what it expects, the flag that says the same, and where it goes."""

from dataclasses import dataclass
from typing import get_args

from redrive.config.kinds import DLQS, DURATION, FLAG, NAMES, RATE, SIZE, TEXT, Kind, broker, one_of, url, whole
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
    "metrics.label": Key(TEXT),
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
