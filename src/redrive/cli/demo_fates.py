"""The demo's queues: what happens on each, how many messages it gets, and what is in them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

GROUP = "demo"


@dataclass(frozen=True, slots=True)
class Fate:
    """A queue of the demo: what happens there, and its share of the messages."""

    queue: str
    story: str
    share: int

    @property
    def receipts(self) -> str:
        """The queue that gets a receipt in the very step that acks a message: what is done, counted apart."""
        return f"{self.queue}.receipts"


EMAILS = Fate("emails", "all goes well", 8)
PAYMENTS = Fate("payments", "the provider times out at times", 5)
REFUNDS = Fate("refunds", "every other one meets a bug", 3)
IMPORTS = Fate("imports", "one in three cannot be read", 2)
THUMBNAILS = Fate("thumbnails", "one in eighty kills its process", 2)

FATES = (EMAILS, PAYMENTS, REFUNDS, IMPORTS, THUMBNAILS)


def payload(fate: Fate, number: int) -> bytes:
    """The body of a queue's message `number`; now and then one that its handler cannot read."""
    broken = fate is IMPORTS and number % 3 == 1
    return json.dumps({"number": "many" if broken else number}).encode()


def in_turn() -> Iterator[Fate]:
    """The fates for ever, each as often as its share, well mixed."""
    places = [((turn + 0.5) / fate.share, fate.queue, fate) for fate in FATES for turn in range(fate.share)]
    return cycle(fate for _, _, fate in sorted(places, key=lambda place: place[:2]))
