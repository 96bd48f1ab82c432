"""Which servers this run has used, and which it could not have."""

USED: dict[str, str] = {}
ABSENT: dict[str, str] = {}


def used(name: str, version: str) -> None:
    USED[name] = version


def absent(name: str, why: str) -> None:
    ABSENT[name] = why
