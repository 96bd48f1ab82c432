"""What makes two failures the same: the type, where in the user's code, and the text without what varies."""

import functools
import hashlib
import json
import re
from types import FrameType, TracebackType
from typing import Any, Literal

_LENGTH = 16
_TEXT = 512
_MAIN = ("__main__", "__mp_main__")

_VARYING = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*"  # emails
    r"|(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`"  # what is quoted
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"  # UUIDs, also those without a digit
    r"|\b[0-9a-fA-F]{8,}\b"  # hashes
    r"|\b(?=\w*\d)\w+(?:[.:-](?=\w*\d)\w+)*"  # numbers, times, addresses, and ids that hold a digit
)


def fingerprint(error_type: str, *, frame: str, message: str) -> str:
    """16 hexadecimal characters: the same in every process, for every id, number or address in the message."""
    return _fingerprint(error_type, frame, message[:_TEXT])


@functools.lru_cache(maxsize=512)
def _fingerprint(error_type: str, frame: str, message: str) -> str:
    """Remembered, because what fails in heaps mostly says the same."""
    text = json.dumps((error_type, frame, mask(message)))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def mask(message: str) -> str:
    """The beginning of a message, everything that varies from case to case replaced by a star.

    >>> mask("order 4711 of ann@example.org: timeout after 3.2 s at 0x7f3a")
    'order * of *: timeout after * s at *'
    """
    return " ".join(_VARYING.sub("*", message[:_TEXT]).split())


def user_frame(traceback: TracebackType | None) -> str:
    """Where a failure happened, as `module:function` without a line, so that it survives an edit elsewhere.

    The innermost frame of the user's code. Without one (an application installed like a library): the outermost
    frame of an installed package; without that, the innermost of all.
    """
    innermost = of_user = of_package = None
    while traceback is not None:
        innermost = traceback.tb_frame
        owner = _owner(innermost.f_code.co_filename)
        if owner == "user":
            of_user = innermost
        elif owner == "package":
            of_package = of_package or innermost
        traceback = traceback.tb_next
    frame = of_user or of_package or innermost
    return "" if frame is None else _name(frame)


def module_name(names: dict[str, Any], *, file: str = "") -> str:
    """The name of a module by its globals, the same whether it was imported or is the program itself."""
    name = names.get("__name__")
    if name not in _MAIN:
        return name if isinstance(name, str) else ""
    spec = getattr(names.get("__spec__"), "name", None)
    if isinstance(spec, str):
        return spec
    path = str(names.get("__file__") or file).replace("\\", "/")
    return path.rpartition("/")[2].removesuffix(".py") or "__main__"


# Where these two modules lie is where the standard library and Redrive lie.
_STANDARD = hashlib.__file__.rpartition("hashlib")[0]
_REDRIVE = __file__.rpartition("core")[0]
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")


@functools.lru_cache(maxsize=4096)
def _owner(file: str) -> Literal["user", "package", "nobody"]:
    """Whose code a file holds; the standard library's and Redrive's is nobody's."""
    if file.startswith((_REDRIVE, "<frozen ")):
        return "nobody"
    if _INSTALLED.search(file):  # before the next: without a venv, packages lie inside the standard library
        return "package"
    return "nobody" if file.startswith(_STANDARD) else "user"


def _name(frame: FrameType) -> str:
    code = frame.f_code
    return f"{module_name(frame.f_globals, file=code.co_filename)}:{code.co_qualname}"
