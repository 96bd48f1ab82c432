"""The connection: one for all, made when it is needed, and made again when it was lost.

The client's own reconnecting is off: it would send later what was meant for now. Whoever waits for an answer on a
connection that is lost is told so at once.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error

from redrive.brokers.nats.address import Address
from redrive.brokers.nats.errors import TooLarge, error_of, unavailable
from redrive.core.errors import BrokerError, BrokerUnavailable

PATIENCE: Final = 5.0  # seconds for an answer
_NO_ONE: Final = "503"
_HEADER_ROOM: Final = 12  # `NATS/1.0` and the line ends around it

Heading = Mapping[str, str]


class Letter(NamedTuple):
    """What is to be published."""

    subject: str
    body: bytes
    heading: Heading | None = None

    @property
    def size(self) -> int:
        """The bytes that count for the server's limit."""
        if not self.heading:
            return len(self.body)
        lines = "".join(self.heading) + "".join(self.heading.values())
        return len(self.body) + len(lines.encode()) + 4 * len(self.heading) + _HEADER_ROOM


class Published(NamedTuple):
    """Where the server put a message; `again` if it knew it already."""

    stream: str
    seq: int
    again: bool = False


class Answers:
    """The answers to many questions, each at its place: one wait for all of them."""

    def __init__(self, count: int) -> None:
        self._heard: dict[int, Msg | BrokerError] = {}
        self._count = count
        self._complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(self, place: int, said: Msg | BrokerError) -> None:
        """Take an answer; the first counts."""
        self._heard.setdefault(place, said)
        if len(self._heard) == self._count and not self._complete.done():
            self._complete.set_result(None)

    async def all(self) -> list[Msg | BrokerError]:
        """All answers, as soon as the last is there."""
        if self._count:
            await self._complete
        return [self._heard[place] for place in range(self._count)]


