"""What could lose messages here, and what to do about it. Each check names the loss it bears on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from redrive.brokers.kafka.names import ALIVE, is_private
from redrive.brokers.kafka.office import Office
from redrive.core.place import DLQ, queue_of
from redrive.core.ports import Finding

_DAY: Final = 24 * 3600 * 1000
_WEEK: Final = 7 * _DAY
_SAFE: Final = 2  # copies


class Topic(NamedTuple):
    """What the cluster tells of a topic."""

    name: str
    replicas: int
    in_sync: int
    settings: Mapping[str, str]

    @property
    def retention(self) -> int:
        """Milliseconds; -1 for ever."""
        return int(self.settings.get("retention.ms", "-1"))

    @property
    def largest(self) -> int:
        """Bytes of the largest message."""
        return int(self.settings.get("max.message.bytes", "0"))


def examine(office: Office) -> Sequence[Finding]:
    """Look at the cluster, at every queue that has a group of ours, and at what belongs to it."""
    found = {name: topic for name, topic in office.topics.described().items() if topic.partitions}  # others are going
    dlq = office.topics.dlq.name
    ours = _ours(found, dlq)
    settings = office.topics.settings(ours)
    topics = [Topic(name, *_copies(found[name]), settings[name]) for name in ours]
    findings = [_offsets(office.topics.broker_settings()), *_replication(topics), *_election(topics)]
    findings += [finding for topic in topics for finding in _kept(topic, dlq)]
    findings += _headroom({topic.name: topic for topic in topics}, dlq)
    return findings


def _ours(found: Mapping[str, Any], dlq: str) -> list[str]:
    queues = {name.partition("..")[0] for name in found if is_private(name) and not name.startswith("__")}
    return sorted(
        name
        for name in found
        if name == dlq or name.partition("..")[0] in queues or not queues.isdisjoint(_dead_from(name, dlq))
    )


def _dead_from(name: str, dlq: str) -> set[str]:
    """The queue whose DLQ is called so, as it usually is or as the settings say."""
    return {queue for pattern in (DLQ, dlq) if (queue := queue_of(pattern, name))}


def _copies(topic: Any) -> tuple[int, int]:
    partitions = topic.partitions.values()
    return min(len(each.replicas) for each in partitions), min(len(each.isrs) for each in partitions)


def _offsets(settings: Mapping[str, str]) -> Finding:
    minutes = int(settings.get("offsets.retention.minutes", "10080"))
    found = f"offsets.retention.minutes is {minutes}"
    prevents = "the place of a group that rests for longer: it would read its queue again from the beginning"
    if minutes * 60_000 >= _WEEK:
        return Finding("offsets", "ok", found, prevents)
    return Finding("offsets", "warn", found, prevents, "set offsets.retention.minutes to 10080 or more on the brokers")


def _replication(topics: Sequence[Topic]) -> Iterator[Finding]:
    prevents = "everything in a partition whose only broker is gone"
    alone = [topic.name for topic in topics if topic.replicas < _SAFE and topic.name != ALIVE]
    if alone:
        advice = "use a cluster of three brokers, and kafka-reassign-partitions for topics that exist"
        yield Finding("replication", "warn", f"one copy only: {_some(alone)}", prevents, advice)
    else:
        yield Finding("replication", "ok", "every topic has two copies or more", prevents)
    behind = [topic.name for topic in topics if topic.in_sync < topic.replicas]
    if behind:
        yield Finding(
            "in sync", "warn", f"copies are missing or behind: {_some(behind)}", prevents, "look at the brokers"
        )
    few = [
        topic.name
        for topic in topics
        if topic.replicas > _SAFE and int(topic.settings.get("min.insync.replicas", "1")) < _SAFE
    ]
    if few:
        advice = "set min.insync.replicas to 2"
        lost = "messages that only one broker had when it acknowledged them"
        yield Finding("min.insync.replicas", "warn", f"is 1 for {_some(few)}", lost, advice)


def _election(topics: Sequence[Topic]) -> Iterator[Finding]:
    unclean = [topic.name for topic in topics if topic.settings.get("unclean.leader.election.enable") == "true"]
    if unclean:
        lost = "acknowledged messages that the new leader has never had"
        yield Finding("election", "fail", f"unclean for {_some(unclean)}", lost, "unclean.leader.election.enable=false")


def _kept(topic: Topic, dlq: str = DLQ) -> Iterator[Finding]:
    if topic.name.endswith(".lane") and is_private(topic.name) and topic.retention != -1:
        found = f"{topic.name} keeps messages for {topic.retention / _DAY:.0f} days"
        yield Finding("retries", "fail", found, "retries that wait for longer", f"set retention.ms=-1 on {topic.name}")
    if topic.name.endswith((".book", ".ledger")) and topic.settings.get("cleanup.policy") != "compact":
        found = f"cleanup.policy of {topic.name} is {topic.settings.get('cleanup.policy')}"
        lost = "suspects, held messages, and what is known of letters that were sent back"
        yield Finding("books", "fail", found, lost, f"set cleanup.policy=compact on {topic.name}")
    if (topic.name == dlq or _dead_from(topic.name, dlq)) and topic.retention != -1:
        days = topic.retention / _DAY
        found = f"{topic.name} keeps letters for {days:.0f} days"
        lost = "letters that nobody has collected by then"
        if topic.retention < _WEEK:
            yield Finding("dead letters", "warn", found, lost, f"set retention.ms=2592000000 on {topic.name}")
        else:
            yield Finding("dead letters", "ok", found, lost)


def _headroom(topics: Mapping[str, Topic], dlq: str = DLQ) -> Iterator[Finding]:
    prevents = "large messages that fail: neither a retry nor a letter of them could be written"
    small = []
    for name, topic in topics.items():
        queues = {name.partition("..")[0]} if name.endswith(".lane") else _dead_from(name, dlq)
        if name == dlq:  # for the dead of all queues
            queues = {each for each in topics if not is_private(each) and each != dlq}
        if any(topic.largest <= topics[queue].largest for queue in queues if queue in topics):
            small.append(name)
    if small:
        advice = "raise max.message.bytes there above that of the queue"
        yield Finding("size", "warn", f"no more room than in their queue: {_some(small)}", prevents, advice)
    else:
        yield Finding("size", "ok", "letters and retries may be larger than their messages", prevents)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"  # noqa: PLR2004
