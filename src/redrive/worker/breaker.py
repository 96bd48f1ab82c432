"""The breaker: an outage costs time, not a clean-up.

While transient failures are the rule the consumer pauses, hands back what it holds without spending an attempt,
and probes. A storm of permanent failures is slowed to one dead letter per probe in the same way. Queues below the
thresholds are not protected: four messages that fail are four messages that fail.
"""

from collections import deque
from dataclasses import dataclass
from datetime import timedelta

from redrive.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When a consumer pauses by itself.

    It opens when, among the last `window` outcomes, there are at least `outcomes` of them, a share of `share` or
    more are transient failures, and they come from at least `messages` different messages. For permanent failures
    the bar is higher: `storm_outcomes` and `storm_share`. It closes after `successes` probes in a row. Probes are
    `probe` apart at first, twice as long after each failure, up to `longest_probe`.
    """

    outcomes: int = 20
    share: float = 0.5
    messages: int = 5
    successes: int = 3
    window: int = 100
    storm_outcomes: int = 50
    storm_share: float = 0.9
    probe: timedelta = timedelta(seconds=1)
    longest_probe: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        mistakes = [
            f"breaker.{name}: expected at least 1, got {getattr(self, name)!r}"
            for name in ("outcomes", "messages", "successes", "window", "storm_outcomes")
            if getattr(self, name) < 1
        ]
        mistakes += [
            f"breaker.{name}: expected a share above 0 and up to 1, got {getattr(self, name)!r}"
            for name in ("share", "storm_share")
            if not 0 < getattr(self, name) <= 1
        ]
        if max(self.outcomes, self.storm_outcomes) > self.window:
            mistakes.append("breaker.window: expected at least as many as outcomes and storm_outcomes")
        if not timedelta(0) < self.probe <= self.longest_probe:
            mistakes.append("breaker.probe: expected more than zero and at most longest_probe")
        if mistakes:
            raise ConfigError(mistakes)


class Breaker:
    """The state of one consumer's breaker. Not shared between threads."""

    def __init__(self, rules: BreakerRules) -> None:
        self._rules = rules
        self._window: deque[tuple[str, str]] = deque(maxlen=rules.window)  # (kind, message id)
        self._bad = 0
        self._good_probes = 0
        self._failed_probes = 0
        self._probing = False
        self.why: str | None = None

    @property
    def is_open(self) -> bool:
        """True while the consumer must hold back."""
        return self.why is not None

    @property
    def probe_delay(self) -> timedelta:
        """How long to wait before the next probe; nothing after a probe that went well."""
        if self._good_probes:
            return timedelta(0)
        doubled: timedelta = self._rules.probe * 2 ** min(self._failed_probes, 16)
        return min(doubled, self._rules.longest_probe)

    def probe(self) -> None:
        """From here on outcomes are those of a probe, no longer of what was running when the breaker opened."""
        self._probing = True

    def succeeded(self, count: int = 1) -> bool:
        """Note successes; return True if they close an open breaker."""
        if self.is_open:
            self._good_probes += count if self._probing else 0
            if self._good_probes < self._rules.successes:
                return False
            self._reset()
            return True
        if self._bad:
            for _ in range(min(count, self._rules.window)):
                self._push("ok", "")
        else:
            room = self._rules.window - len(self._window)
            self._window.extend([("ok", "")] * min(count, room))
        return False

    def failed(self, message_id: str) -> bool:
        """Note a transient failure; return True if the message must be handed back without spending an attempt."""
        if self.is_open:
            self._fail_probe()
            return True
        self._push("transient", message_id)
        return self._trips("transient", self._rules.outcomes, self._rules.share, "fail transiently")

    def rejected(self, message_id: str) -> None:
        """Note a permanent failure. Its letter is written all the same: one per probe while the storm lasts."""
        if self.is_open:
            self._fail_probe()
            return
        self._push("permanent", message_id)
        self._trips("permanent", self._rules.storm_outcomes, self._rules.storm_share, "fail for good")

    def _push(self, kind: str, message_id: str) -> None:
        if len(self._window) == self._window.maxlen and self._window[0][0] != "ok":
            self._bad -= 1
        self._window.append((kind, message_id))
        self._bad += kind != "ok"

    def _trips(self, kind: str, outcomes: int, share: float, what: str) -> bool:
        if len(self._window) < outcomes:
            return False
        hits = [message_id for found, message_id in self._window if found == kind]
        if len(hits) < share * len(self._window) or len(set(hits)) < self._rules.messages:
            return False
        self.why = f"{len(hits)} of the last {len(self._window)} attempts {what}, {len(set(hits))} messages"
        return True

    def _fail_probe(self) -> None:
        if self._probing:
            self._good_probes = 0
            self._failed_probes += 1

    def _reset(self) -> None:
        self._window.clear()
        self._probing = False
        self._bad = self._good_probes = self._failed_probes = 0
        self.why = None
