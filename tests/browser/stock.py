"""Something of everything in a store: incidents, letters of every state, a redrive that ended and a paused one."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

from redrive.clock import SystemClock
from redrive.core.attempt import Attempt
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome, RedriveState
from redrive.stores.sql import SqlStore
from redrive.triage import editor, incidents, letters, redrives
from redrive.triage.desk import Desk
from redrive.triage.selection import Wanted, select

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\x1b[31m\u202egnol\x00 & \"'"
)
LARGE = 10 * 1024 * 1024
STACK = """Traceback (most recent call last):
  File "shop/billing.py", line 88, in charge
    rate = rates[order.currency]
           ~~~~~^^^^^^^^^^^^^^^^
KeyError: 'CHF'"""


class Kind(NamedTuple):
    """Letters that failed the same way: of which queue and group, of what, and how many."""

    queue: str
    group: str
    error_type: str
    message: str
    mark: str
    reason: Reason
    number: int = 1


KINDS = (
    Kind("orders", "shop", "KeyError", "'CHF'", "a1", Reason.ATTEMPTS_EXHAUSTED, 118),
    Kind("payments", "shop", "shop.errors.CardDeclined", "the bank says no: no funds", "b2", Reason.REJECTED, 41),
    Kind("emails", "mailer", "smtplib.SMTPServerDisconnected", "Connection lost", "c3", Reason.ATTEMPTS_EXHAUSTED, 27),
    Kind("orders", "shop", "shop.errors.UnknownCoupon", "coupon SPRING24 has ended", "d4", Reason.REJECTED, 9),
    Kind("thumbnails", "media", "worker.Crash", "killed by SIGKILL, 3 crashes", "e5", Reason.WORKER_CRASH, 3),
)


@dataclass(frozen=True, slots=True)
class Stock:
    """What there is, by the names that tests and pictures use."""

    letter: str
    edited: str
    hostile: str
    large: str
    binary: str
    digest: str
    incident: str
    redrive: str
    paused: str


def stock(url: str, *, now: datetime | None = None) -> Stock:
    """Fill an empty store. In a thread: a browser that is being driven has the event loop of this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _stock(url, now=now or datetime.now(UTC))).result()


async def _stock(url: str, *, now: datetime) -> Stock:
    store = SqlStore(url, clock=SystemClock())
    desk = Desk(store, SystemClock(), "ann")
    try:
        hostile, large, binary, digest = (make(now) for make in (_hostile, _large, _binary, _digest))
        await store.collect([*_everyday(now), hostile, large, binary, digest])
        while await store.tend():
            pass
        page = await incidents.find(desk)
        main = max(page.rows, key=lambda row: row.open)
        quiet = min(page.rows, key=lambda row: row.open)
        await incidents.assign(desk, main.incident_id, "ann")
        await incidents.note(desk, main.incident_id, "billing deploys a fix at 09:30")
        await incidents.mute(desk, quiet.incident_id)
        ended = await _redrive(desk, "shop.errors.CardDeclined", steps=3, now=now)
        await desk.store.mark(ended, RedriveState.DONE, why="", act=desk.act("redrives.end"))
        paused = await _redrive(desk, "smtplib.SMTPServerDisconnected", steps=2, now=now)
        await redrives.pause(desk, paused, why="until the mail server has its new certificate")
        await letters.discard(desk, await select(desk, Wanted(query=Query(error_type="shop.errors.UnknownCoupon"))))
        first, edited = (await letters.find(desk, Query(fingerprint=main.fingerprint), limit=2)).rows
        payload = (await store.get(edited.letter_id)).letter.payload or b""
        for currency in (b'"EUR"', b'"EUR", "rate": 0.94'):
            await editor.edit(desk, edited.letter_id, body=payload.replace(b'"CHF"', currency))
        await letters.note(desk, first.letter_id, "the customer called")
        return Stock(
            letter=first.letter_id,
            edited=edited.letter_id,
            hostile=hostile.letter_id,
            large=large.letter_id,
            binary=binary.letter_id,
            digest=digest.letter_id,
            incident=main.incident_id,
            redrive=ended,
            paused=paused,
        )
    finally:
        await store.aclose()


