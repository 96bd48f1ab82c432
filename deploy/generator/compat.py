"""Recording rules that give our metrics the names which teams already have on their dashboards.

Counters are kept apart by job and instance, as if each process showed them itself: `rate()` of a sum would take the
restart of one process for growth of the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from deploy.generator.alert_table import DLQ_SIZE
from redrive.observe import table

_EACH: Final = ("job", "instance")
_REDIS: Final = 'broker=~"redis.*"'
_OTHERS: Final = 'broker!~"redis.*"'


def compat_rules() -> Mapping[str, Any]:
    """All of them, as Prometheus reads them."""
    seeds = {
        "messages": _messages(),
        "worker-agent": _worker_agent(),
        "events": _events(),
        "router-intake": _router_intake(),
    }
    return {"groups": [{"name": f"redrive-compat-{name}", "rules": [*rules]} for name, rules in seeds.items()]}


def _messages() -> Iterator[Mapping[str, Any]]:
    yield _rule("messages_dlq_total", _each(table.LETTERS.name, "queue", "error_type"))
    yield _rule("message_processing_retries_total", _each(table.RETRIES.name, "queue"))
    yield _rule("dlq_size", DLQ_SIZE)
    yield from _histogram("message_retry_count", lambda part, le: _each(part, "queue", "outcome", *le))
    for status, outcomes in (("success", "acked"), ("error", "retried|dead"), ("dlq", "dead")):
        settled = _each(f'{table.SETTLED.name}{{outcome=~"{outcomes}"}}', "queue")
        yield {**_rule("messages_processed_total", settled), "labels": {"status": status}}


def _worker_agent() -> Iterator[Mapping[str, Any]]:
    reason = _renamed(table.LETTERS.name, "reason", "max_retries_exceeded", "reason", "attempts_exhausted")
    yield _rule("worker_agent_dlq_messages_total", _each(reason, "reason", "task_type"))
    yield from _histogram("worker_agent_ticket_retry_count", lambda part, le: _each(part, *le))
    errors = _renamed(_each(table.REFUSED.name, "failure_reason"), "error_type", "$1", "failure_reason")
    yield _rule("worker_agent_dlq_publish_errors_total", _each(errors, "error_type"))


def _events() -> Iterator[Mapping[str, Any]]:
    yield _rule("event_dlq_total", _by_topic(table.LETTERS.name, "error_type"))
    yield _rule("event_dlq_errors_total", _by_topic(table.REFUSED.name))
    on_redis = f"on (queue) {table.DLQ_ENTRIES.name}{{{_REDIS}}}"
    size = _topics(f"{DLQ_SIZE} and {on_redis}", f"{DLQ_SIZE} unless {on_redis}")
    yield _rule("event_dlq_queue_size", f"sum by (topic, source_topic, dlq_topic) ({size})")
    yield from _histogram("event_dlq_processing_attempts", lambda part, le: _by_topic(part, *le, where='outcome="dlq"'))


def _router_intake() -> Iterator[Mapping[str, Any]]:
    labels = {"labels": {"reason": "validation_failed"}}
    for name, row, more in (
        ("router_intake_dlq_messages_total", table.LETTERS, ()),
        ("router_intake_dlq_publish_failed_total", table.REFUSED, ("failure_reason",)),
    ):
        subject = _renamed(
            _each(f'{row.name}{{reason="invalid"}}', "queue", "error_code", *more), "subject", "$1", "queue"
        )
        yield {**_rule(name, _each(subject, "error_code", "subject", *more)), **labels}


def _rule(name: str, expression: str) -> Mapping[str, Any]:
    return {"record": name, "expr": expression}


def _histogram(name: str, made: Callable[[str, tuple[str, ...]], str]) -> Iterator[Mapping[str, Any]]:
    parts: Mapping[str, tuple[str, ...]] = {"bucket": ("le",), "sum": (), "count": ()}
    for part, le in parts.items():
        yield _rule(f"{name}_{part}", made(f"{table.ATTEMPTS.name}_{part}", le))


def _each(vector: str, *labels: str) -> str:
    return f"sum by ({', '.join((*_EACH, *labels))}) ({vector})"


def _renamed(vector: str, label: str, value: str, source: str, matching: str = "(.*)") -> str:
    return f'label_replace({vector}, "{label}", "{value}", "{source}", "{matching}")'


def _by_topic(metric: str, *labels: str, where: str = "") -> str:
    """By topic, which is the queue, and by its DLQ: a broker whose name begins with `redis` calls it as Redis does."""
    on_redis, elsewhere = (f"{metric}{{{', '.join(filter(None, (where, one)))}}}" for one in (_REDIS, _OTHERS))
    topics = _topics(*(_each(one, "queue", *labels) for one in (on_redis, elsewhere)))
    return _each(topics, "topic", "source_topic", "dlq_topic", *labels)


def _topics(on_redis: str, elsewhere: str) -> str:
    dlqs: Sequence[str] = [
        _renamed(on_redis, "dlq_topic", "$1:dlq", "queue"),
        _renamed(elsewhere, "dlq_topic", "$1.dlq", "queue"),
    ]
    return _renamed(_renamed(" or ".join(dlqs), "topic", "$1", "queue"), "source_topic", "$1", "queue")
