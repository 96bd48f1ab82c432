"""A process that is killed at a chosen command to the server, once that is answered: before it can send another."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Coroutine
from datetime import timedelta
from multiprocessing.context import ForkServerContext
from typing import Any

from pymongo import monitoring

from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.redrive import Planned
from redrive.core.stored import Edit
from redrive.stores.mongo import MongoStore, journal
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import AT, a_redrive, an_act, an_outcome, letter

PATIENCE = 60
DEATHS = [letter("a"), letter("b"), letter("c", queue="mail", reason=Reason.INVALID)]
RELAPSES = [letter("a", generation=1, fingerprint="f2", error_type="KeyError"), letter("d", fingerprint="f3")]

Scene = Callable[[MongoStore], Coroutine[Any, Any, object]]


async def prepare(store: MongoStore) -> None:
    """Three letters, one of them edited and two of them planned in a redrive."""
    await store.collect(DEATHS)
    edit = Edit(body=b"mended", headers=(), by="ann", edited_at=AT)
    await store.edit("b", edit, version=1, act=an_act("letters.edit", operation_id="prepared"))
    items = [Planned("a", 1), Planned("b", 2)]
    await store.create(a_redrive("r1", total=2), items, act=an_act("letters.redrive", operation_id="planned"))


async def collect(store: MongoStore) -> None:
    """Letters that come, reopen and are resolved, brought by a person: more than one page of changes."""
    large = [letter(f"large-{number}", payload=bytes(100_000), fingerprint="f9") for number in range(3)]
    await store.collect([*RELAPSES, *large], [an_outcome("b", 1)], act=an_act("letters.import", operation_id="o"))


async def claim(store: MongoStore) -> None:
    """Letters that are claimed, and recorded as sent."""
    claimed = await store.claim("r1", step=0, limit=10)
    await store.sent("r1", {one.letter_id: f"m-{one.letter_id}" for one in claimed}, at=AT)


async def purge(store: MongoStore) -> None:
    """Letters that are removed."""
    act = an_act("letters.purge", operation_id="o")
    await store.purge(Query(), before=AT + timedelta(days=90), limit=2, act=act)


SCENES: dict[str, Scene] = {scene.__name__: scene for scene in (collect, claim, purge)}


class Killer(monitoring.CommandListener):
    """Kills this process at a command."""

    def __init__(self, at: int) -> None:
        self._left = at

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        pass

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


async def _nothing(*_: object) -> None:
    """What a careless writer commits."""


def play(url: str, scene: str, at: int, careless: bool) -> None:  # noqa: FBT001 - handed to a process
    """Play a scene until the process is killed at its `at`-th command."""
    if careless:
        journal.Journal.commit = _nothing  # type: ignore[method-assign,assignment]
    journal.LEASE_SECONDS = 0  # nobody waits for the dead
    journal.PAGE = 200_000
    monitoring.register(Killer(at))

    async def run() -> None:
        store = MongoStore(url, clock=ManualClock())
        await SCENES[scene](store)
        await store.aclose()

    asyncio.run(run())


def context() -> ForkServerContext:
    """Where such processes come from: a clean one that has loaded everything."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([__name__])
    return found


def survives(url: str, scene: str, *, at: int, careless: bool = False) -> bool:
    """Play a scene in a process of its own; whether it came to its end. A careless one writes nothing down."""
    process = context().Process(target=play, args=(url, scene, at, careless))
    process.start()
    process.join(PATIENCE)
    if process.exitcode not in (0, -signal.SIGKILL):
        process.kill()
        raise AssertionError(f"{scene}, killed at {at}: ended with {process.exitcode}")
    return process.exitcode == 0