async def _redrive(desk: Desk, error_type: str, *, steps: int, now: datetime) -> str:
    """Begin a redrive of all letters of a kind in three steps, send so many of these, and hear that they succeeded."""
    store = desk.store
    chosen = await select(desk, Wanted(query=Query(error_type=error_type)))
    plan = await redrives.plan(chosen, redrives.Terms(canary=(1, 5)), brokers={})
    redrive_id = (await redrives.create(desk, plan)).redrive_id
    for step in range(steps):
        while claimed := await store.claim(redrive_id, step=step, limit=100):
            await store.sent(redrive_id, {one.letter_id: f"m-{one.letter_id[:6]}" for one in claimed}, at=now)
            outcomes = [
                RedriveOutcome(
                    letter_id=one.letter_id,
                    generation=one.generation,
                    succeeded=True,
                    queue=one.queue,
                    group=one.group,
                    message_id=f"m-{one.letter_id[:6]}",
                    reported_at=now,
                    app_version="4f2c",
                )
                for one in claimed
            ]
            await store.collect([], outcomes)
    return redrive_id


def _everyday(now: datetime) -> Iterator[DeadLetter]:
    random = Random(7)
    for kind in KINDS:
        for place in range(kind.number):
            minutes = random.randrange(1, 60 * 23) if place else 2
            yield _letter(kind, number=place, at=now - timedelta(minutes=minutes))


def _odd(mark: str, now: datetime) -> DeadLetter:
    kind = Kind("imports", "shop", "InvalidPayload", "expected an order", mark, Reason.INVALID)
    return _letter(kind, number=1, at=now - timedelta(hours=5))


def _letter(kind: Kind, *, number: int, at: datetime) -> DeadLetter:
    queue, group, error_type, message, mark, reason, _ = kind
    body = {
        "order": 10_000 + number,
        "customer": {"id": f"u-{number % 17}", "email": f"customer{number}@shop.example"},
        "lines": [{"sku": f"A-{number % 5}", "quantity": 1 + number % 3, "price": 19.9}],
        "currency": "CHF",
    }
    payload = json.dumps(body).encode()
    tries = tuple(
        Attempt(
            number=one,
            started_at=at - timedelta(seconds=8 - 2 * one),
            ended_at=at - timedelta(seconds=7 - 2 * one),
            error_type=error_type,
            error_message=message,
            node="web-3",
        )
        for one in (1, 2, 3)
    )
    return DeadLetter(
        letter_id=f"{mark}{number:030x}",
        broker="sqlite",
        queue=queue,
        group=group,
        handler="shop.billing.charge",
        app_version="4f2b",
        node="web-3",
        pid=4121,
        original_message_id=str(10_000 + number),
        key=f"u-{number % 17}".encode(),
        payload=payload,
        payload_sha256=payload_hash(payload),
        content_type="application/json",
        headers=(
            ("content-type", b"application/json"),
            ("authorization", b"Bearer secret"),
            ("trace", b"00-4bf92f35-01"),
        ),
        reason=reason,
        error_type=error_type,
        error_message=message,
        stack=STACK if error_type == "KeyError" else None,
        fingerprint=mark * 8,
        attempts=tries,
        retry_count=3,
        first_failed_at=tries[0].ended_at,
        failed_at=at,
        dlq_published_at=at,
        user_id=f"u-{number % 17}",
        tenant_id="acme",
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
        context={"region": "eu-1", "password": "hunter2"},
    )


def _hostile(now: datetime) -> DeadLetter:
    base = _odd("f6", now)
    return replace(
        base,
        queue=f"orders{HOSTILE}",
        error_type=HOSTILE,
        error_message=HOSTILE,
        stack=HOSTILE,
        payload=json.dumps({HOSTILE: [HOSTILE, {"deep": HOSTILE}]}).encode(),
        headers=((HOSTILE.replace("\x00", ""), HOSTILE.encode()),),
        context={HOSTILE: HOSTILE},
        handler=HOSTILE,
        user_id=HOSTILE,
    )


def _large(now: datetime) -> DeadLetter:
    base = _odd("a7", now)
    payload = b'{"rows": [' + b",".join(b'{"n": %d}' % one for one in range(LARGE // 12)) + b"]}"
    headers = tuple((f"header-{one}", b"v" * 100) for one in range(2000))
    stack = "\n".join(f"  line {one}" for one in range(100_000))
    return replace(base, payload=payload, payload_sha256=payload_hash(payload), headers=headers, stack=stack)


def _binary(now: datetime) -> DeadLetter:
    base = _odd("b8", now)
    payload = bytes(range(256)) * 8
    return replace(base, payload=payload, payload_sha256=payload_hash(payload), content_type="")


def _digest(now: datetime) -> DeadLetter:
    base = _odd("c9", now)
    return replace(base, payload=None, attempts=(), headers=(), context={}, stack=None)
