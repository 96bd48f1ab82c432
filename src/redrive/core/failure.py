"""A failure: what an exception says, in a form that is safe to keep whatever the exception is."""

import functools
import sys
from typing import NamedTuple, Self

from redrive.core.evidence import is_mute
from redrive.core.excerpt import excerpt
from redrive.core.fingerprint import fingerprint, module_name, user_frame
from redrive.core.stack import format_stack

MESSAGE_LIMIT = 8 * 1024
_NAME_LIMIT = 256
_LEAVES = 3


class Failure(NamedTuple):
    """What is kept of an exception; it holds no reference to it. `frame` is where the user's code failed."""

    error_type: str
    error_message: str = ""
    error_code: str | None = None
    severity: str | None = None
    stack: str | None = None
    frame: str = ""

    @classmethod
    def of(cls, exception: BaseException, *, stack: bool = False) -> Self:
        """The failure that an exception stands for, as a letter tells it: bounded.

        An exception that cannot be read (its `__str__` or a property raises) is described instead of raising.
        `stack` is opt-in: it costs more, and names files.
        """
        severity, frame = _word(exception, "severity"), user_frame(exception.__traceback__)
        told = format_stack(exception, headline=_headline) if stack else None
        return tuple.__new__(cls, (*words_of(exception), severity, told, frame))  # its constructor costs twice as much

    @classmethod
    def brief(cls, exception: BaseException) -> Self:
        """The failure as far as an attempt tells of it: for one that is made again."""
        return cls(*words_of(exception))

    @property
    def fingerprint(self) -> str:
        """What makes two failures the same; worked out when asked for, since only a dead letter needs it."""
        return fingerprint(self.error_type, frame=self.frame, message=self.error_message)


def words_of(exception: BaseException) -> tuple[str, str, str | None]:
    """What an attempt keeps of its failure: the type, the text and the code, each bounded. Never raises."""
    return _type_name(exception), _message(exception), _code(exception)


def _message(exception: BaseException) -> str:
    try:
        text = excerpt(str(exception), limit=MESSAGE_LIMIT)
        if isinstance(exception, BaseExceptionGroup):
            text = excerpt(f"{text}: {'; '.join(map(_headline, _leaves(exception)))}", limit=MESSAGE_LIMIT)
    except Exception as trouble:  # noqa: BLE001 - an exception's `__str__` is anybody's code
        return f"<its text cannot be had: {_type_name(trouble)}>"
    return text


def _headline(exception: BaseException) -> str:
    return f"{_type_name(exception)}: {_message(exception)}"


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The first few exceptions inside a group: what a TaskGroup calls `unhandled errors` says nothing by itself."""
    found: list[BaseException] = []
    waiting: list[BaseException] = list(group.exceptions)
    while waiting and len(found) < _LEAVES:
        first = waiting.pop(0)
        if isinstance(first, BaseExceptionGroup):
            waiting[:0] = first.exceptions
        else:
            found.append(first)
    return found


def _code(exception: BaseException) -> str | None:
    return None if is_mute(exception) else _word(exception, "code") or _word(exception, "status_code")


def _word(exception: BaseException, name: str) -> str | None:
    try:
        value = getattr(exception, name, None)
        if value is None or isinstance(value, bool) or not isinstance(value, str | int):
            return None
        return excerpt(str(value), limit=_NAME_LIMIT) or None
    except Exception:  # noqa: BLE001 - a property is anybody's code, and no word is no harm
        return None


def _type_name(exception: BaseException) -> str:
    kind: type = type(exception)
    try:
        return _name_of(kind)
    except Exception:  # noqa: BLE001 - a metaclass is anybody's code
        return "unknown"


@functools.lru_cache(maxsize=1024)
def _name_of(kind: type) -> str:
    """`ValueError`, `shop.orders.OutOfStock`, `redrive.GiveUp`."""
    module = str(kind.__module__)
    if module == "builtins":
        return kind.__qualname__
    if module.startswith("redrive."):
        return f"redrive.{kind.__qualname__}"
    names = getattr(sys.modules.get(module), "__dict__", {"__name__": module})
    return excerpt(f"{module_name(names)}.{kind.__qualname__}", limit=_NAME_LIMIT)
