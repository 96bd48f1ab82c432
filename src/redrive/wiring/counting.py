"""From a URL to a counter of attempts."""

from urllib.parse import urlsplit

from redrive.core.errors import ConfigError
from redrive.core.ports import AttemptCounter
from redrive.core.url import mask_url

REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "redis+cluster")


def attempt_counter(url: str, *, prefix: str = "redrive") -> AttemptCounter:
    """A counter of attempts in the Redis at a URL, for messages of any broker. Raises `ConfigError`, `MissingExtra`."""
    if urlsplit(url).scheme not in REDIS_SCHEMES:
        raise ConfigError(f"attempt counter: expected a URL such as redis://localhost:6379, got {mask_url(url)!r}")
    from redrive.brokers.redis import RedisAttemptCounter

    return RedisAttemptCounter(url, prefix=prefix)
