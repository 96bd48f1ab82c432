"""The table of alerts as Prometheus, Alertmanager and Grafana read it."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from deploy.generator.alert_table import ALERTS, AlertRow, prometheus_time

RUNBOOKS: Final = "docs/runbooks"
"""Where runbooks are found, if nobody says where his are: in the repository."""

_SHOWN: Final = {"seconds": "humanizeDuration", "letters a second": 'printf "%.2f"'}
_PLACEHOLDER = re.compile(r"{(\w+)}")


def prometheus_alerts(*, scale: float = 1, runbooks: str = RUNBOOKS) -> Mapping[str, Any]:
    """The rules; with a scale, every time in them is so many times as long."""
    rules = []
    for row in ALERTS:
        value, above = row.at_scale(scale)
        rules.append(
            {
                "alert": row.name,
                "expr": f"{value} > {above:g}",
                "for": prometheus_time(row.lasting * scale),
                "labels": {"severity": row.severity},
                "annotations": _annotations(row, "$value", scale=scale, runbooks=runbooks),
            }
        )
    group: dict[str, Any] = {"name": "redrive", "rules": rules}
    if scale != 1:
        group["interval"] = prometheus_time(max(timedelta(minutes=1) * scale, timedelta(milliseconds=200)))
    return {"groups": [group]}


def alertmanager_settings() -> Mapping[str, Any]:
    """A configuration to begin with: one alert for each queue, and nobody told of what a graver alert says already."""
    return {
        "route": {
            "receiver": "people",
            "group_by": ["alertname", "queue"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "4h",
        },
        "receivers": [{"name": "people"}],
        "inhibit_rules": inhibitions(),
    }


def inhibitions() -> list[Mapping[str, Any]]:
    """Which alert silences which, of the same queue."""
    return [
        {
            "source_matchers": [f'alertname = "{row.name}"'],
            "target_matchers": [f'alertname = "{row.inhibits}"'],
            "equal": ["queue"],
        }
        for row in ALERTS
        if row.inhibits
    ]


def grafana_alerts(*, runbooks: str = RUNBOOKS) -> Mapping[str, Any]:
    """The same rules, for a Grafana that evaluates them itself."""
    group = {
        "orgId": 1,
        "name": "redrive",
        "folder": "Redrive",
        "interval": "1m",
        "rules": [_grafana_rule(row, runbooks=runbooks) for row in ALERTS],
    }
    return {"apiVersion": 1, "groups": [group]}


def _grafana_rule(row: AlertRow, *, runbooks: str) -> Mapping[str, Any]:
    value, above = row.at_scale(1)
    measured = {"refId": "A", "expr": value, "instant": True, "range": False}
    condition = {
        "refId": "B",
        "type": "threshold",
        "expression": "A",
        "conditions": [{"evaluator": {"type": "gt", "params": [above]}}],
    }
    return {
        "uid": re.sub(r"(?<!^)(?=[A-Z])", "-", row.name).lower(),
        "title": row.name,
        "condition": "B",
        "for": prometheus_time(row.lasting),
        "data": [_query(measured, "prometheus"), _query(condition, "__expr__")],
        "noDataState": "OK",  # a queue without letters has no series
        "execErrState": "Error",
        "labels": {"severity": row.severity},
        "annotations": _annotations(row, "$values.A.Value", runbooks=runbooks),
        "isPaused": False,
    }


def _query(model: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    return {
        "refId": model["refId"],
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": source,
        "model": model,
    }


def _annotations(row: AlertRow, value: str, *, scale: float = 1, runbooks: str) -> Mapping[str, str]:
    def named(match: re.Match[str]) -> str:
        match match[1]:
            case "value":
                shown = _SHOWN.get(row.unit, 'printf "%.0f"')
                return f"{{{{ {value} | {shown} }}}}"
            case "window":
                return prometheus_time(row.window * scale)
            case label:
                return f"{{{{ $labels.{label} }}}}"

    return {
        "summary": _PLACEHOLDER.sub(named, row.summary),
        "description": _PLACEHOLDER.sub(named, row.description),
        "runbook_url": f"{runbooks.rstrip('/')}/{row.runbook}.md",
    }
