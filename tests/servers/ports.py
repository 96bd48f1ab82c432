"""Free ports that stay free while a server is down."""

import os
import random
import socket
from collections.abc import Mapping

# Below the range from which systems take the near end of a connection: such a port could be gone before a restart.
PORTS = range(20_000, 32_000)

_handed_out: set[int] = set()


def free_port() -> int:
    """A port on which nobody listens, never the same twice in a process, and never one of a parallel process's."""
    ours = share(os.environ)
    while True:
        port = random.SystemRandom().choice(ours)
        if port not in _handed_out and _is_free(port):
            _handed_out.add(port)
            return port


def share(environment: Mapping[str, str]) -> range:
    """The ports of one of the processes among which pytest-xdist deals the tests; all of them if there is only one."""
    number = int(environment.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return PORTS[number :: int(environment.get("PYTEST_XDIST_WORKER_COUNT", "1"))]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
