"""The steps that must be one: Lua scripts, each with what all of them share in front."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from redrive.brokers.redis.errors import code_of
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.errors import BrokerError

LARGEST_CALL: Final = 100
"""Items per call: the server does nothing else while a script runs."""


AFTER: Final = "-- after: "
FLAGS: Final = "-- flags: "


class Script(NamedTuple):
    """A script and the name under which the server keeps it."""

    source: bytes
    sha: str


@cache
def script(name: str) -> Script:
    """The script of this name, after those that its first lines ask for, run as they say."""
    folder = files("redrive.brokers.redis") / "lua"
    source = (folder / f"{name}.lua").read_bytes()
    head = source.decode().splitlines()[:2]
    earlier = [name for line in head if line.startswith(AFTER) for name in line.removeprefix(AFTER).split()]
    flags = "".join([f" flags={line.removeprefix(FLAGS)}" for line in head if line.startswith(FLAGS)])
    whole = b"".join([f"#!lua{flags}\n".encode(), *((folder / f"{one}.lua").read_bytes() for one in earlier), source])
    return Script(whole, hashlib.sha1(whole, usedforsecurity=False).hexdigest())


def command(name: str, keys: Sequence[str | bytes], args: Sequence[Value]) -> list[Value]:
    """The command that runs a script which the server should know by now."""
    return ["EVALSHA", script(name).sha, len(keys), *keys, *args]


def was_forgotten(answer: object) -> bool:
    """Whether this answer means that the server does not know the script (any more): nothing was done."""
    return isinstance(answer, Exception) and code_of(answer.__cause__ or answer) == "NOSCRIPT"


async def run(wire: Wire, name: str, keys: Sequence[str | bytes], args: Sequence[Value]) -> list[Any]:
    """Run a script; it is sent along if the server does not know it. Raises our errors."""
    try:
        answer = await wire.call(*command(name, keys, args))
    except BrokerError as error:
        if not was_forgotten(error):
            raise
        answer = await wire.call("EVAL", script(name).source, len(keys), *keys, *args)
    return answer if isinstance(answer, list) else [answer]
