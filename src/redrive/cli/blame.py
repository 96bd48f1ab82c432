"""Whose mistake it is: what the system says about a port or a file, told with the flag that named it."""

from collections.abc import Iterator
from contextlib import contextmanager

from redrive.core.errors import ConfigError


@contextmanager
def blamed_on(flag: str) -> Iterator[None]:
    """Turn what the system says about a port or a file into a mistake with its flag: a `ConfigError`."""
    try:
        yield
    except OverflowError as error:
        raise ConfigError(f"{flag}: expected a port from 0 to 65535") from error
    except OSError as error:
        raise ConfigError(f"{flag}: {error.strerror or error}") from error
