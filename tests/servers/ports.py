"""Free ports that stay free while a server is down."""

import random
import socket

# Below the range from which systems take the near end of a connection: such a port could be gone before a restart.
PORTS = range(20_000, 32_000)

_handed_out: set[int] = set()


def free_port() -> int:
    """A port on which nobody listens, never the same twice in a process."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        if port not in _handed_out and _is_free(port):
            _handed_out.add(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
