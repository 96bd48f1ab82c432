"""Planted bugs inside the Redis adapter: mistakes that consumers of streams make. Those of `bugs.py` come on top."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from redrive.brokers.redis import scripts
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.errors import BrokerUnavailable


def count_deliveries_as_attempts() -> None:
    """Take the delivery counter of the pending list for the number of attempts."""
    _rewrite("gather", "story.f or 0, story.c or 0,", "count - 1, story.c or 0,")


def settle_without_owner_check() -> None:
    """Carry out whatever a worker says, whoever has the message by now."""
    _rewrite("settle", "if owner ~= ME or count ~= item.count then return too_late(item, owner, count) end", "")


def delete_the_consumers_of_the_dead() -> None:
    """Clean up after a dead worker by its name, with whatever it held."""
    _rewrite(
        "reap",
        "elseif name:sub(1, 1) ~= '~' and pending > 0 then",
        "elseif dead[name] then redis.call('XGROUP', 'DELCONSUMER', where[1], GROUP, name)\n"
        "    elseif name:sub(1, 1) ~= '~' and pending > 0 then",
    )


def reap_all_consumers_at_once() -> None:
    """Look for what the dead held among the first hundred pending entries, whoever has those."""
    _rewrite(
        "reap",
        "local found = redis.call('XPENDING', key, GROUP, 'IDLE', lease, '-', '+', MOST, name)",
        "local found = {}\n"
        "  for _, one in ipairs(redis.call('XPENDING', key, GROUP, 'IDLE', lease, '-', '+', MOST)) do\n"
        "    if one[2] == name then found[#found + 1] = one end\n"
        "  end",
    )


def send_again_blindly() -> None:
    """Send whatever had no answer once more, as client libraries do unless they are told otherwise."""
    send = Wire.calls

    async def calls(self: Wire, commands: Sequence[Sequence[Value]]) -> list[Any]:
        try:
            return await send(self, commands)
        except BrokerUnavailable:
            return await send(self, commands)

    Wire.calls = calls  # type: ignore[method-assign]


BUGS: Final[Mapping[str, Callable[[], None]]] = {
    bug.__name__: bug
    for bug in (
        count_deliveries_as_attempts,
        settle_without_owner_check,
        delete_the_consumers_of_the_dead,
        reap_all_consumers_at_once,
        send_again_blindly,
    )
}


def _rewrite(name: str, right: str, wrong: str) -> None:
    """Change a line of a script, and of every other script that shares it."""
    original = scripts.script
    assert right.encode() in original(name).source, f"{name}.lua has no such line: {right}"

    def script(name: str) -> scripts.Script:
        source = original(name).source.replace(right.encode(), wrong.encode())
        return scripts.Script(source, hashlib.sha1(source, usedforsecurity=False).hexdigest())

    scripts.script = script  # type: ignore[assignment]
