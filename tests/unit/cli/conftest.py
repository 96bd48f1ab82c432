import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from redrive.cli import run
from redrive.core.letter import DeadLetter
from redrive.core.ports import Broker, Options
from redrive.core.ports.store import Store
from redrive.core.reason import Reason
from redrive.wiring import connect, open_store
from tests.properties.stores import make_empty_file
from tests.unit.cli.living import living_service

Answer = TypeVar("Answer")

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Shop:
    """A queue file in a folder of its own, used as a person would: by commands.

    A service beside it, if there is one, collects and carries out redrives only if it `works`.
    """

    works = False

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], *, empty_file: Path | None = None) -> None:
        self.file = folder / "redrive.db"
        self.url = f"sqlite:///{self.file}"
        self.store_file = folder / "letters.db"
        self._capsys = capsys
        self._empty_file = empty_file

    def run(self, *tokens: str) -> Said:
        self._capsys.readouterr()
        handlers, level = [*logging.root.handlers], logging.root.level
        status = run(tokens)
        logging.root.handlers[:] = handlers  # a command sets logs up for its own process
        logging.root.setLevel(level)
        captured = self._capsys.readouterr()
        return Said(status, captured.out, captured.err)

    def ask(self, question: Callable[[Broker], Awaitable[Answer]]) -> Answer:
        async def asked() -> Answer:
            broker = connect(self.url)
            try:
                return await question(broker)
            finally:
                await broker.aclose()

        return asyncio.run(asked())

    def ask_store(self, question: Callable[[Store], Awaitable[Answer]]) -> Answer:
        if self._empty_file and not self.store_file.exists():
            shutil.copy(self._empty_file, self.store_file)

        async def asked() -> Answer:
            store = open_store(f"sqlite:///{self.store_file}")
            try:
                return await question(store)
            finally:
                await store.aclose()

        return asyncio.run(asked())

    def collect(self, *letters: DeadLetter) -> None:
        self.ask_store(lambda store: store.collect(letters))

    def states(self) -> dict[str, int]:
        stats = self.ask_store(lambda store: store.stats())
        return {state: number for state, number in stats.by_state.items() if number}

    def subscribe(self, queue: str, *, group: str = "shop") -> None:
        async def subscribed(broker: Broker) -> None:
            subscription = await broker.subscribe(queue, group=group, options=Options(owner=f"{group}-1"))
            await subscription.aclose()

        self.ask(subscribed)

    def bury(self, *letters: DeadLetter) -> None:
        async def buried(broker: Broker) -> None:
            for letter in letters:
                await broker.dead_letters(letter.queue).send(letter)

        self.ask(buried)

    def entry_ids(self, queue: str = "orders") -> list[str]:
        return [entry.entry_id for entry in self.ask(lambda broker: broker.dead_letters(queue).peek(1000))]


class ServedShop(Shop):
    """The same, but its commands about letters and queues ask a service, which begins with the first of them."""

    served = ("letters", "incidents", "redrives", "audit", "tokens", "queues")

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], stack: ExitStack, *, empty_file: Path) -> None:
        super().__init__(folder, capsys, empty_file=empty_file)
        self._folder = folder
        self._stack = stack
        self._service: str | None = None

    def run(self, *tokens: str) -> Said:
        if tokens[0] not in self.served:
            return super().run(*tokens)
        if self._service is None:
            self._service = self._stack.enter_context(living_service(self._folder, works=self.works))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("REDRIVE_URL", self._service)
            return super().run(*tokens)


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, and no settings."""
    for name in [name for name in os.environ if name.startswith("REDRIVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A letter store with nothing in it: made once, copied often."""
    path = tmp_path_factory.mktemp("empty") / "letters.db"
    make_empty_file(path)
    return path


@pytest.fixture
def at_store(nobody: Path, capsys: pytest.CaptureFixture[str], empty_file: Path) -> Shop:
    """A shop whose commands open its files themselves."""
    return Shop(nobody, capsys, empty_file=empty_file)


@pytest.fixture
def shop(at_store: Shop) -> Shop:
    """The shop of commands that know no service."""
    return at_store


@pytest.fixture(params=["store", "service"])
def either(
    request: pytest.FixtureRequest, nobody: Path, capsys: pytest.CaptureFixture[str], empty_file: Path
) -> Iterator[Shop]:
    """A shop, once with its own files and once with a service: whatever a command does, it does there too."""
    with ExitStack() as stack:
        if request.param == "store":
            yield Shop(nobody, capsys, empty_file=empty_file)
        else:
            yield ServedShop(nobody, capsys, stack, empty_file=empty_file)


def a_letter(number: int = 1, **changes: Any) -> DeadLetter:
    facts: dict[str, Any] = {
        "letter_id": f"{number:032x}",
        "queue": "orders",
        "group": "shop",
        "payload": b'{"id": %d}' % number,
        "payload_sha256": "0" * 64,
        "reason": Reason.REJECTED,
        "error_type": "shop.OutOfStock",
        "error_message": "nothing left",
        "failed_at": AT,
        "retry_count": 1,
    }
    return DeadLetter(**{**facts, **changes})
