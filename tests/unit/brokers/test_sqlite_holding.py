"""Holds: one row per handing-over, fenced by where the message is."""

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive.brokers import process
from redrive.brokers.sqlite import SqliteBroker, subscription
from redrive.brokers.sqlite.claim import DUE, claim
from redrive.brokers.sqlite.suspects import SUSPECT
from redrive.core.attempt import load_trail
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.outcome import Settlement
from redrive.testing.conformance.bench import Bench

LONG = timedelta(minutes=1)

KILLED = """
import asyncio, os, sys
from datetime import timedelta
from redrive.brokers.sqlite import SqliteBroker
from redrive.core.ports import Options
from redrive.testing.clock import ManualClock

async def work(path, queue, alone):
    broker = SqliteBroker(path, clock=ManualClock(), reserve=0)
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="victim"))
    await worker.heartbeat()
    taken = await worker.fetch_suspect() if alone else await worker.fetch(2, wait=timedelta(0))
    os._exit(9 if taken else 0)

asyncio.run(work(sys.argv[1], sys.argv[2], sys.argv[3] == "alone"))
"""


def rows(file: Path, sql: str) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(sql).fetchall()


async def let_a_worker_be_killed(file: Path, queue: str, *, alone: bool = False) -> None:
    program = [sys.executable, "-c", KILLED, str(file), queue, "alone" if alone else "in company"]
    done = await asyncio.to_thread(subprocess.run, program, check=False)
    assert done.returncode == 9


