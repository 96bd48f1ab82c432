"""Alerts seen firing, from the metric to somebody's call; and what dashboards ask, answered from the same run."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deploy.generator.alert_files import grafana_alerts
from deploy.generator.panels import PANELS, PanelRow
from tests.e2e.observed import Scene, watched
from tests.e2e.serving import until
from tests.servers.redis import RedisServer, ask

ROOT = Path(__file__).parents[2]

PROMQL = sorted(
    {
        line
        for path in (ROOT / "docs" / "runbooks").glob("*.md")
        for block in re.findall(r"```promql\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        for line in block.splitlines()
    }
)
SEEDS = (
    'worker_agent_dlq_messages_total{reason="max_retries_exceeded", task_type="BUILD"}',
    "rate(worker_agent_dlq_messages_total[5m])",
    "histogram_quantile(0.95, rate(worker_agent_ticket_retry_count_bucket[10m]))",
    "worker_agent_dlq_publish_errors_total",
    'rate(messages_dlq_total{error_type="TimeoutError", queue="orders"}[5m])',
    "increase(messages_dlq_total[5m])",
    'rate(message_processing_retries_total{queue="orders"}[5m])',
    'dlq_size{queue="orders"}',
    'histogram_quantile(0.95, rate(message_retry_count_bucket{outcome="success"}[10m]))',
    'histogram_quantile(0.95, rate(message_retry_count_bucket{outcome="dlq"}[10m]))',
    "rate(message_retry_count_sum[5m]) / rate(message_retry_count_count[5m])",
    *(f'rate(messages_processed_total{{status="{status}"}}[5m])' for status in ("success", "error", "dlq")),
    "sum(increase(event_dlq_total[1h]))",
    'rate(event_dlq_total{topic="orders", error_type="TimeoutError"}[5m])',
    'event_dlq_total{source_topic="orders", dlq_topic="orders:dlq"}',
    "event_dlq_errors_total",
    'event_dlq_queue_size{topic="orders"}',
    "histogram_quantile(0.5, rate(event_dlq_processing_attempts_bucket[10m]))",
    'router_intake_dlq_messages_total{reason="validation_failed", subject="decide"}',
    'router_intake_dlq_publish_failed_total{reason="validation_failed"}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What was seen while messages died, were looked at, and went back."""

    scene: Scene
    waiting: Mapping[str, Any]
    refused: Mapping[str, Any]
    while_waiting: Mapping[str, Mapping[str, str]]
    redrives: tuple[str, str]
    in_the_end: Mapping[str, Mapping[str, str]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[Story]:
    redis = f"{redis_server.url}/8"
    ask(redis, "FLUSHDB")
    with watched(tmp_path_factory.mktemp("watched"), redis) as scene:
        yield lived_through(scene, redis)


def lived_through(scene: Scene, redis: str) -> Story:
    bad = [{"kind": "bad", "task_type": "BUILD"}] * 12
    scene.publish("orders", *bad, *[{"kind": "shaky"}] * 3, *[{"kind": "good"}] * 20)
    scene.publish("decide", "not an object")
    refused = scene.called("firing", "RedriveDlqWriteFailures", "decide")
    ask(redis, "DEL", "decide:dlq")
    waiting = scene.called("firing", "RedriveDlqSizeHigh", "orders")
    for alert in ("RedriveDlqGrowthRapid", "RedriveNewIncident", "RedriveDlqAccumulating"):
        scene.called("firing", alert, "orders")
    sizes = ("RedriveDlqSizeHigh", "RedriveDlqAccumulating")
    while_waiting = {alert: scene.states(alert) for alert in sizes}

    stopped = scene.redrive("orders", canary=[1])
    scene.called("firing", "RedriveRedriveFailing", "orders")
    (scene.shop.folder / "mended").touch()
    done = scene.redrive("orders")
    scene.called("resolved", "RedriveDlqAccumulating", "orders")
    until(lambda: scene.states("RedriveDlqSizeHigh") == {}, what="the lesser alert is over too")
    return Story(
        scene=scene,
        waiting=waiting,
        refused=refused,
        while_waiting=while_waiting,
        redrives=(stopped, done),
        in_the_end={alert: scene.states(alert) for alert in sizes},
    )


def test_somebody_is_called_when_messages_die_and_again_when_they_were_redriven(story: Story) -> None:
    assert story.waiting["annotations"]["description"].endswith(": 12.")
    assert story.waiting["labels"]["severity"] == "warning"
    assert (ROOT / story.waiting["annotations"]["runbook_url"]).is_file()
    assert story.refused["labels"]["severity"] == "critical"
    assert story.redrives == ("stopped", "done")
    assert story.in_the_end == {"RedriveDlqSizeHigh": {}, "RedriveDlqAccumulating": {}}


def test_the_graver_alert_keeps_the_lesser_one_quiet(story: Story) -> None:
    assert story.while_waiting == {
        "RedriveDlqSizeHigh": {"orders": "suppressed"},
        "RedriveDlqAccumulating": {"orders": "active"},
    }


@pytest.mark.parametrize("query", SEEDS)
def test_a_query_under_a_name_that_teams_already_have_is_answered(story: Story, query: str) -> None:
    until(partial(answered, story, query), what=query)


@pytest.mark.parametrize("row", PANELS, ids=lambda row: row.title)
def test_every_expression_of_the_dashboard_is_answered(story: Story, row: PanelRow) -> None:
    for _, expression in row.asks:
        until(partial(answered, story, expression), what=expression)


@pytest.mark.parametrize("rule", grafana_alerts()["groups"][0]["rules"], ids=lambda rule: rule["title"])
def test_every_expression_that_grafana_evaluates_is_understood(story: Story, rule: Mapping[str, Any]) -> None:
    found = story.scene.prometheus.query(rule["data"][0]["model"]["expr"])

    assert all(labels.keys() >= {"queue"} for labels, _ in found)


@pytest.mark.parametrize("expression", PROMQL)
def test_every_query_of_a_runbook_is_understood(story: Story, expression: str) -> None:
    story.scene.prometheus.query(expression)


def answered(story: Story, expression: str) -> bool:
    """Whether there is a number for it; Grafana's variables stand for everything, and for the last minutes."""
    asked = expression.replace("$queue", ".*").replace("$__rate_interval", "5m").replace("$__range", "5m")
    return any(not math.isnan(value) for _, value in story.scene.prometheus.query(asked))
