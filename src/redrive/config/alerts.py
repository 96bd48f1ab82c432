"""Settings of alerting: who is told, how often, and by which rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from redrive.config.kinds import FLAG, LABELS, LASTING, PACE, Kind, or_off, urls, whole
from redrive.core.alert_rules import AlertRules, Pace

NEVER: Final = "never"
_RULES: Final = AlertRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Who is told of incidents and of queues in which a rule is broken, and which rules there are.

    Alertmanagers, each by its URL, and webhooks, whose URLs are secrets: they may lead to a private network only with
    `allow_private`, and hear of what goes on `repeat_every` so often, or once. Every alert has `labels` beside its own.
    The rules are those of `core.alert_rules`; None is one that is off.
    """

    alertmanager: tuple[str, ...] = ()
    webhook: tuple[str, ...] = ()
    allow_private: bool = False
    repeat_every: timedelta | None = timedelta(hours=4)
    labels: Mapping[str, str] = field(default_factory=dict)
    new_incident: bool = _RULES.new_incident
    relapse: bool = _RULES.relapse
    growth: Pace | None = _RULES.growth
    threshold: Pace | None = _RULES.threshold
    size: int | None = _RULES.size
    age: timedelta | None = _RULES.age

    @property
    def rules(self) -> AlertRules:
        """The rules as they are applied."""
        return AlertRules(**{name: getattr(self, name) for name in AlertRules.__slots__})


ALERT_KINDS: Final[dict[str, Kind]] = {
    "alerts.alertmanager": urls("http://127.0.0.1:9093"),
    "alerts.webhook": urls("https://hooks.slack.com/services/…", secret=True),
    "alerts.allow_private": FLAG,
    "alerts.repeat_every": or_off(LASTING, NEVER),
    "alerts.labels": LABELS,
    "alerts.new_incident": FLAG,
    "alerts.relapse": FLAG,
    "alerts.growth": or_off(PACE),
    "alerts.threshold": or_off(PACE),
    "alerts.size": or_off(whole(1, 1_000_000_000)),
    "alerts.age": or_off(LASTING),
}