async def test_a_fetch_of_many_is_noted_in_one_row(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    await bench.publish(*(b"%d" % number for number in range(300)))
    await bench.take(worker, 300)

    assert rows(file, "SELECT count(*) FROM hold") == [(1,)]
    assert rows(file, "SELECT count(*) FROM fresh") == [(300,)]


async def test_a_hold_in_which_nothing_is_left_is_forgotten(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    await bench.publish(b"ack", b"retry", b"dead", b"release")
    acked, failed, dead, released = await bench.take(worker, 4)
    await worker.extend([acked])
    await worker.settle([Settlement(acked), bench.retry(failed), bench.give_up(dead, worker)])
    before = rows(file, "SELECT count(*) FROM hold")
    await worker.release([released])

    assert before == [(1,)]
    assert rows(file, "SELECT count(*) FROM hold") == [(0,)]
    assert rows(file, "SELECT count(*) FROM lapsing") == [(0,)]


async def test_a_poll_that_finds_nothing_needs_no_write_lock(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    with closing(sqlite3.connect(file, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")

        assert not await worker.fetch(10, wait=NOW)
        assert await worker.fetch_suspect() is None


async def test_neither_retries_nor_new_messages_starve_the_other(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(*[b"new"] * 20)
    await worker.settle([bench.retry(delivery) for delivery in await bench.take(worker, 10)])
    bodies: list[int] = []
    for _ in range(8):
        delivery = await bench.take_one(worker)
        bodies.append(delivery.failures)
        await worker.settle([bench.retry(delivery)])

    assert 0 in bodies
    assert set(bodies) != {0}


async def test_a_fetch_cancelled_in_the_act_hands_back_what_it_took(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, taken, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def slowly(*arguments: Any, **named: Any) -> list[Delivery]:
        deliveries = claim(*arguments, **named)
        loop.call_soon_threadsafe(taken.set)
        go_on.wait()
        return deliveries

    monkeypatch.setattr(subscription, "claim", slowly)
    worker = await bench.worker()
    await bench.publish(b"1", b"2")
    fetch = asyncio.ensure_future(worker.fetch(10, wait=NOW))
    await taken.wait()
    fetch.cancel()
    await asyncio.wait([fetch])
    go_on.set()
    await bench.let_die(seen_by=worker)

    assert fetch.cancelled()
    assert await bench.counts() == {"waiting": 2}
    assert await worker.heartbeat() == 0


async def test_a_worker_sees_at_once_what_another_process_publishes(
    bench: Bench, reopen: Callable[[], SqliteBroker]
) -> None:
    there = await bench.worker(broker=reopen())
    waiting = asyncio.ensure_future(there.fetch(1, wait=LONG))
    await asyncio.sleep(0)
    await bench.publish(b"1")

    assert [delivery.message.body for delivery in await waiting] == [b"1"]


async def test_a_worker_sees_that_another_process_has_resumed_its_group(
    bench: Bench, reopen: Callable[[], SqliteBroker]
) -> None:
    there = await bench.worker(broker=reopen())
    await bench.publish(b"1")
    await bench.broker.pause(bench.queue, group="shop", why="the bank is down")
    waiting = asyncio.ensure_future(there.fetch(1, wait=LONG))
    await bench.broker.pause(bench.queue, group="shop", why=None)

    assert [delivery.message.body for delivery in await waiting] == [b"1"]


async def test_only_what_is_extended_stays_in_hand(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"kept", b"forgotten", b"also kept")
    kept, forgotten, also_kept = await bench.take(worker, 3)
    for _ in range(3):
        await bench.elapse(bench.lease * 0.6)
        lost = await worker.extend([kept, also_kept])
    suspects = await worker.heartbeat()

    assert list(lost) == []
    assert suspects == 1
    assert (await bench.suspect(worker)).message == forgotten.message
    assert [answer.status for answer in await worker.settle([Settlement(each) for each in (kept, forgotten)])] == [
        "done",
        "lost",
    ]


async def test_what_is_listed_again_in_time_does_not_lapse(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2")
    first, second = await bench.take(worker, 2)
    await worker.extend([first])
    await worker.extend([first, second])
    await bench.elapse(bench.lease * 0.9)
    await worker.extend([first, second])
    await bench.elapse(bench.lease * 0.9)

    assert await worker.heartbeat() == 0


async def test_what_a_killed_process_held_is_suspect_at_once(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2", b"3")
    await let_a_worker_be_killed(file, bench.queue)

    assert await worker.heartbeat() == 2
    assert await bench.counts() == {"waiting": 3}


async def test_a_killed_process_is_not_alive(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    await worker.heartbeat()
    await bench.publish(b"1")
    await let_a_worker_be_killed(file, bench.queue)

    (alive,) = await bench.broker.alive(bench.queue, group="shop")
    assert alive.pid == os.getpid()


async def test_a_fetch_that_finds_nothing_notices_a_killed_process(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2")
    await let_a_worker_be_killed(file, bench.queue)
    await worker.fetch(1, wait=NOW)

    assert await bench.counts() == {"waiting": 2}


async def test_a_process_killed_while_it_ran_alone_is_one_crash(bench: Bench, file: Path) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2")
    await let_a_worker_be_killed(file, bench.queue)
    await let_a_worker_be_killed(file, bench.queue, alone=True)
    found = [await bench.suspect(worker), await bench.suspect(worker)]
    crashed = next(each for each in found if each.crashes)
    (attempt,) = load_trail(crashed.trail)

    assert sorted(each.crashes for each in found) == [0, 1]
    assert (attempt.error_type, attempt.crash, attempt.node) == ("WorkerCrash", True, "victim")
    assert attempt.error_message == "the worker process died (owner victim)"


async def test_a_crash_by_silence_says_that_the_lease_ended(bench: Bench) -> None:
    worker, _ = await bench.one_delivery()
    for _ in range(2):
        await bench.let_die(seen_by=worker)
        suspect = await bench.suspect(worker)

    assert load_trail(suspect.trail)[0].error_message.startswith("the lease ended (owner worker-")


async def test_acks_in_any_order_and_grouping_remove_exactly_what_was_acked(bench: Bench) -> None:
    chance = random.Random(7)
    worker = await bench.worker()
    await bench.publish(*(b"%d" % number for number in range(400)))
    in_hand = [delivery for _ in range(4) for delivery in await bench.take(worker, 100)]
    chance.shuffle(in_hand)
    while in_hand:
        count = chance.randint(1, 60)
        settled, in_hand = in_hand[:count], in_hand[count:]
        items = [bench.retry(each, LONG) if chance.random() < 0.05 else Settlement(each) for each in settled]
        answers = await worker.settle(items)

        assert {answer.status for answer in answers} == {"done"}
        assert (await bench.depth()).in_flight == len(in_hand)


async def test_acks_between_retries_remove_exactly_what_was_acked(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(*(b"%d" % number for number in range(30)))
    *in_hand, kept = await bench.take(worker, 30)
    items = [Settlement(each) if index % 3 else bench.retry(each, LONG) for index, each in enumerate(in_hand)]
    answers = await worker.settle(items)

    assert {answer.status for answer in answers} == {"done"}
    assert await bench.counts() == {"in_flight": 1, "scheduled": 10}
    assert [answer.status for answer in await worker.settle([Settlement(kept)])] == ["done"]


async def test_an_ack_does_not_remove_an_unsettled_neighbour_in_place_of_a_repeated_one(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2", b"3", b"4")
    first, second, third, fourth = await bench.take(worker, 4)
    await worker.settle([Settlement(second)])
    answers = await worker.settle([Settlement(each) for each in (first, second, fourth)])

    assert [answer.status for answer in answers] == ["done", "repeated", "done"]
    assert [answer.status for answer in await worker.settle([Settlement(third)])] == ["done"]


@pytest.mark.parametrize("query", [DUE, SUSPECT])
async def test_finding_what_to_hand_out_sorts_and_scans_nothing(bench: Bench, file: Path, query: str) -> None:
    await bench.worker()
    with closing(sqlite3.connect(file)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", (1,) * query.count("?")).fetchall()

    assert [step[3] for step in plan if not step[3].startswith("SEARCH tracked USING INDEX tracked_due")] == []


def test_nobody_is_proven_dead_without_proof() -> None:
    here = process.identity()
    boot, namespace, pid, started = here.split(" ")

    assert not process.is_dead("")
    assert not process.is_dead(here)
    assert not process.is_dead(f"another-boot {namespace} {pid} 1")
    assert not process.is_dead(f"{boot} pid:[1] {pid} 1")
    assert started.isdigit()


def test_a_process_that_ended_or_whose_number_is_used_again_is_dead() -> None:
    boot, namespace, pid, started = process.identity().split(" ")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert process.is_dead(f"{boot} {namespace} {ended.pid} 1")
    assert process.is_dead(f"{boot} {namespace} {pid} {int(started) - 1}")


def test_a_process_that_ended_and_was_not_waited_for_is_dead() -> None:
    boot, namespace, *_ = process.identity().split(" ")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = Path(f"/proc/{child.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]
        alive = process.is_dead(f"{boot} {namespace} {child.pid} {started}")
        assert child.stdin is not None
        child.stdin.close()
        while not (dead := process.is_dead(f"{boot} {namespace} {child.pid} {started}")):
            pass

    assert (alive, dead) == (False, True)
