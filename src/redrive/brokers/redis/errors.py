"""The one place where Redis' exceptions become ours."""

from typing import Final

from redis import exceptions as redis
from redis.asyncio.sentinel import MasterNotFoundError

from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, QueueNotFound

_FOR_NOW: Final = {
    "LOADING": "the server is still reading its data",
    "BUSY": "a script keeps the server busy",
    "READONLY": "this server is a replica; its primary has changed",
    "MASTERDOWN": "the replica has lost its primary",
    "NOREPLICAS": "fewer replicas are connected than min-replicas-to-write asks for",
    "MISCONF": "the server cannot write to its disk and refuses every change",
    "OOM": "the server has reached maxmemory",
    "CLUSTERDOWN": "the cluster has no server for this queue",
    "TRYAGAIN": "the cluster is moving this queue",
    "MOVED": "the cluster has moved this queue",
    "ASK": "the cluster is moving this queue",
    "NOGROUP": "the consumer group is gone",
    "UNBLOCKED": "a wait was ended: the stream is gone, or this server is no longer the primary",
}
_REFUSED: Final = {
    "NOAUTH": "the server asks for a password",
    "WRONGPASS": "the server does not accept this user and password",
    "NOPERM": "the server does not permit this to the user",
    "WRONGTYPE": "a key of this name holds something other than what Redrive keeps there",
}


def code_of(error: BaseException) -> str:
    """The first word of the server's answer, as `NOGROUP` or `OOM`; empty for what is not an answer.

    redis-py takes the word off the answers that it knows; an error of a script may carry it further back.
    """
    known = getattr(error, "status_code", None)
    if known and known != "ERR":
        return str(known)
    if not isinstance(error, redis.RedisError):
        return ""
    words = str(error).split(" ")
    return next((word for word in words if word in _FOR_NOW or word in _REFUSED or word == "NOSCRIPT"), "")


def translate(error: Exception) -> Exception:
    """The exception to raise instead: Redis' and the network's become ours, every other one stays what it is."""
    code = code_of(error)
    if code in _FOR_NOW:
        ours: Exception = BrokerUnavailable(f"redis: {_FOR_NOW[code]} ({error})")
    elif code in _REFUSED:
        ours = BrokerError(f"redis: {_REFUSED[code]} ({error})")
    elif isinstance(error, redis.AuthenticationError):
        ours = BrokerError(f"redis: {_REFUSED['WRONGPASS']} ({error})")
    elif isinstance(error, MasterNotFoundError):  # its text goes on with every sentinel as an object
        told = str(error).partition(" : ")[0]
        ours = BrokerUnavailable(f"redis: no sentinel that answers knows a healthy primary of this name ({told})")
    elif isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError | TimeoutError):
        ours = BrokerUnavailable(f"redis: no answer from the server ({type(error).__name__}: {error})")
    elif isinstance(error, redis.RedisClusterException):
        ours = BrokerUnavailable(f"redis: the cluster cannot be reached ({error})")
    elif isinstance(error, redis.ResponseError) and "no such key" in str(error):
        ours = QueueNotFound(f"redis: no stream of this name ({error})")
    elif isinstance(error, redis.ClusterCrossSlotError):
        ours = ConfigError(f"redis: these queues are in different cluster slots ({error})")
    elif isinstance(error, redis.RedisError):
        ours = BrokerError(f"redis: {error}")
    else:
        return error
    ours.__cause__ = error
    return ours
