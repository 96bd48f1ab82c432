"""A service for tests, asked without a network: memory broker, memory store, manual clock."""

from types import TracebackType
from typing import Any, Self

import httpx2

from redrive.api.app import create_app
from redrive.core.access import Role
from redrive.core.ports import Options
from redrive.door.guard import Guard
from redrive.service import Service
from redrive.stores.memory import MemoryStore
from redrive.triage import access
from redrive.triage.desk import Desk
from tests.unit.triage.bench import Bench


class Stage(Bench):
    """A bench with an API. Without `needs_token` whoever asks is the admin `local`."""

    def __init__(self, *, needs_token: bool = False, store: type[MemoryStore] = MemoryStore, **service: Any) -> None:
        super().__init__()
        self.store = store(clock=self.clock)
        self.desk = Desk(self.store, self.clock, self.desk.who)
        brokers = service.pop("brokers", self.brokers)
        self.service = Service(store=self.store, brokers=brokers, clock=self.clock, **service)
        self.app = create_app(self.service, guard=Guard(needs_token=needs_token))
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.http = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8800/api/v1")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def ask(self, path: str, **options: Any) -> httpx2.Response:
        return await self.http.get(path, **options)

    async def next_of(self, page: httpx2.Response, **options: Any) -> httpx2.Response:
        """The page that a page's Link leads to."""
        return await self.http.get(page.url.join(page.headers["link"].partition(">")[0][1:]), **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        return await self.http.post(path, json=body, **options)

    async def token(self, role: Role) -> dict[str, str]:
        """The headers of a caller with this role."""
        issued = await access.issue(self.desk, f"a {role}", role=role)
        return {"Authorization": f"Bearer {issued.secret}"}

    async def consumer(self, queue: str = "orders", *, group: str = "shop", version: str = "") -> None:
        """A consumer that is alive."""
        options = Options(owner=f"{group}-{version}", version=version)
        await (await self.broker.subscribe(queue, group=group, options=options)).heartbeat()

    async def verbs(self) -> list[str]:
        """What the audit has of operations, oldest first."""
        records = (await self.store.records(limit=10_000)).rows
        return [one.verb for one in reversed(records) if not one.letter_id]
