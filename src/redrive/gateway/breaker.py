"""The breaker: while faults are the rule, requests wait, and one at a time tries whether the provider is back."""

from collections import deque
from datetime import datetime, timedelta
from typing import Final

from redrive.core.errors import GatewayError

OUTCOMES: Final = 20
REQUESTS: Final = 5
SHARE: Final = 0.5
KEPT: Final = 100
WINDOW: Final = timedelta(seconds=30)
PROBE: Final = timedelta(seconds=1)
LONGEST_PROBE: Final = timedelta(seconds=2)
LONGEST_REFUSAL: Final = timedelta(seconds=60)


class Breaker:
    """The state of one scope's breaker.

    It opens when at least 20 of the last 100 calls of the last 30 seconds, and at least half of them, met faults that
    came from 5 requests or more; what waits then waits, without spending attempts. Or at once, when the provider
    refuses the key or the account: then `refusal` is the error that others get without being sent. In both cases one
    call at a time is let through as a probe, and any word from the provider that is neither closes the breaker.
    """

    def __init__(self) -> None:
        self._latest: deque[tuple[datetime, str]] = deque(maxlen=KEPT)  # an empty name is a call that went well
        self._delay = PROBE
        self._probe_at: datetime | None = None
        self._probing = False
        self.refusal: GatewayError | None = None
        self.why: str | None = None

    @property
    def is_open(self) -> bool:
        """True while calls are held back."""
        return self.why is not None

    def closed_until(self, now: datetime) -> datetime | None:
        """None if a call may start, else when to ask again: the far future if a probe is out."""
        if self.why is None:
            return None
        if self._probing or self._probe_at is None:
            return datetime.max.replace(tzinfo=now.tzinfo)
        return self._probe_at if self._probe_at > now else None

    def started(self) -> bool:
        """A call starts; True if it is a probe."""
        self._probing = self.is_open
        return self._probing

    def let_go(self, *, probe: bool, now: datetime) -> None:
        """A call has ended without a word about the provider."""
        if probe and self.is_open:
            self._probing = False
            self._probe_at = now

    def answered(self, *, probe: bool, now: datetime) -> bool:
        """The provider works. True if that closes the breaker; an answer to a call from before does not."""
        if not self.is_open:
            self._latest.append((now, ""))
            return False
        if not probe:
            return False
        self._latest.clear()
        self._delay, self._probing, self._probe_at = PROBE, False, None
        self.why = self.refusal = None
        return True

    def faulted(self, request_id: str, *, probe: bool, now: datetime) -> bool:
        """The provider did not work for this request. True if that opens the breaker."""
        if self.is_open:
            if probe:
                self._outage()
                self._put_off(now, LONGEST_PROBE)
            return False
        self._latest.append((now, request_id))
        while self._latest[0][0] < now - WINDOW:
            self._latest.popleft()
        faults = [name for _, name in self._latest if name]
        if len(faults) < OUTCOMES or len(faults) < SHARE * len(self._latest) or len({*faults}) < REQUESTS:
            return False
        self.why = f"{len(faults)} of the last {len(self._latest)} calls met faults, {len({*faults})} requests"
        self._probe_at = now + PROBE
        return True

    def refused(self, error: GatewayError, *, probe: bool, now: datetime) -> bool:
        """The provider refuses the key or the account, whatever is asked. True if that opens the breaker."""
        opened = not self.is_open
        self.refusal = error
        self.why = f"the provider refuses: {type(error).__name__}"
        if opened:
            self._probe_at = now + PROBE
        elif probe:
            self._put_off(now, LONGEST_REFUSAL)
        return opened

    def _outage(self) -> None:
        """A probe has met a fault: if it was a refusal that opened the breaker, nobody knows whether it still holds."""
        if self.refusal is not None:
            self.refusal, self._delay = None, PROBE
            self.why = "the provider has refused, and does not work now"

    def _put_off(self, now: datetime, longest: timedelta) -> None:
        self._probing = False
        self._probe_at = now + self._delay
        self._delay = min(self._delay * 2, longest)
