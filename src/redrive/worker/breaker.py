"""The breaker: an outage costs time, not a clean-up.

While signs of an outage are the rule the consumer pauses, hands back what it holds without spending an attempt, and
probes. When nearly every message fails in whatever way, the storm guard slows the consumer to one attempt per probe.
Queues below the thresholds are not protected: four messages that fail are four messages that fail.

Bad messages must not look like an outage, nor keep one alive. They fail again and again, and their retries may come
in heaps: so what a retry says is believed only if the first attempts say the same; a probe is rather a message that
has not failed yet; and one that fails without a sign of an outage spends its attempt, as it would at any other time.
"""

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError

FEW: Final = 10  # messages among which the first probe is chosen
MOST: Final = 500  # messages among which any probe is chosen


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When a consumer pauses by itself.

    It opens when, among the last `window` attempts, there are at least `outcomes` of them, a share of `share` or more
    are signs of an outage, and they come from at least `messages` different messages; among the first attempts of
    messages, if there are any, the share must be as high. The storm guard opens it when a share of `storm_share` or
    more of the last first attempts, at least `storm_outcomes` of them, failed in whatever way. It closes after
    `successes` probes that went well, with no sign of an outage from a message that had not failed before in between.
    Probes are `probe` apart at first, twice as long after each failure, up to `longest_probe`.
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
    """The state of one consumer's breaker. Not shared between threads.

    `again` says of a failure that its message had failed before, in the same generation.
    """

    def __init__(self, rules: BreakerRules) -> None:
        self._rules = rules
        self._outages = Window(rules.window)  # among all attempts
        self._first_outages = Window(rules.window)  # among first attempts, which no heap of retries can push out
        self._first_failures = Window(rules.window)  # among first attempts, in whatever way
        self._probing = False
        self._good_probes = 0
        self._probe_delay = rules.probe
        self._in_vain: Counter[str] = Counter()  # how often a message was a probe and failed
        self.why: str | None = None

    @property
    def is_open(self) -> bool:
        """True while the consumer must hold back."""
        return self.why is not None

    @property
    def probe_delay(self) -> timedelta:
        """How long to wait before the next probe; nothing after a probe that went well."""
        return self._probe_delay

    @property
    def reach(self) -> int:
        """How many messages to look at for a probe: always some that have not been one in vain."""
        return min(FEW + len(self._in_vain), MOST)

    def choose(self, deliveries: Sequence[Delivery]) -> Delivery:
        """The delivery that makes the best probe: seldom a probe in vain, and rather one that never failed."""
        return min(deliveries, key=lambda delivery: (self._in_vain[delivery.message.id], delivery.failures > 0))

    def probe(self) -> None:
        """From here on outcomes are those of a probe, no longer of what was running when the breaker opened."""
        self._probing = True

    def succeeded(self, count: int = 1) -> bool:
        """Note successes; return True if they close an open breaker."""
        if self.why is None:
            self._outages.seen += count
            self._first_outages.seen += count
            self._first_failures.seen += count
            return False
        if self._probing:
            self._good_probes += count
            self._probe_delay = timedelta(0)
        if self._good_probes < self._rules.successes:
            return False
        self._close()
        return True

    def failed(self, message_id: str, *, again: bool = False) -> bool:
        """Note a sign of an outage; return True if the message must be handed back without spending an attempt."""
        if not self.is_open:
            self._outages.add(message_id)
            if not again:
                self._first_outages.add(message_id)
                self._first_failures.add(message_id)
            self.why = self._outage() or (None if again else self._storm())
            return self.is_open
        if self._probing:
            self._fail_probe(message_id)
            if not again:
                self._good_probes = 0
        return True

    def erred(self, message_id: str, *, again: bool = False) -> None:
        """Note a failure that is no sign of an outage: a permanent one, or one that no rule knows.

        It takes its course all the same: one attempt per probe, or one letter, while the breaker is open.
        """
        if self.why is None:
            self._outages.seen += 1
            if not again:
                self._first_outages.seen += 1
                self._first_failures.add(message_id)
                self.why = self._storm()
        elif self._probing:
            self._fail_probe(message_id)

    def _outage(self) -> str | None:
        rules, outages = self._rules, self._outages
        if len(outages) < rules.outcomes or not outages.reach(rules.share):
            return None
        failed = outages.messages()
        if len(set(failed)) < rules.messages or not self._first_outages.reach(rules.share):
            return None
        return f"{len(failed)} of the last {len(outages)} attempts fail transiently, {len(set(failed))} messages"

    def _storm(self) -> str | None:
        rules, failures = self._rules, self._first_failures
        if not failures.reach(rules.storm_share) or len(failures) < rules.storm_outcomes:
            return None
        failed = failures.messages()
        if len(set(failed)) < rules.messages:
            return None
        return f"{len(failed)} of the last {len(failures)} messages fail at their first attempt"

    def _fail_probe(self, message_id: str) -> None:
        self._probe_delay = min(max(self._probe_delay * 2, self._rules.probe), self._rules.longest_probe)
        self._in_vain[message_id] += 1
        if len(self._in_vain) > MOST:
            del self._in_vain[next(iter(self._in_vain))]

    def _close(self) -> None:
        for window in (self._outages, self._first_outages, self._first_failures):
            window.clear()
        self._probing = False
        self._good_probes = 0
        self._probe_delay = self._rules.probe
        self.why = None


class Window:
    """Which of the latest attempts failed in some way. Only these are kept, each with its place among all `seen`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._failures: deque[tuple[int, str]] = deque(maxlen=size)  # the latest, also from before the window
        self.seen = 0

    def __len__(self) -> int:
        return min(self.seen, self._size)

    def add(self, message_id: str) -> None:
        """Note an attempt that failed so. For one that did not, there is one more `seen`."""
        self.seen += 1
        self._failures.append((self.seen, message_id))

    def reach(self, share: float) -> bool:
        """Whether at least this share failed so; true of nothing at all."""
        wanted = share * min(self.seen, self._size)
        if wanted > len(self._failures):
            return False
        needed = math.ceil(wanted)
        return not needed or self._failures[-needed][0] > self.seen - self._size

    def messages(self) -> list[str]:
        """The messages that failed so, as often as they did."""
        return [message_id for place, message_id in self._failures if place > self.seen - self._size]

    def clear(self) -> None:
        """Forget everything."""
        self._failures.clear()
        self.seen = 0
