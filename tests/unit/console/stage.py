"""A console for tests, visited without a network: memory broker, memory store, manual clock."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import httpx2

from redrive.console import asgi, session
from redrive.core.access import Role
from redrive.core.ports import Options
from redrive.core.stored import StoredLetter
from redrive.door.guard import Guard
from redrive.service import Service
from redrive.stores.memory import MemoryStore
from redrive.triage import access
from redrive.triage.desk import Desk
from tests.unit.console.seen import Seen, read
from tests.unit.triage.bench import Bench

ADDRESS = "http://127.0.0.1:8800"
FROM_OWN_PAGE = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}


class ConsoleStage(Bench):
    """A bench with a console, and a browser that keeps its cookies.

    Without `needs_token` whoever visits is the admin `local`, until `as_` lets them sign in.
    """

    def __init__(self, *, needs_token: bool = False, store: type[MemoryStore] = MemoryStore, **service: Any) -> None:
        super().__init__()
        self.store = store(clock=self.clock)
        self.desk = Desk(self.store, self.clock, self.desk.who)
        brokers = service.pop("brokers", self.brokers)
        self.service = Service(store=self.store, brokers=brokers, clock=self.clock, **service)
        self.app = asgi(self.service, guard=Guard(needs_token=needs_token))
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.http = httpx2.AsyncClient(transport=transport, base_url=ADDRESS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def get(self, path: str = "/", **options: Any) -> httpx2.Response:  # type: ignore[override] # a page, not a letter
        return await self.http.get(path, **options)

    async def see(self, path: str = "/") -> Seen:
        """A page that is there, as a person sees it."""
        answer = await self.get(path)
        assert answer.status_code == HTTPStatus.OK, (answer.status_code, answer.headers, answer.text[:2000])
        return read(answer.text)

    async def live(self, path: str = "/", *, block: str = "live") -> Seen:
        """The part of a page that its script fetches again and again."""
        answer = await self.get(path, headers={"X-Fragment": block})
        assert answer.status_code == HTTPStatus.OK, answer.text[:2000]
        return read(answer.text)

    async def post(
        self, path: str, form: Mapping[str, str | Sequence[str]] | None = None, **options: Any
    ) -> httpx2.Response:
        """Send a form as a page of the console does."""
        headers = FROM_OWN_PAGE | options.pop("headers", {})
        return await self.http.post(path, data=dict(form or {}), headers=headers, **options)

    async def follow(self, answer: httpx2.Response) -> Seen:
        """The page that an act leads to, which says what was done."""
        assert answer.status_code == HTTPStatus.SEE_OTHER, (answer.status_code, answer.text[:2000])
        return await self.see(answer.headers["location"])

    async def as_(self, role: Role | str) -> Self:
        """Sign in with a new token of this role: from now on it is the caller `a viewer`, `an operator`, …"""
        issued = await access.issue(self.desk, f"a {role}", role=Role(role))
        self.http.cookies.clear()
        self.http.cookies.set(session.NAME, issued.secret)
        return self

    async def stored(self, letter_id: str = "letter-0") -> StoredLetter:
        return await self.store.get(letter_id)

    async def consumer(self, queue: str = "orders", *, group: str = "shop", version: str = "") -> None:
        """A consumer that is alive."""
        options = Options(owner=f"{group}-{version}", version=version)
        await (await self.broker.subscribe(queue, group=group, options=options)).heartbeat()

    async def verbs(self) -> list[str]:
        """What the audit has of operations, oldest first."""
        records = (await self.store.records(limit=10_000)).rows
        return [one.verb for one in reversed(records) if not one.letter_id]
