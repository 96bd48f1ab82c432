"""The HTTP server: uvicorn in our own event loop, without its signal handlers and logs; slow clients are cut."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from ipaddress import ip_address

import uvicorn

from redrive.core.errors import ConfigError
from redrive.door.entrance import Entrance
from redrive.door.limits import FullHouse
from redrive.door.slow_clients import WatchedProtocol, cut_slow_clients

MOST_CONNECTIONS = 512
KEEP_ALIVE = 5  # seconds
GRACE = 10  # seconds that answers under way have at the end
_LOOK = 1.0


class _Server(uvicorn.Server):
    """A server that leaves signals to the process it is part of."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Entrance, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Answer HTTP on these sockets for as long as the block lasts; they are closed at its end.

    What is being answered then has ten seconds to end; streams are told to.
    """

    def is_full() -> bool:
        state = server.server_state
        return max(len(state.connections), len(state.tasks)) > MOST_CONNECTIONS

    config = uvicorn.Config(
        FullHouse(app, is_full=is_full),
        http=WatchedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config)
    answering = asyncio.create_task(server.serve([*sockets]))
    watching = asyncio.create_task(_watch(server))
    try:
        yield
    finally:
        app.close()
        server.should_exit = True
        try:
            await answering
        finally:
            watching.cancel()


async def _watch(server: _Server) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_LOOK)
        cut_slow_clients(server.server_state.connections, now=loop.time())


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address of a host, on one port; 0 is any that is free. Raises `ConfigError`."""
    with contextlib.ExitStack() as stack:
        found: list[socket.socket] = []
        try:
            for family, kind, protocol, _, address in socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                sock = stack.enter_context(contextlib.closing(socket.socket(family, kind, protocol)))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.bind((address[0], port_of(found) if found else port, *address[2:]))
                sock.listen()
                sock.settimeout(0)
                found.append(sock)
        except socket.gaierror as error:
            raise ConfigError(f"--host: expected a name or an address of this machine, got {host!r}") from error
        except OSError as error:
            raise ConfigError(f"--port: cannot listen on {host} port {port}: {error.strerror or error}") from error
        stack.pop_all()
    return found


def port_of(sockets: Sequence[socket.socket]) -> int:
    """The port that they listen on."""
    port: int = sockets[0].getsockname()[1]
    return port


def is_loopback(sockets: Sequence[socket.socket]) -> bool:
    """Whether only this machine can reach them."""
    return all(ip_address(sock.getsockname()[0]).is_loopback for sock in sockets)
