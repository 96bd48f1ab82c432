"""A subscription that passes every call on, to be changed in one place."""

from typing import Any

from redrive.core.ports import Subscription


class Passing:
    """Looks like the subscription it was given; what a subclass defines comes first."""

    def __init__(self, inner: Subscription) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
