"""What the doctor sees in a queue: messages that somebody trimmed too early, and what gone groups have left behind."""

from typing import Any

from redrive.brokers.redis.errors import code_of, translate
from redrive.brokers.redis.keys import QueueKeys
from redrive.brokers.redis.wire import Wire
from redrive.core.errors import QueueNotFound
from redrive.core.ports import Finding

_PREVENTS = "messages that nobody has read, or that are being worked on"


async def examine_stream(wire: Wire, queue: str) -> list[Finding]:
    """What is wrong with a queue; nothing if all is well, or if there is no such stream."""
    keys = QueueKeys(queue)
    stream, groups, meta = await wire.calls(
        [("XINFO", "STREAM", queue), ("XINFO", "GROUPS", queue), ("HKEYS", keys.meta)]
    )
    for answer in (stream, groups, meta):
        if isinstance(answer, Exception):
            if code_of(answer) == "WRONGTYPE" or isinstance(translate(answer), QueueNotFound):
                return []
            raise translate(answer)
    found = _by_name(stream)
    first = found["first-entry"][0] if found["first-entry"] else found["last-generated-id"]
    known = [_by_name(group) for group in groups]
    findings = []
    for group in known:
        why = await _trimmed(wire, queue, group, first=first, length=found["length"])
        if why:
            advice = "let producers add without MAXLEN and MINID, and set trim='acked' on the consumer instead"
            findings.append(Finding("trimming", "fail", f"{queue}: {why}", _PREVENTS, advice))
    return findings + _left_behind(keys, meta, {group["name"] for group in known})


async def _trimmed(wire: Wire, queue: str, group: dict[str, Any], *, first: bytes, length: int) -> str:
    """What says that messages were taken from the stream before this group was done with them."""
    name, last, lag = group["name"].decode("utf-8", "backslashreplace"), group["last-delivered-id"], group["lag"]
    new, (_, lowest, *_) = [
        *await wire.calls([("XRANGE", queue, b"(" + last, "+", "COUNT", 1), ("XPENDING", queue, group["name"])])
    ]
    if lag and not new:
        return f"{lag} messages were trimmed before group {name!r} had read them"
    if lag and lag > length:
        return f"{lag - length} messages were trimmed before group {name!r} had read them"
    if lowest and _parts(lowest) < _parts(first):
        return f"messages were trimmed while group {name!r} was working on them"
    return ""


def _left_behind(keys: QueueKeys, meta: list[bytes], groups: set[bytes]) -> list[Finding]:
    joined = {field.removeprefix(b"group:") for field in meta if field.startswith(b"group:")}
    return [
        Finding(
            "gone group",
            "warn",
            f"{keys.queue}: group {name!r} is gone and has left keys behind",
            "letters that were sent back to it, and memory that nobody gives back",
            f"redis-cli DEL {' '.join(map(repr, keys.group(name).all_own))}; redis-cli HDEL {keys.meta!r} group:{name}",
        )
        for name in sorted(field.decode() for field in joined - groups)
    ]


def _by_name(flat: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _parts(entry_id: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in entry_id.split(b"-"))
