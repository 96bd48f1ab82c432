"""The consumer of a way back: it refuses everything until it is fixed, and notes every run."""

import os

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from tests.crash.journal import Word
from tests.crash.plan import RETURNS
from tests.crash.scenario import FLIPPED, GROUP, Site

SITE = Site.here()
IS_FIXED = bool(os.environ.get(FLIPPED))

app = App(SITE.scenario.url, name=GROUP, version="2" if IS_FIXED else "1")


@app.consumer(RETURNS, retry=None, breaker=None, lease=SITE.scenario.lease)
async def take_in(payload: bytes, message: Message, delivery: Delivery) -> None:
    SITE.journal.note(Word.START, id=payload.decode(), generation=delivery.generation, note=message.id)
    if not IS_FIXED:
        raise GiveUp("not fixed yet", code="not_fixed")


if __name__ == "__main__":
    app.run(collect=False)
