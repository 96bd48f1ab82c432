"""Which servers this run has used, and which it could not have."""

from collections.abc import Mapping

USED: dict[str, str] = {}
ABSENT: dict[str, str] = {}


def used(name: str, version: str) -> None:
    USED[name] = version


def absent(name: str, why: str) -> None:
    ABSENT[name] = why


def told() -> dict[str, dict[str, str]]:
    """All of it, as a process tells it to the one that began the run."""
    return {"used": USED, "absent": ABSENT}


def hear(told: Mapping[str, Mapping[str, str]]) -> None:
    """What another process of the run has told."""
    USED.update(told["used"])
    ABSENT.update(told["absent"])
