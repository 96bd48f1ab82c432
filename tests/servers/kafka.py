"""A Kafka broker in KRaft mode, from the jars that its makers publish."""

import fcntl
import os
import shutil
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.servers import roll
from tests.servers.certificate import Certificate
from tests.servers.install import Needed, Unavailable, on_path, require
from tests.servers.ports import free_port
from tests.servers.server import Server

VERSION: Final = "4.1.1"
LOGGING: Final = "2.25.1"
PATIENCE: Final = 600  # seconds for a download

JAVA: Final = Needed("java", on_path("java"), package="openjdk-17-jre-headless", advice="openjdk-17-jre-headless")
MAVEN: Final = Needed("mvn", on_path("mvn"), package="maven", advice="maven")

NEEDED: Final = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.logging.log4j", "log4j-api", LOGGING),
    ("org.apache.logging.log4j", "log4j-core", LOGGING),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOGGING),
    ("org.apache.logging.log4j", "log4j-1.2-api", LOGGING),
)
LOG_SETTINGS: Final = """\
rootLogger.level=warn
rootLogger.appenderRef.c.ref=C
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d %p %c{1} %m%n
"""
HURRIED: Final = (
    "session.timeout.ms=6000&heartbeat.interval.ms=200&fetch.wait.max.ms=20"
    "&topic.metadata.refresh.fast.interval.ms=20&reconnect.backoff.ms=20&reconnect.backoff.max.ms=500"
)


class KafkaServer(Server):
    """One broker that is its own controller. It keeps everything in its folder. Raises `Unavailable`."""

    patience = 180.0  # a virtual machine on a machine with much to do
    heap = "512m"

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, *, controller: int | None = None
    ) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._controller = controller or free_port()
        self._java = require(JAVA)
        self._jars = jars()
        self._properties = folder / "server.properties"
        (folder / "log4j2.properties").write_text(LOG_SETTINGS)
        given = {**self.defaults(), **(settings or {})}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        self._formatted = False

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where a client finds it. Tests have less patience than production."""
        return f"kafka://{self.address}?{HURRIED}"

    def defaults(self) -> dict[str, str]:
        """Settings that a test may override: one node, and nothing is waited for without need."""
        places = f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": places,
            "advertised.listeners": places,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller}",
            "log.dirs": str(self.folder / "data"),
            "num.partitions": "1",
            "message.max.bytes": "1500000",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "500",
            "group.coordinator.append.linger.ms": "0",
            "log.message.timestamp.after.max.ms": "9223372036854775807",
            "log.index.size.max.bytes": "65536",
            "log.segment.delete.delay.ms": "1000",
        }

    def command(self) -> Sequence[str]:
        return self._run("kafka.Kafka", str(self._properties))

    def launch(self) -> None:
        self.format()
        super().launch()

    def wait_until_ready(self) -> None:
        super().wait_until_ready()
        roll.used("kafka", VERSION)

    def format(self) -> None:
        """Prepare its folder, unless that is done."""
        if not self._formatted:
            tool = ("kafka.tools.StorageTool", "format", *self.terms(), "-c", str(self._properties))
            subprocess.run(self._run(*tool), check=True, cwd=self.folder, capture_output=True, timeout=PATIENCE)
            self._formatted = True

    def terms(self) -> Sequence[str]:
        """Of which cluster it is to be."""
        return ("--standalone", "-t", cluster_id())

    def is_ready(self) -> bool:
        """Whether it answers: nobody else can have its port, which it does not get twice."""
        try:
            return bool(AdminClient({"bootstrap.servers": self.address, "log_level": 0}).list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _run(self, *words: str) -> Sequence[str]:
        return (
            str(self._java),
            "-Xms128m",
            f"-Xmx{self.heap}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-cp",
            f"{self._jars}/*",
            *words,
        )


class SecureKafkaServer(KafkaServer):
    """A broker with a second listener, for which one needs a password, TLS, and permission.

    Whoever comes by the first listener may do everything. Raises `Unavailable`.
    """

    USERS: Final = {"ann": "s3cret", "bob": "pa:ss@word"}

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.secure_port = free_port()
        self.certificate = Certificate.make(folder)
        (folder / "server.pem").write_text(
            self.certificate.key.read_text("ascii") + self.certificate.certificate.read_text("ascii"), "ascii"
        )
        super().__init__(folder)

    def defaults(self) -> dict[str, str]:
        given = super().defaults()
        secure = f",SECURE://127.0.0.1:{self.secure_port}"
        users = " ".join(f'user_{name}="{password}"' for name, password in self.USERS.items())
        login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        return {
            **given,
            "listeners": given["listeners"] + secure,
            "advertised.listeners": given["advertised.listeners"] + secure,
            "listener.security.protocol.map": f"{given['listener.security.protocol.map']},SECURE:SASL_SSL",
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": login,
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(self.folder / "server.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def url_of(self, user: str, password: str) -> str:
        """Where a user finds it."""
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        settings = self.url.partition("?")[2]
        trusted = quote(str(self.certificate.certificate), safe="")
        return f"kafka://{who}@127.0.0.1:{self.secure_port}?{settings}&ssl.ca.location={trusted}"


def jars() -> Path:
    """The folder with the broker's jars, fetched at most once on a machine. Raises `Unavailable`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redrive-servers"
    folder = cache / f"kafka-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(require(MAVEN), folder)
    return folder


def _fetch(maven: Path, folder: Path) -> None:
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    pom = unfinished / "pom.xml"
    pom.write_text(_pom())
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}")
    command = (str(maven), "--quiet", "--batch-mode", "--file", str(pom), *goal)
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise Unavailable("kafka", f"could not be fetched with maven within {PATIENCE} s") from None
    except subprocess.CalledProcessError as failed:
        words = (failed.stdout or failed.stderr).strip().splitlines() or ["it said nothing"]
        raise Unavailable("kafka", f"could not be fetched with maven: {words[0]}") from failed
    unfinished.rename(folder)


def _pom() -> str:
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in NEEDED
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>redrive.tests</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
    )


def cluster_id() -> str:
    """A new one."""
    # One that begins with a dash would be taken for an option.
    return urlsafe_b64encode(uuid4().bytes).decode().rstrip("=").replace("-", "A")
