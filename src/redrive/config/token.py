"""The token with which a service is asked: from a file or a variable, and from nowhere else.

Everybody on a machine can read the flags of a process, and `redrive.toml` is kept under version control.
"""

from collections.abc import Mapping
from pathlib import Path

from redrive.config.sources import TOKEN, the_environment
from redrive.core.access import is_secret
from redrive.core.errors import ConfigError

_LONGEST = 1000  # characters: whatever is longer is another file


def load_token(file: Path | None, environ: Mapping[str, str] | None = None) -> str | None:
    """The secret that this file holds, else REDRIVE_TOKEN; None without either.

    Raises `ConfigError` for what is no secret, and does not repeat it: it may be the secret of something else.
    """
    if file is None:
        where, text = TOKEN, the_environment(environ).get(TOKEN, "")
        if not text:
            return None
    else:
        where = f"--token-file: {file}"
        try:
            with file.open(encoding="utf-8") as opened:
                text = opened.read(_LONGEST)
        except OSError as error:
            raise ConfigError(f"{where} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError:
            text = ""
    secret = text.strip()
    if not is_secret(secret):
        raise ConfigError(f"{where}: expected a token as `redrive tokens issue` prints it: rdt_ and 43 characters")
    return secret
