"""The keys that letters are encrypted with: from a variable or a file, and from nowhere else.

Everybody on a machine can read the flags of a process, and `redrive.toml` is kept under version control.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from redrive.config.sources import ENCRYPTION_KEYS, the_environment
from redrive.core.errors import ConfigError

_KEY: Final = 32
_LONGEST: Final = 100_000  # characters: whatever is longer is another file
_LINE: Final = re.compile(r"\s*([A-Za-z0-9._-]{1,64})\s*=\s*([A-Za-z0-9+/_-]{43}=?)\s*")
_EXPECTED: Final = "expected id=key, the key being 32 bytes in base64 as `openssl rand -base64 32` prints them"


def load_keys(file: str | None, environ: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Keys by id, the current one first: REDRIVE_ENCRYPTION_KEYS, else those of a file; none without either.

    The variable has them between commas, the file on lines of their own, where # begins a comment. Raises `ConfigError`
    for what is no key, and does not repeat it.
    """
    text = the_environment(environ).get(ENCRYPTION_KEYS, "")
    if text:
        return _keys(ENCRYPTION_KEYS, enumerate(text.split(","), 1))
    if file is None:
        return {}
    where = f"encryption.keys_file: {file}"
    try:
        with Path(file).open(encoding="utf-8") as opened:
            lines = opened.read(_LONGEST).splitlines()
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {_EXPECTED}") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.partition("#")[0].strip()]
    if not numbered:
        raise ConfigError(f"{where}: {_EXPECTED}, got none")
    return _keys(where, numbered)


def _keys(where: str, lines: Iterable[tuple[int, str]]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    mistakes = []
    for number, line in lines:
        match = _LINE.fullmatch(line.partition("#")[0])
        key = None if match is None else _decoded(match[2])
        if match is None or key is None:
            mistakes.append(f"{where}: number {number}: {_EXPECTED}")
        elif match[1] in found:
            mistakes.append(f"{where}: number {number}: the id {match[1]} stands there twice")
        else:
            found[match[1]] = key
    if mistakes:
        raise ConfigError(mistakes)
    return found


def _decoded(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text.rstrip("=") + "=", altchars=b"-_" if {"-", "_"} & {*text} else None, validate=True)
    except binascii.Error:
        return None
    return key if len(key) == _KEY else None
