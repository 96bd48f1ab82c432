"""The demo's app: five handlers with five fates. What is done leaves a receipt in the step that acks it."""

import asyncio
import os
import signal
from dataclasses import dataclass

from redrive.app import App
from redrive.cli.demo_deployment import deployed_version
from redrive.cli.demo_fates import EMAILS, GROUP, IMPORTS, PAYMENTS, REFUNDS, THUMBNAILS
from redrive.config import load_settings
from redrive.core.classify import Classifier
from redrive.core.delivery import Delivery
from redrive.core.policy import RetryPolicy

LEASE = "2s"  # short, so that what a killed process held is seen to come back within the demo
RETRY = (0.5, 1, 2)

FLAKY = {2: 1, 9: 2}  # of fifteen payments, this one fails once and that one twice
HOPELESS = 11  # of thirty payments, this one fails every time
DEADLY = 3  # of eighty thumbnails, this one kills: a process takes a while to start


class ProviderTimeout(ConnectionError):
    """The payment provider did not answer."""


class MissingRate(Exception):
    """No exchange rate for a currency: the bug of version 1. No retry can help."""


@dataclass(frozen=True, slots=True)
class Work:
    """What every message here asks for."""

    number: int

    async def carry_out(self) -> "Receipt":
        """Take a moment."""
        await asyncio.sleep(0.01 + 0.03 * (self.number % 5))
        return Receipt(self.number)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a handler returns."""

    number: int


BROKER = load_settings().broker.url
VERSION = deployed_version(BROKER)

app = App(BROKER, name=GROUP, version=VERSION, grace=3)


@app.consumer(EMAILS.queue, output=EMAILS.receipts, lease=LEASE, retry=RETRY)
async def send(work: Work) -> Receipt:
    """Go well."""
    return await work.carry_out()


@app.consumer(PAYMENTS.queue, output=PAYMENTS.receipts, lease=LEASE, retry=RETRY)
async def charge(work: Work, delivery: Delivery) -> Receipt:
    """Fail at times, and seldom every time."""
    if delivery.attempt <= FLAKY.get(work.number % 15, 0) or work.number % 30 == HOPELESS:
        raise ProviderTimeout("no answer within 300 ms")
    return await work.carry_out()


@app.consumer(
    REFUNDS.queue,
    output=REFUNDS.receipts,
    lease=LEASE,
    retry=RetryPolicy(classify=Classifier(permanent=[MissingRate])),
)
async def refund(work: Work) -> Receipt:
    """Have a bug, until version 2."""
    if work.number % 2 and VERSION == "1":
        raise MissingRate(f"no exchange rate for refund {work.number}")
    return await work.carry_out()


@app.consumer(IMPORTS.queue, output=IMPORTS.receipts, lease=LEASE, retry=RETRY)
async def read(work: Work) -> Receipt:
    """Never be called with what cannot be read: that is a dead letter before."""
    return await work.carry_out()


@app.consumer(THUMBNAILS.queue, output=THUMBNAILS.receipts, lease=LEASE, retry=RETRY)
async def draw(work: Work) -> Receipt:
    """Kill the process that runs it, one in eighty, the way a broken image library does."""
    if work.number % 80 == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return await work.carry_out()
