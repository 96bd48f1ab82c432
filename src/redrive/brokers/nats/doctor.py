"""What could lose messages here, and what to do about it. Each check names the loss it bears on."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from redrive.brokers.nats.names import BUCKET_STREAM
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.streams import GROUP, MARK, Stream
from redrive.core.ports import Finding

OLDEST: Final = (2, 12)
"""The first server with delayed messages and batches; 2.11 was the first that reads many messages at once."""
_HEADROOM: Final = 64 * 1024
_SAFE: Final = 2
_WINDOW_IN_LEASES: Final = 10
_FEW: Final = 3


async def examine(office: Office) -> Sequence[Finding]:
    """Look at the server, at every stream that has a group of ours, and at its consumers."""
    client = await office.link.client()
    version = client.connected_server_version
    findings = [_version((version.major, version.minor), str(client.connected_server_version))]
    findings.append(_room(client.max_payload))
    streams = await office.streams.all()
    consumers = {stream.name: await office.groups.of(stream) for stream in streams if stream.name != BUCKET_STREAM}
    ours = [stream for stream in streams if _is_ours(stream, consumers.get(stream.name, ()))]
    findings += [*_copies(ours), *_storage(ours)]
    for stream in ours:
        groups = [one["config"] for one in consumers.get(stream.name, ()) if _is_group(one)]
        findings += [*_limits(stream), *_window(stream, groups), *_consumers(stream, groups)]
    findings.append(_disk())
    return findings


def _is_group(consumer: dict[str, Any]) -> bool:
    return GROUP in (consumer["config"].get("metadata") or {})


def _is_ours(stream: Stream, consumers: Sequence[dict[str, Any]]) -> bool:
    return (
        stream.name == BUCKET_STREAM or MARK in (stream.config.get("metadata") or {}) or any(map(_is_group, consumers))
    )


def _version(version: tuple[int, int], told: str) -> Finding:
    prevents = "delayed messages, batches that are all or none, and what is looked up in one question"
    if version >= OLDEST:
        return Finding("version", "ok", f"nats-server {version[0]}.{version[1]}", prevents)
    advice = "use nats-server 2.12 or later"
    return Finding("version", "fail", f"nats-server {told}", prevents, advice)


def _room(max_payload: int) -> Finding:
    found = f"max_payload is {max_payload} bytes, headers included"
    prevents = "nothing: a letter whose message leaves no room for its headers is written in two messages"
    return Finding("size", "ok" if max_payload >= _HEADROOM else "warn", found, prevents, "raise max_payload")


def _copies(streams: Sequence[Stream]) -> Iterator[Finding]:
    prevents = "everything in a stream whose only server is gone"
    alone = [stream.name for stream in streams if int(stream.config.get("num_replicas") or 1) < _SAFE]
    if alone:
        advice = (
            "use a cluster of three servers and ?replicas=3, and `nats stream edit --replicas 3` for those that exist"
        )
        yield Finding("replicas", "warn", f"one copy only: {_some(alone)}", prevents, advice)
    else:
        yield Finding("replicas", "ok", "every stream has two copies or more", prevents)


def _storage(streams: Sequence[Stream]) -> Iterator[Finding]:
    prevents = "everything in a stream when its server is started again"
    kept = [stream.name for stream in streams if stream.config.get("storage") == "memory"]
    if kept:
        yield Finding("storage", "fail", f"in memory: {_some(kept)}", prevents, "begin these streams with file storage")
    else:
        yield Finding("storage", "ok", "every stream is on disk", prevents)


def _limits(stream: Stream) -> Iterator[Finding]:
    """Messages that a stream pushes out are lost without a word."""
    if stream.config.get("sealed") or stream.name == BUCKET_STREAM:
        return
    what = "letters that nobody has collected by then" if stream.is_dlq else "messages that nobody has handled by then"
    if age := int(stream.config.get("max_age") or 0):
        days = timedelta(microseconds=age // 1000) / timedelta(days=1)
        level: Any = "ok" if stream.is_dlq else "warn"
        yield Finding("retention", level, f"{stream.name} keeps messages for {days:.3g} days", what, "set max_age to 0")
    bounded = [
        name for name in ("max_msgs", "max_bytes", "max_msgs_per_subject") if int(stream.config.get(name) or -1) > 0
    ]
    if bounded and stream.config.get("discard") != "new":
        found = f"{stream.name} pushes out the oldest ({', '.join(bounded)}, discard: old)"
        yield Finding("discard", "fail", found, what, f"set discard to new on {stream.name}")


def _window(stream: Stream, groups: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    if not stream.is_dlq:
        return
    longest = max((int(one.get("ack_wait") or 0) for one in groups), default=0)
    found = f"{stream.name} knows a letter again for {stream.window}"
    prevents = "a second copy of a letter whose worker died between letter and ack (the store's key resolves it)"
    if stream.window >= _WINDOW_IN_LEASES * timedelta(microseconds=longest // 1000):
        yield Finding("dedupe", "ok", found, prevents)
    else:
        yield Finding("dedupe", "warn", found, prevents, "set duplicate_window to ten leases or more")


def _consumers(stream: Stream, groups: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    for config in groups:
        name = f"{stream.name}/{config['name']}"
        if int(config.get("max_deliver") or -1) > 0:
            found = f"max_deliver of {name} is {config['max_deliver']}"
            lost = "messages that were handed out so often: the server never delivers them again"
            yield Finding("max_deliver", "fail", found, lost, f"set max_deliver to -1 on {name}")
        if int(config.get("max_ack_pending") or -1) > 0:
            found = f"max_ack_pending of {name} is {config['max_ack_pending']}"
            lost = "nothing, but as many waiting retries stop the queue"
            yield Finding("max_ack_pending", "warn", found, lost, f"set max_ack_pending to -1 on {name}")


def _disk() -> Finding:
    found = "a server does not tell its sync_interval; by default it writes through every two minutes"
    prevents = "what was acknowledged since, when the power fails"
    advice = "set sync_interval: always in the server's configuration, or use three replicas on separate power"
    return Finding("disk", "warn", found, prevents, advice)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_FEW])
    return shown if len(names) <= _FEW else f"{shown} and {len(names) - _FEW} more"
