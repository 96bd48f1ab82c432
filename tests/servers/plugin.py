"""Fixtures that offer servers, and the last lines of a run: which were used, and which could not be had."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.clock import SystemClock
from redrive.core.ports import LEASE, Clock
from redrive.stores.mongo import MongoStore
from redrive.stores.sql import SqlStore
from tests.servers import mongo, roll
from tests.servers.frozen_time import FrozenClock
from tests.servers.hurried_clock import HurriedClock
from tests.servers.install import Unavailable
from tests.servers.jumping_time import JumpingClock
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.nats_time import NatsTime
from tests.servers.postgres import Databases, PostgresServer, empty
from tests.servers.rabbitmq import RabbitServer
from tests.servers.redis import RedisServer, ask, facts
from tests.servers.redis_cluster import RedisCluster
from tests.servers.server import RUNNING

REQUIRED = "REDRIVE_REQUIRE_SERVERS"
GIVEN_REDIS = "REDRIVE_TEST_REDIS"
GIVEN_POSTGRES = "REDRIVE_TEST_POSTGRES"
GIVEN_MONGODB = "REDRIVE_TEST_MONGODB"
GIVEN_KAFKA = "REDRIVE_TEST_KAFKA"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisInTime:
    """A Redis and the clock that goes with it. `elapse` lets time pass on both."""

    url: str
    clock: Clock
    elapse: Callable[[timedelta], Awaitable[None]]
    lease: timedelta

    @classmethod
    def frozen(cls, url: str, clock: FrozenClock) -> "RedisInTime":
        """Time jumps."""

        async def elapse(delta: timedelta) -> None:
            clock.advance(delta)

        return cls(url=url, clock=clock, elapse=elapse, lease=LEASE)

    @classmethod
    def real(cls, url: str) -> "RedisInTime":
        """Time must be waited for, so leases are short."""

        async def elapse(delta: timedelta) -> None:
            await asyncio.sleep(delta.total_seconds())

        return cls(url=url, clock=SystemClock(), elapse=elapse, lease=timedelta(seconds=3))


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaInTime:
    """A Kafka and the clock that goes with it. Only clients look at that clock, so it can be pushed on."""

    url: str
    clock: HurriedClock
    patience: timedelta = timedelta(seconds=10)

    async def elapse(self, delta: timedelta) -> None:
        """Let time pass."""
        self.clock.advance(delta)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis of our own for all; whoever strikes it spoils it for the others."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> str:
    """One Redis for all: the one named in the environment, or our own. Use names that nobody else uses."""
    if given := os.environ.get(GIVEN_REDIS):
        roll.used(f"redis-server of {GIVEN_REDIS}", facts(ask(given, "INFO", "server"))["redis_version"])
        return given
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url


@pytest.fixture
def fresh_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of one's own, to be struck; it keeps what it has acknowledged."""
    with RedisServer(tmp_path / "redis", {"appendonly": "yes", "appendfsync": "always"}) as server:
        yield server


@pytest.fixture(scope="session")
def frozen_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisServer, FrozenClock]]:
    """One Redis of our own whose time stands still, with its clock."""
    folder = tmp_path_factory.mktemp("frozen-redis")
    clock = FrozenClock(folder)
    with RedisServer(folder / "server", clock=clock) as server:
        yield server, clock


@pytest.fixture(scope="session")
def frozen_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisCluster, FrozenClock]]:
    """One cluster of our own whose time stands still, with its clock."""
    folder = tmp_path_factory.mktemp("frozen-cluster")
    clock = FrozenClock(folder)
    with RedisCluster(folder / "nodes", clock=clock) as cluster:
        yield cluster, clock


@pytest.fixture
def redis_in_time(request: pytest.FixtureRequest) -> RedisInTime:
    """An empty Redis whose time jumps; or the one named in the environment, which is neither emptied nor hurried."""
    if GIVEN_REDIS in os.environ:
        return RedisInTime.real(request.getfixturevalue("redis_url"))
    server, clock = request.getfixturevalue("frozen_redis")
    server.flush()
    return RedisInTime.frozen(server.url, clock)


@pytest.fixture
def cluster_in_time(frozen_cluster: tuple[RedisCluster, FrozenClock]) -> RedisInTime:
    """An empty cluster whose time jumps."""
    cluster, clock = frozen_cluster
    cluster.flush()
    return RedisInTime.frozen(cluster.url, clock)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL of our own for all; whoever strikes it spoils it for the others."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_databases(request: pytest.FixtureRequest) -> Databases:
    """Databases in one PostgreSQL for all: the one named in the environment, or our own."""
    if given := os.environ.get(GIVEN_POSTGRES):
        databases = Databases(given)
        roll.used(f"postgres of {GIVEN_POSTGRES}", databases.version)
        return databases
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return Databases(server.url)


@pytest.fixture
def empty_postgres(postgres_databases: Databases) -> Iterator[str]:
    """The URL of a database in which nothing is."""
    with postgres_databases.fresh() as url:
        yield url


@pytest.fixture(scope="session")
def shared_postgres(postgres_databases: Databases) -> Iterator[str]:
    """The URL of a letter store that the tests of a run have one after the other."""

    async def create() -> None:
        store = SqlStore(url, clock=SystemClock())
        await store.stats()
        await store.aclose()

    with postgres_databases.fresh() as url:
        with ThreadPoolExecutor(1) as thread:  # whoever asks first may be in an event loop
            thread.submit(asyncio.run, create()).result()
        yield url


