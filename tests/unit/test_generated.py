"""What is generated in deploy/ is what the generator says, and true to the program."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import alerting

from deploy.generator.alert_files import grafana_alerts, prometheus_alerts
from deploy.generator.alert_table import ALERTS, AlertRow
from deploy.generator.compat import compat_rules
from deploy.generator.files import DEPLOY, generated
from redrive.observe.table import TABLE

ROOT = DEPLOY.parent
PROVEN: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus/alerts.test.yaml").read_text("utf-8"))["tests"]
COMPAT: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus/compat.test.yaml").read_text("utf-8"))["tests"]
OURS = re.compile(r"\bredrive_\w+")


def any_alert() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", ALERTS, ids=lambda row: row.name)


@pytest.mark.parametrize("name", generated())
def test_a_generated_file_is_what_the_generator_writes(name: str) -> None:
    assert (DEPLOY / name).read_text("utf-8") == generated()[name], "run: python -m deploy.generator"


@any_alert()
def test_an_alert_has_a_summary_a_value_and_a_runbook_that_exists(row: AlertRow) -> None:
    (rule,) = [rule for rule in prometheus_alerts()["groups"][0]["rules"] if rule["alert"] == row.name]
    said = rule["annotations"]

    assert said["summary"]
    assert "$value" in said["description"]
    assert (ROOT / said["runbook_url"]).is_file()
    assert row.name in (ROOT / said["runbook_url"]).read_text("utf-8")


@any_alert()
def test_an_alert_names_only_labels_that_it_has(row: AlertRow) -> None:
    named = {*re.findall(r"{(\w+)}", row.summary + row.description)} - {"value", "window"}

    assert named <= {*row.labels}
    assert f"by ({', '.join(row.labels)}) (" in row.value


@any_alert()
def test_an_alert_is_shown_both_firing_and_silent_to_promtool(row: AlertRow) -> None:
    shown = [
        bool(one["exp_alerts"]) for test in PROVEN for one in test["alert_rule_test"] if one["alertname"] == row.name
    ]

    assert {*shown} == {True, False}


def test_every_recorded_name_is_shown_to_promtool() -> None:
    recorded = {rule["record"] for group in compat_rules()["groups"] for rule in group["rules"]}
    asked = {one["expr"] for test in COMPAT for one in test["promql_expr_test"]}

    assert {name for name in recorded if not re.search("_(sum|count)$", name)} == asked


def test_rules_ask_for_metrics_that_there_are_by_labels_that_they_have() -> None:
    text = yaml.safe_dump(prometheus_alerts()) + yaml.safe_dump(compat_rules())
    rows = {row.name: row for row in TABLE}
    histograms = {
        f"{row.name}_{part}" for row in TABLE if row.kind == "histogram" for part in ("bucket", "sum", "count")
    }

    assert {*OURS.findall(text)} <= rows.keys() | histograms
    assert {label for row in ALERTS for label in row.labels} <= {label for row in TABLE for label in row.labels}


def test_a_scale_changes_every_time_and_no_number_of_letters() -> None:
    shipped, scaled = (
        {rule["alert"]: (rule["expr"], rule["for"]) for rule in prometheus_alerts(scale=scale)["groups"][0]["rules"]}
        for scale in (1, 0.5)
    )

    assert (shipped["RedriveDlqSizeHigh"][1], scaled["RedriveDlqSizeHigh"][1]) == ("5m", "150s")
    assert shipped["RedriveDlqThreshold"][0].replace("1h", "30m") == scaled["RedriveDlqThreshold"][0]
    assert scaled["RedriveCollectorLag"][0].endswith("> 150")
    assert scaled["RedriveDlqHighRate"][0].endswith("/ 150 > 0.2")
    assert scaled["RedriveDlqAccumulating"][0] == shipped["RedriveDlqAccumulating"][0]


def test_grafana_is_given_the_same_alerts_with_the_same_limits() -> None:
    rules = {rule["alert"]: rule for rule in prometheus_alerts()["groups"][0]["rules"]}
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text("utf-8"))
    for rule in grafana_alerts()["groups"][0]["rules"]:
        measured, condition = rule["data"]
        (limit,) = condition["model"]["conditions"][0]["evaluator"]["params"]
        same = rules[rule["title"]]
        assert f"{measured['model']['expr']} > {limit:g}" == same["expr"]
        assert (rule["for"], rule["labels"]) == (same["for"], same["labels"])
        assert (rule["condition"], condition["model"]["expression"]) == (condition["refId"], measured["refId"])
        assert measured["datasourceUid"] == source["datasources"][0]["uid"]
        assert re.fullmatch(r"[a-z-]{1,40}", rule["uid"])
        assert (
            rule["annotations"]["description"].replace("$values.A.Value", "$value")
            == same["annotations"]["description"]
        )
    assert len(grafana_alerts()["groups"][0]["rules"]) == len(rules)


def test_grafana_knows_every_field_of_its_alerts() -> None:
    for rule in grafana_alerts()["groups"][0]["rules"]:
        understood = json.loads(JSONEncoder().encode(alerting.Rule.from_json(rule)))
        assert {name: understood.get(name) for name in rule} == rule


def test_links_lead_where_runbooks_are_said_to_be(tmp_path: Path) -> None:
    made = generated(runbooks="https://wiki.example/runbooks/")

    assert "runbook_url: https://wiki.example/runbooks/dlq-size-high.md\n" in made["prometheus/alerts.rules.yaml"]
    assert (
        "runbook_url: https://wiki.example/runbooks/dlq-size-high.md\n"
        in made["grafana/provisioning/alerting/redrive.yaml"]
    )