class Link:
    """A connection for many tasks of one event loop. Raises `BrokerUnavailable` where there is none to be had."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._waiters: dict[str, Callable[[Msg | BrokerError], None]] = {}
        self._prefix = ""
        self._number = 0
        self._closed = False

    async def client(self) -> Client:
        """The client, connected."""
        if self._client is not None and self._client.is_connected:
            return self._client
        async with self._opening:
            if self._client is None or not self._client.is_connected:
                self._client = await self._connect()
            return self._client

    async def ask(self, letter: Letter, *, patience: float = PATIENCE) -> Msg:
        """Send something and wait for the answer."""
        (answer,) = await self.ask_all([letter], patience=patience)
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    async def ask_all(self, letters: Sequence[Letter], *, patience: float = PATIENCE) -> Sequence[Msg | BrokerError]:
        """Send many things at once, and wait for all answers; what cannot be sent has an error for an answer.

        Raises `BrokerUnavailable` when the connection is lost: then nobody knows which of them have come through.
        """
        client = await self.client()
        answers = Answers(len(letters))
        tokens = []
        try:
            for place, letter in enumerate(letters):
                if (size := letter.size) > client.max_payload:
                    answers.hear(place, TooLarge(f"nats: {size} bytes, and the server takes {client.max_payload}"))
                    continue
                tokens.append(self.listen(partial(answers.hear, place)))
                await self._send(client, letter, reply=f"{self._prefix}.{tokens[-1]}")
            async with asyncio.timeout(patience):
                heard = await answers.all()
        except TimeoutError as error:
            await self.drop()
            raise unavailable(error) from error
        finally:
            for token in tokens:
                self.unlisten(token)
        lost = next((said for said in heard if isinstance(said, BrokerUnavailable)), None)
        if lost is not None:
            raise lost
        return [_heard(said) for said in heard]

    async def stream(self, letter: Letter, *, patience: float = PATIENCE) -> list[Msg]:
        """Send something that many messages answer, until a status ends them."""
        client = await self.client()
        done: asyncio.Future[BrokerError | None] = asyncio.get_running_loop().create_future()
        found: list[Msg] = []

        def hear(said: Msg | BrokerError) -> None:
            if isinstance(said, BrokerError):
                if not done.done():
                    done.set_result(said)
            elif status_of(said):
                if not done.done():
                    done.set_result(None)
            else:
                found.append(said)

        token = self.listen(hear)
        try:
            await self._send(client, letter, reply=f"{self._prefix}.{token}")
            async with asyncio.timeout(patience):
                trouble = await done
        except TimeoutError as error:
            await self.drop()
            raise unavailable(error) from error
        finally:
            self.unlisten(token)
        if trouble is not None:
            raise trouble
        return found

    async def say(self, words: Sequence[tuple[str, bytes]]) -> None:
        """Send words to which nobody answers; returns when the server has them."""
        client = await self.client()
        try:
            for subject, word in words:
                await client.publish(subject, word)
            while client.is_connected and client.pending_data_size:  # noqa: ASYNC110 - the client tells nobody
                await asyncio.sleep(0)  # until it has written them: its question does not wait for that
            await client.flush(timeout=int(PATIENCE))
        except (Error, OSError, asyncio.InvalidStateError) as error:
            await self.drop()
            raise unavailable(error) from error

    async def send(self, letters: Sequence[Letter]) -> None:
        """Send what needs no answer of its own, before something that has one."""
        client = await self.client()
        for letter in letters:
            await self._send(client, letter, reply="")

    async def confirm(self, words: Sequence[tuple[str, bytes]]) -> None:
        """Send words to one consumer, and wait until it has taken the last."""
        client = await self.client()
        try:
            for subject, word in words[:-1]:
                await client.publish(subject, word)
        except (Error, OSError) as error:
            raise unavailable(error) from error
        await self.ask(Letter(*words[-1]))

    async def api(self, verb: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask JetStream. Raises `QueueNotFound`, `Refused` and other of our errors."""
        asked = json.dumps(body).encode() if body else b""
        told: dict[str, Any] = json.loads((await self.ask(Letter(f"$JS.API.{verb}", asked))).data)
        if "error" in told:
            raise error_of(told["error"], what=verb)
        return told

    async def publish(self, letters: Sequence[Letter]) -> Sequence[Published | Exception]:
        """Publish into streams, each with the server's word for it."""
        answers = await self.ask_all(letters)
        return [_published(answer, letter) for answer, letter in zip(answers, letters, strict=True)]

    async def publish_one(self, letter: Letter) -> Published:
        """Publish one. Raises what is wrong with it."""
        (answer,) = await self.publish([letter])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def listen(self, hear: Callable[[Msg | BrokerError], None]) -> str:
        """Let somebody hear what comes in under a token of their own, and that the connection is lost."""
        self._number += 1
        token = f"{self._number:x}"
        self._waiters[token] = hear
        return token

    def unlisten(self, token: str) -> None:
        """Nobody waits there any more."""
        self._waiters.pop(token, None)

    async def drop(self) -> None:
        """Give the connection up: the next call makes another."""
        client, self._client = self._client, None
        self._tell_all(BrokerUnavailable("nats: the connection was given up"))
        if client is not None:
            await _close(client)

    async def aclose(self) -> None:
        """Close. Idempotent."""
        self._closed = True
        await self.drop()

    async def _send(self, client: Client, letter: Letter, *, reply: str) -> None:
        try:
            await client.publish(letter.subject, letter.body, reply=reply, headers=letter.heading)  # type: ignore[arg-type]
        except (Error, OSError) as error:
            raise unavailable(error) from error

    async def _connect(self) -> Client:
        if self._closed:
            raise BrokerUnavailable("nats: this broker has been closed")
        options = dict(self._address.options)
        if self._address.servers[0].startswith("tls:"):
            options["tls"] = ssl.create_default_context()
        causes: list[Exception] = []

        async def hear(error: Exception) -> None:
            causes[:] = [error]

        client = Client()
        try:
            await client.connect(
                servers=list(self._address.servers),
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=2,
                ping_interval=5,
                max_outstanding_pings=2,
                closed_cb=self._on_closed,
                error_cb=hear,
                pending_size=0,
                **options,
            )
            self._prefix = client.new_inbox()
            await client.subscribe(f"{self._prefix}.*", cb=self._on_answer)
        except (Error, OSError, TimeoutError) as error:
            await _close(client)
            raise unavailable(causes[0] if causes else error) from error
        return client

    async def _on_answer(self, message: Msg) -> None:
        hear = self._waiters.get(message.subject.rpartition(".")[2])
        if hear is not None:
            hear(message)

    async def _on_closed(self) -> None:
        self._tell_all(BrokerUnavailable("nats: the connection was lost"))

    def _tell_all(self, trouble: BrokerError) -> None:
        for hear in list(self._waiters.values()):
            hear(trouble)


async def _close(client: Client) -> None:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.close(), 1)


def status_of(message: Msg) -> str:
    """What the server says in place of a message; empty for a message."""
    if message.data or not message.headers or "Nats-Sequence" in message.headers:
        return ""
    return message.headers.get("Status", "")


def _heard(said: Msg | BrokerError) -> Msg | BrokerError:
    if isinstance(said, BrokerError) or status_of(said) != _NO_ONE:
        return said
    return BrokerUnavailable("nats: nobody answers there: JetStream is off, or no stream takes this subject")


def _published(answer: Msg | BrokerError, letter: Letter) -> Published | Exception:
    if isinstance(answer, BrokerError):
        return answer
    told = json.loads(answer.data or b"{}")
    if "error" in told:
        return error_of(told["error"], what=f"publish on {letter.subject}")
    return Published(told["stream"], told["seq"], bool(told.get("duplicate")))