@pytest.fixture
def postgres_url(shared_postgres: str) -> str:
    """The URL of a letter store in which nothing is."""
    empty(shared_postgres)
    return shared_postgres


@pytest.fixture
def fresh_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of one's own, to be struck."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One Kafka of our own for all; whoever strikes it spoils it for the others."""
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_url(request: pytest.FixtureRequest) -> str:
    """One Kafka for all: the one named in the environment, or our own. Use names that nobody else uses."""
    if given := os.environ.get(GIVEN_KAFKA):
        roll.used(f"kafka of {GIVEN_KAFKA}", "")
        return given
    server: KafkaServer = request.getfixturevalue("kafka_server")
    return server.url


@pytest.fixture
def kafka_in_time(kafka_url: str) -> KafkaInTime:
    """A Kafka with a clock that can be pushed on."""
    return KafkaInTime(url=kafka_url, clock=HurriedClock())


@pytest.fixture(scope="session")
def jumping_rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RabbitServer, JumpingClock]]:
    """One RabbitMQ of our own for all, whose time jumps, with its clock. Use names that nobody else uses."""
    folder = tmp_path_factory.mktemp("rabbitmq")
    clock = JumpingClock(folder)
    with RabbitServer(folder / "server", clock=clock) as server:
        yield server, clock


@pytest.fixture
def fresh_rabbitmq(tmp_path: Path) -> Iterator[RabbitServer]:
    """A RabbitMQ of one's own, to be struck; it keeps what it has acknowledged."""
    with RabbitServer(tmp_path / "rabbitmq") as server:
        yield server


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One NATS server of our own for all; whoever strikes it spoils it for the others."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def nats_url(nats_server: NatsServer) -> str:
    """One NATS server for all. Use names that nobody else uses."""
    return nats_server.url


@pytest.fixture
async def nats_in_time(nats_url: str) -> AsyncIterator[NatsTime]:
    """An empty NATS server with a clock that can be pushed on."""
    async with NatsTime(nats_url, HurriedClock()) as time:
        await time.forget_all()
        yield time


@pytest.fixture
def fresh_nats(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server of one's own, to be struck."""
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture(scope="session")
def mongodb_databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[mongo.MongoDatabases]:
    """Databases in one MongoDB for all: the one named in the environment, or our own server that speaks like it."""
    if given := os.environ.get(GIVEN_MONGODB):
        databases = mongo.MongoDatabases(given)
        roll.used(f"mongodb of {GIVEN_MONGODB}", databases.version)
        yield databases
        return
    mongo.ferretdb()
    beneath: Databases = request.getfixturevalue("postgres_databases")
    with (
        beneath.fresh() as postgres,
        mongo.MongoServer(tmp_path_factory.mktemp("mongodb"), postgres=postgres) as server,
    ):
        yield mongo.MongoDatabases(server.url)


@pytest.fixture
def empty_mongodb(mongodb_databases: mongo.MongoDatabases) -> Iterator[str]:
    """The URL of a database in which nothing is."""
    with mongodb_databases.fresh() as url:
        yield url


@pytest.fixture(scope="session")
def shared_mongodb(mongodb_databases: mongo.MongoDatabases) -> Iterator[str]:
    """The URL of a letter store that the tests of a run have one after the other."""

    async def create() -> None:
        store = MongoStore(url, clock=SystemClock())
        await store.stats()
        await store.aclose()

    with mongodb_databases.fresh() as url:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, create()).result()
        yield url


@pytest.fixture
def mongodb_url(shared_mongodb: str) -> str:
    """The URL of a letter store in which nothing is."""
    mongo.empty(shared_mongodb)
    return shared_mongodb


@pytest.fixture
def fresh_mongodb(tmp_path: Path, postgres_databases: Databases) -> Iterator[mongo.MongoServer]:
    """A server of one's own, to be struck; it keeps what it has acknowledged."""
    mongo.ferretdb()
    with (
        postgres_databases.fresh() as postgres,
        mongo.MongoServer(tmp_path / "mongodb", postgres=postgres) as server,
    ):
        yield server


# ------------------------------------------------------------------------------------------------ hooks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    for server in RUNNING:
        server.forget()
    with absence_named():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with absence_named():
        return (yield)


@contextmanager
def absence_named() -> Iterator[None]:
    """A server that cannot be had is a skip with a name, and a failure where servers are required."""
    try:
        yield
    except Unavailable as absence:
        roll.absent(absence.name, absence.why)
        if os.environ.get(REQUIRED):
            pytest.fail(f"{absence} ({REQUIRED} is set)", pytrace=False)
        pytest.skip(str(absence))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the servers had to say."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {server.folder}", words) for server in RUNNING if (words := server.last_words())]
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes tells the one that began the run."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["servers"] = roll.told()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """That one hears them all; a process that has died tells nothing."""
    if told := getattr(node, "workeroutput", {}).get("servers"):
        roll.hear(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if roll.USED or roll.ABSENT:
        terminalreporter.section("servers")
    for name, version in sorted(roll.USED.items()):
        terminalreporter.line(f"used    {name} {version}")
    for name, why in sorted(roll.ABSENT.items()):
        terminalreporter.line(f"absent  {name} {why}")
