"""What the doctor finds, and which loss it names."""

from types import SimpleNamespace
from typing import Any

from redrive.brokers.kafka import DlqTopic, KafkaBroker
from redrive.brokers.kafka.doctor import Topic, _election, _headroom, _kept, _offsets, _ours, _replication, examine
from redrive.core.ports import Finding
from tests.kafka.scenes import bench_on

LANE = "orders..shop.lane"


def topic(name: str = "orders", *, replicas: int = 3, in_sync: int = 3, **settings: str) -> Topic:
    return Topic(name, replicas, in_sync, {key.replace("_", "."): value for key, value in settings.items()})


def levels(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.level for finding in findings}


async def test_a_lone_broker_is_told_of_and_nothing_has_failed(broker: KafkaBroker, queue: str) -> None:
    await bench_on(broker, queue).given_up(b"1")
    findings = list(await broker.diagnose())

    assert levels(findings)["replication"] == "warn"
    assert not [finding for finding in findings if finding.level == "fail"]
    assert {"offsets", "replication", "dead letters", "size"} <= set(levels(findings))


def test_a_topic_that_is_just_being_deleted_is_passed_over() -> None:
    found = {"orders": SimpleNamespace(partitions={}), LANE: SimpleNamespace(partitions={})}
    topics = SimpleNamespace(
        described=lambda: found,
        dlq=DlqTopic(),
        settings=lambda names: {name: {} for name in names},
        broker_settings=dict,
    )
    office: Any = SimpleNamespace(topics=topics)

    assert levels([*examine(office)]) == {"offsets": "ok", "replication": "ok", "size": "ok"}


def test_each_danger_has_its_finding() -> None:
    alone = levels(list(_replication([topic(replicas=1, in_sync=1)])))
    behind = levels(list(_replication([topic(in_sync=2, min_insync_replicas="1")])))
    safe = levels(list(_replication([topic(min_insync_replicas="2")])))

    assert alone == {"replication": "warn"}
    assert behind == {"replication": "ok", "in sync": "warn", "min.insync.replicas": "warn"}
    assert safe == {"replication": "ok"}


def test_settings_that_throw_away_what_is_ours_are_failures() -> None:
    lane = list(_kept(topic(LANE, retention_ms="604800000")))
    book = list(_kept(topic("orders..shop.book", cleanup_policy="delete")))
    dlq = list(_kept(topic("orders.dlq", retention_ms="86400000")))
    election = list(_election([Topic("orders", 3, 3, {"unclean.leader.election.enable": "true"})]))

    assert [each.level for each in (*lane, *book, *dlq, *election)] == ["fail", "fail", "warn", "fail"]
    assert all(each.advice and each.prevents for each in (*lane, *book, *dlq, *election))


def test_offsets_that_are_soon_forgotten_are_told_of() -> None:
    assert _offsets({"offsets.retention.minutes": "60"}).level == "warn"
    assert _offsets({}).level == "ok"


def test_a_dlq_that_takes_no_more_than_its_queue_is_told_of() -> None:
    def sizes(**names: str) -> dict[str, Topic]:
        return {name.replace("_", "."): Topic(name, 3, 3, {"max.message.bytes": size}) for name, size in names.items()}

    assert levels(list(_headroom(sizes(orders="1000", orders_dlq="1000")))) == {"size": "warn"}
    assert levels(list(_headroom(sizes(orders="1000", orders_dlq="2000")))) == {"size": "ok"}


def test_a_dlq_for_all_queues_is_looked_at_under_its_own_name() -> None:
    found = {"orders": topic(max_message_bytes="1000"), "graves": topic("graves", max_message_bytes="1000")}

    assert levels(list(_headroom(found, "graves"))) == {"size": "warn"}
    assert levels(list(_kept(topic("graves", retention_ms="86400000"), "graves"))) == {"dead letters": "warn"}
    assert _ours(dict.fromkeys(["orders", LANE, "graves", "others", "others.dlq"]), "graves") == [
        "graves",
        "orders",
        LANE,
    ]
