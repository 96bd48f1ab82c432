"""A certificate for servers on the loopback interface."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.install import Needed, on_path, require

OPENSSL: Final = Needed("openssl", on_path("openssl"), package="openssl", advice="openssl")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Signed by itself: whoever trusts `certificate` trusts the server."""

    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> "Certificate":
        """Write one for 127.0.0.1 and localhost. Raises `Unavailable`."""
        made = cls(folder / "server.crt", folder / "server.key")
        subprocess.run(
            [
                *(require(OPENSSL), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-out", made.certificate, "-keyout", made.key),
            ],
            check=True,
            capture_output=True,
        )
        return made
