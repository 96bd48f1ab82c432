"""Redis Streams: the broker on a server, on sentinels or on a cluster."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("redis") is None or find_spec("hiredis") is None:
    raise MissingExtra("the Redis broker", extra="redis")

from redrive.brokers.redis.attempt_counter import RedisAttemptCounter
from redrive.brokers.redis.broker import RedisBroker

__all__ = ["RedisAttemptCounter", "RedisBroker"]
