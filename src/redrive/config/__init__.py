"""Settings: `redrive.toml` and the environment as one frozen value, every mistake reported at once.

    broker = "sqlite:///redrive.db"     # REDRIVE_BROKER
    store = "sqlite:///letters.db"      # REDRIVE_STORE
    url = "https://redrive.example.org" # REDRIVE_URL: a service that commands ask instead

    [brokers.orders]                    # or several, each with its name in letters
    url = "redis://cache-1:6379"        # REDRIVE_BROKERS_ORDERS_URL
    queues = ["orders", "payments"]     # all that have a DLQ, unless told
    dlqs = ["legacy-dlq"]               # DLQs that are called otherwise

    [log]
    level = "info"                      # REDRIVE_LOG_LEVEL: debug, info, warning or error
    format = "auto"                     # REDRIVE_LOG_FORMAT: auto, json or text

A flag of a command wins over the environment, the environment over the file, the file over the default. The
file is `redrive.toml` in the current folder, or the one that REDRIVE_CONFIG names. An empty variable is none. Every
key is in `keys`.
"""

from redrive.config.alerts import AlertSettings
from redrive.config.apart import check_apart
from redrive.config.encryption import load_keys
from redrive.config.kafka import KafkaAttemptSettings, KafkaDlqSettings, KafkaSettings
from redrive.config.loading import load_settings, read_settings
from redrive.config.settings import (
    DEFAULT_BROKER,
    DEFAULT_STORE,
    BrokerSettings,
    RetentionSettings,
    ServiceSettings,
    Settings,
)
from redrive.config.token import load_token

__all__ = [
    "DEFAULT_BROKER",
    "DEFAULT_STORE",
    "AlertSettings",
    "BrokerSettings",
    "KafkaAttemptSettings",
    "KafkaDlqSettings",
    "KafkaSettings",
    "RetentionSettings",
    "ServiceSettings",
    "Settings",
    "check_apart",
    "load_keys",
    "load_settings",
    "load_token",
    "read_settings",
]
