"""A connection of one's own to the server that has a queue.

Commands are packed here and answers left as they come: redis-py's own path costs several times as much for each
message. Connecting, TLS, passwords, Sentinel and Cluster stay redis-py's. Nothing is ever sent twice: a call whose
answer did not come has an outcome that is not known, and only the caller knows whether it may be repeated.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from redrive.brokers.redis.errors import code_of, translate

Value = str | int | float | bytes
"""What a command is made of."""

PATIENCE: Final = 10.0
"""Seconds without an answer after which a connection is taken for dead. Longer than any read that waits."""

_ELSEWHERE: Final = frozenset({"READONLY", "MASTERDOWN", "NOREPLICAS", "MOVED", "ASK", "CLUSTERDOWN", "UNBLOCKED"})
"""Answers that say: this is not, or may no longer be, the server to talk to."""


def pack(command: Sequence[Value]) -> bytes:
    """A command as the server reads it. For a long one, this costs half of what hiredis asks for.

    The first words are mostly text. If the others are bytes, all of them, they are not looked at one by one.
    """
    rest: Sequence[Any] = command[_WORDS:]
    parts = _as_bytes(command[:_WORDS])
    parts += rest if set(map(type, rest)) == _BYTES else _as_bytes(rest)
    packed = [b""] * (2 * len(parts))
    packed[::2] = map(_head, map(len, parts))
    packed[1::2] = parts
    return b"*%d%b\r\n" % (len(parts), b"".join(packed))


def _as_bytes(parts: Sequence[Value]) -> list[bytes]:
    return [
        part if type(part) is bytes else digits[part] if type(part) is int else str(part).encode() for part in parts
    ]


class _Heads(dict[int, bytes]):
    """What stands before a part of so many bytes; remembered for those that are short."""

    def __missing__(self, size: int) -> bytes:
        head = b"\r\n$%d\r\n" % size
        if size < _SHORT:
            self[size] = head
        return head


class _Digits(dict[int, bytes]):
    """A number as text; remembered if it is small, as counts and places are."""

    def __missing__(self, number: int) -> bytes:
        text = b"%d" % number
        if 0 <= number < _SHORT:
            self[number] = text
        return text


_SHORT: Final = 4096
_WORDS: Final = 3
_head: Final = _Heads().__getitem__
_BYTES: Final = {bytes}
digits: Final = _Digits()
"""Numbers as text."""


class Source(Protocol):
    """Where connections come from."""

    async def take(self, key: str) -> AbstractConnection:
        """A connection to the server that has a key."""
        ...

    async def give_back(self, connection: AbstractConnection) -> None:
        """Take a connection back, for the next who asks; one that is closed tells that something has changed."""
        ...


class Wire:
    """Calls to the server that has a key. One at a time: others wait for their turn. Belongs to one event loop.

    The connection is taken at the first call and again after each fault, wherever the key is by then.
    """

    def __init__(self, source: Source, key: str) -> None:
        self._source = source
        self._key = key
        self._connection: AbstractConnection | None = None
        self._turn = asyncio.Lock()
        self._client_id: int | None = None

    async def call(self, *command: Value) -> Any:
        """The answer to one command. Raises our errors."""
        (answer,) = await self.calls([command])
        if isinstance(answer, Exception):
            raise translate(answer)
        return answer

    async def calls(self, commands: Sequence[Sequence[Value]]) -> list[Any]:
        """The answers to several commands, sent at once; one that was refused is an exception in its place.

        Raises `BrokerUnavailable` if an answer did not come: then any of them may have been carried out.
        """
        packed = b"".join(map(pack, commands))
        async with self._turn:
            try:
                async with asyncio.timeout(PATIENCE):
                    if self._connection is None:
                        self._connection = await self._source.take(self._key)
                    elif not self._connection.is_connected:  # the client would make another one without a word
                        raise ConnectionError("the connection was closed meanwhile")  # noqa: TRY301 - one way out
                    await self._connection.send_packed_command(packed, check_health=False)
                    answers = [await _answer(self._connection) for _ in commands]
            except BaseException as error:
                await self._let_go(broken=True)
                if isinstance(error, Exception):
                    raise translate(error) from error
                raise
            if any(isinstance(answer, Exception) and code_of(answer) in _ELSEWHERE for answer in answers):
                await self._let_go(broken=True)
        return answers

    async def client_id(self) -> int:
        """The number by which the server knows this connection, for as long as it lasts."""
        if self._client_id is None:
            self._client_id = int(await self.call("CLIENT", "ID"))
        return self._client_id

    async def leave(self) -> None:
        """Close the connection: the next call goes to whichever server has the key by then."""
        async with self._turn:
            await self._let_go(broken=True)

    async def aclose(self) -> None:
        """Give the connection back. Idempotent; a call after that takes one anew."""
        async with self._turn:
            await self._let_go(broken=False)

    async def _let_go(self, *, broken: bool) -> None:
        connection, self._connection, self._client_id = self._connection, None, None
        if connection is not None:
            if broken:
                await connection.disconnect(nowait=True)
            await self._source.give_back(connection)


async def _answer(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
