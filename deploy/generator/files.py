"""Which files are generated, and what stands in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.generator.alert_files import RUNBOOKS, alertmanager_settings, grafana_alerts, prometheus_alerts
from deploy.generator.compat import compat_rules
from deploy.generator.dashboards import redrive_dashboard

DEPLOY: Final = Path(__file__).parents[1]

_HEAD = "# Written by `python -m deploy.generator`; what is changed here by hand is lost when it runs again.\n\n"


def generated(*, runbooks: str = RUNBOOKS) -> Mapping[str, str]:
    """The text of each file, by its path in the folder deploy."""
    return {
        "prometheus/compat.rules.yaml": in_yaml(compat_rules()),
        "prometheus/alerts.rules.yaml": in_yaml(prometheus_alerts(runbooks=runbooks)),
        "alertmanager/alertmanager.yml": in_yaml(alertmanager_settings()),
        "grafana/dashboards/redrive.json": redrive_dashboard(),
        "grafana/provisioning/alerting/redrive.yaml": in_yaml(grafana_alerts(runbooks=runbooks)),
    }


def in_yaml(value: Mapping[str, Any]) -> str:
    """A value as YAML in its own order, with a word about where it comes from."""
    return _HEAD + yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000)


class _Plain(yaml.SafeDumper):
    """Writes what stands twice twice: people read it."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - of none
        return True
