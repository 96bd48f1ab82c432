"""A stack as text, for those who ask for it: places only, never the values of variables."""

from collections.abc import Callable
from types import TracebackType

from redrive.core.excerpt import excerpt

_LIMIT = 16 * 1024
_LINE = 1024
_CHAIN = 8
_OUTER, _INNER = 10, 40

_CAUSED = "\nThe above exception was the direct cause of the following exception:\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n"


def format_stack(exception: BaseException, *, headline: Callable[[BaseException], str]) -> str:
    """The frames of an exception and of its causes in at most 16 KiB, laid out as Python does.

    No source lines: reading them is I/O, and the file may have changed since. Cyclic and endless chains of causes
    are cut. `headline` says an exception in one line. When it is too long, the innermost part stays.
    """
    lines = [
        line
        for caught, link in (*_causes(exception), (exception, ""))
        for line in (*_frames(caught.__traceback__), excerpt(headline(caught), limit=_LINE), link)
    ][:-1]
    text = "\n".join(lines)
    if len(text.encode("utf-8", "surrogatepass")) <= _LIMIT:
        return text
    while len("\n".join(lines).encode("utf-8", "surrogatepass")) > _LIMIT - len("…\n".encode()):
        lines = lines[max(1, len(lines) // 8) :]
    return "\n".join(("…", *lines))


def _causes(exception: BaseException) -> list[tuple[BaseException, str]]:
    """The exceptions that led to this one, the first of all first, each with the words that link it to the next."""
    chain: list[tuple[BaseException, str]] = []
    seen = {id(exception)}
    current = exception
    while len(chain) < _CHAIN:
        cause, link = current.__cause__, _CAUSED
        if cause is None and not current.__suppress_context__:
            cause, link = current.__context__, _DURING
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        chain.append((cause, link))
        current = cause
    return chain[::-1]


def _frames(traceback: TracebackType | None) -> list[str]:
    lines = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        line = f'  File "{code.co_filename}", line {traceback.tb_lineno}, in {code.co_qualname}'
        lines.append(excerpt(line, limit=_LINE))
        traceback = traceback.tb_next
    if len(lines) > _OUTER + _INNER:
        lines[_OUTER:-_INNER] = [f"  … {len(lines) - _OUTER - _INNER} more frames …"]
    return ["Traceback (most recent call last):", *lines]
