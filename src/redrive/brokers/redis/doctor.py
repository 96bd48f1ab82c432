"""What could lose messages here, and what to do about it. Each check names the loss it bears on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from redrive.brokers.redis.address import Durability
from redrive.brokers.redis.errors import translate
from redrive.brokers.redis.keys import QUEUES
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.streams import examine_stream
from redrive.brokers.redis.traits import OLDEST
from redrive.brokers.redis.wire import Wire
from redrive.core.ports import Finding

_SETTINGS: Final = ("maxmemory-policy", "appendonly", "appendfsync", "save", "min-replicas-to-write")


@dataclass(frozen=True, slots=True)
class Facts:
    """What one server tells of itself. A setting that it keeps to itself is absent."""

    info: Mapping[str, str]
    settings: Mapping[str, str]
    durability: Durability
    fails_over: bool

    @property
    def replicas(self) -> int:
        """How many replicas are connected."""
        return int(self.info.get("connected_slaves", "0"))


async def examine(server: Server, queues: Sequence[str]) -> Sequence[Finding]:
    """Look at every server that has one of these queues, without stopping anybody."""
    found: list[Finding] = []
    seen: set[str] = set()
    for key in (QUEUES, *queues):
        async with server.wire(key) as wire:
            facts = await _ask(wire, server)
            if facts.info["run_id"] not in seen:
                seen.add(facts.info["run_id"])
                found += _of_this(facts, several=server.address.is_cluster)
            if key != QUEUES:
                found += await examine_stream(wire, key)
    if not any(finding.check == "trimming" for finding in found):
        found.append(Finding("trimming", "ok", "no message was trimmed before it was read", "messages nobody has read"))
    return found


async def _ask(wire: Wire, server: Server) -> Facts:
    info, settings = await wire.calls([("INFO",), ("CONFIG", "GET", *_SETTINGS)])
    if isinstance(info, Exception):
        raise translate(info)
    told = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    words = [word.decode() for word in settings] if isinstance(settings, list) else []
    fails_over = server.address.scheme in ("redis+sentinel", "redis+cluster")
    return Facts(told, dict(zip(words[::2], words[1::2], strict=True)), server.address.durability, fails_over)


def _of_this(facts: Facts, *, several: bool) -> list[Finding]:
    findings = [_version(facts), _eviction(facts), _persistence(facts), _disk(facts), *_replicas(facts)]
    if not several:
        return findings
    where = f"port {facts.info.get('tcp_port', '?')}"
    return [replace(finding, found=f"{where}: {finding.found}") for finding in findings]


def _version(facts: Facts) -> Finding:
    version = facts.info.get("redis_version", "0.0")
    new_enough = tuple(int(part) for part in version.split(".")[:2]) >= OLDEST
    return Finding(
        "version",
        "ok" if new_enough else "fail",
        f"Redis {version}",
        "steps that are carried out by halves: what must be one step is a script that older servers do not know",
        "" if new_enough else "use Redis 7.0 or later",
    )


def _eviction(facts: Facts) -> Finding:
    policy = facts.settings.get("maxmemory-policy") or facts.info.get("maxmemory_policy", "not known")
    prevents = "queues, groups and dead letters that the server throws away when its memory is full"
    if policy == "noeviction":
        return Finding("eviction", "ok", "maxmemory-policy is noeviction", prevents)
    return Finding(
        "eviction", "fail", f"maxmemory-policy is {policy}", prevents, "CONFIG SET maxmemory-policy noeviction"
    )


def _persistence(facts: Facts) -> Finding:
    aof = facts.info.get("aof_enabled") == "1"
    fsync = facts.settings.get("appendfsync", "not known")
    if aof and fsync == "always":
        return Finding("persistence", "ok", "every write is on disk before it is acknowledged", "acknowledged messages")
    if aof:
        seconds = "up to a second" if fsync == "everysec" else "some seconds"
        return Finding(
            "persistence",
            "warn",
            f"appendonly is on, appendfsync is {fsync}",
            f"{seconds} of acknowledged messages, when the machine loses power",
            "CONFIG SET appendfsync always; or use replicas and durability=wait:1",
        )
    snapshots = facts.settings.get("save", "not known")
    return Finding(
        "persistence",
        "fail",
        f"appendonly is off, save is {snapshots!r}",
        "everything since the last snapshot, when the server ends" if snapshots else "everything, when the server ends",
        "CONFIG SET appendonly yes, and the same in redis.conf",
    )


def _disk(facts: Facts) -> Finding:
    failing = [
        name
        for name in ("rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status")
        if facts.info.get(name, "ok") != "ok"
    ]
    prevents = "publishing and acks that the server refuses (MISCONF), so that finished work is done again"
    if not failing:
        return Finding("disk", "ok", "the last writes to disk went well", prevents)
    found = ", ".join(f"{name} is {facts.info[name]}" for name in failing)
    return Finding("disk", "fail", found, prevents, "look into the server's log; most often its disk is full")


def _replicas(facts: Facts) -> list[Finding]:
    wanted, there = facts.durability.replicas, facts.replicas
    found = f"{there} replicas are connected, durability waits for {wanted or 'none'}"
    lost = "acknowledged messages that no replica had yet, when the primary fails"
    if there < wanted:
        advice = f"start replicas: until there are {wanted}, publishing is not confirmed"
        return [Finding("replicas", "fail", found, lost, advice)]
    if (there or facts.fails_over) and not wanted:
        return [Finding("replicas", "warn", found, lost, "add durability=wait:1 to the URL"), *_cut_off(facts)]
    return [Finding("replicas", "ok", found, lost), *_cut_off(facts)]


def _cut_off(facts: Facts) -> list[Finding]:
    asked = facts.settings.get("min-replicas-to-write")
    if not facts.replicas or asked is None:
        return []
    prevents = "messages accepted by a primary that is cut off, and thrown away when it comes back as a replica"
    if int(asked) > 0:
        return [Finding("cut off", "ok", f"min-replicas-to-write is {asked}", prevents)]
    return [Finding("cut off", "warn", "min-replicas-to-write is 0", prevents, "CONFIG SET min-replicas-to-write 1")]
