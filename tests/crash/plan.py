"""A numbered message and its fate, planned before it is sent and written into its body."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

ORDERS = "crash.orders"  # JSON for an async handler
BLOBS = "crash.blobs"  # any bytes for a sync handler in threads
QUEUES = (ORDERS, BLOBS)
RETURNS = "crash.returns"  # of a way back, which is a run of its own

HEADERS: Mapping[str, bytes] = {"x-odd": b"\x00\xff\r\n;=", "x-empty": b""}
"""Sent with every message, and expected back with every letter."""

BIG = 256 * 1024
_PLAN = re.compile(rb'\{"id":"([^"]+)","fate":"([a-z]+)","succeeds_at":(\d+)')


class Fate(StrEnum):
    """What happens to a message when its handler runs."""

    OK = "ok"
    BINARY = "binary"  # ok, with a body that is no text, as are all of `BLOBS`
    BIG = "big"  # ok, with a large body of that kind
    SLOW = "slow"  # ok, but takes longer than the lease
    FLAKY = "flaky"  # fails `succeeds_at` - 1 times
    POISON = "poison"  # always fails
    PERMANENT = "permanent"  # says itself that no retry can help
    INVALID = "invalid"  # its body is not what the handler asks for
    KILLER = "killer"  # kills its process


DEADLY: Mapping[Fate, str] = {
    Fate.POISON: "attempts_exhausted",
    Fate.PERMANENT: "rejected",
    Fate.INVALID: "invalid",
    Fate.KILLER: "worker_crash",
}
"""The fates that must end as a dead letter, and its reason; all others are innocent."""

MIX: Mapping[Fate, float] = {
    Fate.FLAKY: 0.06,
    Fate.POISON: 0.025,
    Fate.PERMANENT: 0.02,
    Fate.INVALID: 0.02,
    Fate.BINARY: 0.05,
    Fate.BIG: 0.01,
    Fate.SLOW: 0.0015,
    Fate.KILLER: 0.001,
}
"""Shares of the fates; what is left is ok."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One message to be sent: its number `run:seq`, its fate, and the run at which a flaky one succeeds."""

    id: str
    fate: Fate
    succeeds_at: int = 1

    @property
    def queue(self) -> str:
        """Bodies that are no JSON, and every fifth of the others, go to the queue of blobs."""
        if self.fate in (Fate.BINARY, Fate.BIG):
            return BLOBS
        return BLOBS if self.fate is not Fate.INVALID and int(self.id.rpartition(":")[2]) % 5 == 0 else ORDERS

    @property
    def body(self) -> bytes:
        """The bytes to be sent: always the same for the same plan, so that they can be compared."""
        text = f'{{"id":"{self.id}","fate":"{self.fate}","succeeds_at":{self.succeeds_at}'.encode()
        if self.fate is Fate.INVALID:
            return text + b',"cut off'
        if self.queue is ORDERS:
            return text + b"}"
        return b"\xff\xfe\x00" + text + b"}\x80\xed\xa0\x80" + b"\x00" * (BIG if self.fate is Fate.BIG else 1)

    @classmethod
    def of(cls, body: bytes | None) -> "Plan | None":
        """The plan in a body, whatever surrounds it; None if there is none."""
        found = _PLAN.search(body or b"")
        if found is None or found[2].decode() not in {*Fate}:
            return None
        return cls(found[1].decode(), Fate(found[2].decode()), int(found[3]))


def deal(run: str, count: int, *, seed: int, mix: Mapping[Fate, float] = MIX) -> Sequence[Plan]:
    """`count` plans in random order, with at least one of each fate in the mix."""
    random = Random(seed)
    shares = {fate: max(1, round(count * share)) for fate, share in mix.items()}
    fates = [fate for fate, share in shares.items() for _ in range(share)]
    fates += [Fate.OK] * (count - len(fates))
    random.shuffle(fates)
    return [
        Plan(f"{run}:{seq}", fate, random.randint(2, 4) if fate is Fate.FLAKY else 1)
        for seq, fate in enumerate(fates, 1)
    ]
