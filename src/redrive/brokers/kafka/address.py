"""Where Kafka is, as a URL says it, and every setting that goes to librdkafka as it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from redrive.core.errors import ConfigError
from redrive.core.url import mask_url

_PORT: Final = 9092
_OURS: Final = frozenset(
    {
        "bootstrap.servers",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "partition.assignment.strategy",
        "transactional.id",
        "transaction.timeout.ms",
        "enable.idempotence",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "isolation.level",
        "auto.offset.reset",
        "acks",
    }
)
"""Settings on which the promises stand."""
_OF_CONSUMERS: Final = ("session.", "heartbeat.", "max.poll.", "fetch.", "queued.", "partition.", "group.", "check.")
_OF_PRODUCERS: Final = ("linger.", "batch.", "compression.", "queue.buffering.", "transaction.", "message.timeout")


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, taken apart. `settings` are librdkafka's own; the numbers are for queues that we begin."""

    servers: str
    partitions: int | None = None
    replication: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, url: str) -> "Address":
        """From `kafka://[user:password@]host:9092,host:9092?setting=value`. Raises `ConfigError` with every mistake."""
        parts = urlsplit(url)
        mistakes: list[str] = []
        userinfo, _, hosts = parts.netloc.rpartition("@")
        if parts.scheme != "kafka" or not hosts or parts.path not in ("", "/"):
            mistakes.append(f"broker: expected a URL such as kafka://host:9092,host:9092, got {mask_url(url)!r}")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        partitions = _count(query, "partitions", mistakes)
        replication = _count(query, "replication", mistakes)
        for name in query:
            if name in _OURS:
                mistakes.append(f"broker: {name} is set by Redrive, whose promises stand on it")
            elif "." not in name and name != "debug":
                mistakes.append(f"broker: expected partitions, replication or a setting of librdkafka, got {name!r}")
        user, _, password = userinfo.partition(":")
        if user:
            query.setdefault("sasl.username", unquote(user))
            query.setdefault("sasl.password", unquote(password))
            query.setdefault("sasl.mechanisms", "PLAIN")
            query.setdefault("security.protocol", "SASL_SSL")
        if mistakes:
            raise ConfigError(mistakes)
        return cls(",".join(_with_port(host) for host in hosts.split(",")), partitions, replication, query)

    def of_all(self) -> dict[str, str | int | float | bool]:
        """The settings of any client."""
        return {
            "bootstrap.servers": self.servers,
            "socket.keepalive.enable": True,
            "log_level": 2,  # what goes wrong is told to whoever asked
            **{
                name: value
                for name, value in self.settings.items()
                if not name.startswith((*_OF_CONSUMERS, *_OF_PRODUCERS))
            },
        }

    def of_consumer(self) -> dict[str, str | int | float | bool]:
        """The settings of whoever reads: only what was committed, and nothing is committed by itself."""
        return {
            **self.of_all(),
            **{name: value for name, value in self.settings.items() if name.startswith(_OF_CONSUMERS)},
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }

    def of_producer(self) -> dict[str, str | int | float | bool]:
        """The settings of whoever writes. The size of a message is the broker's to judge, not the client's."""
        return {
            "message.max.bytes": 100_000_000,
            "message.timeout.ms": 30_000,
            "compression.type": "snappy",
            "linger.ms": 0,
            **self.of_all(),
            **{name: value for name, value in self.settings.items() if name.startswith(_OF_PRODUCERS)},
            "enable.idempotence": True,
        }

    def of_transactions(self, identity: str, *, timeout: float) -> dict[str, str | int | float | bool]:
        """The settings of whoever writes all or nothing. None of it may wait for longer than the whole (seconds).

        Records wait for others of their transaction; nobody waits for them: a flush ends it.
        """
        longest = int(timeout * 1000)
        asked = self.settings.get("message.timeout.ms", "0")
        return {
            **self.of_producer(),
            "linger.ms": self.settings.get("linger.ms", 5),
            "transactional.id": identity,
            "transaction.timeout.ms": longest,
            "message.timeout.ms": min(int(asked) or longest, longest) if asked.isdecimal() else asked,
        }


def _count(query: dict[str, str], name: str, mistakes: list[str]) -> int | None:
    text = query.pop(name, None)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        mistakes.append(f"broker: {name}: expected a number from 1, got {text!r}")
        return None
    return int(text)


def _with_port(host: str) -> str:
    return host if ":" in host and not host.endswith("]") else f"{host}:{_PORT}"
