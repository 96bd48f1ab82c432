"""Logs in one form for the whole process: JSON for machines, readable lines for people.

Secrets are masked wherever they come from: the lines of every library, and of the user's own program, pass the privacy
filter. No control character reaches a terminal.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from redrive.core.context import trace_of
from redrive.core.delivery import Delivery
from redrive.core.printable import printable
from redrive.core.privacy import MASK, PrivacyFilter
from redrive.core.url import mask_url
from redrive.observe.event_log import Said

LogForm = Literal["auto", "json", "text"]


def set_up_logs(
    *,
    level: str = "info",
    form: LogForm = "auto",
    color: bool = True,
    stream: TextIO | None = None,
    delivery: Callable[[], Delivery | None] | None = None,
) -> None:
    """Send every log line of the process, the user's own too, to `stream` (stderr) in one form.

    `auto` is readable lines on a terminal and JSON elsewhere; colour only on a terminal. `delivery` tells
    which message is being handled: its queue, id and attempt are bound to each line, and the letter and the trace that
    it belongs to, if any. A second call replaces the first. Lines of structlog's own loggers go the same way.
    """
    stream = stream or sys.stderr
    bound: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        *([_bind(delivery)] if delivery else []),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        *bound,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    rendering = _rendering(form, color=color, terminal=stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter(own=[*bound, *rendering], foreign=shared, rendering=rendering))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # tells of each of its own plugins otherwise


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Our own lines are taken as they are, in little more than half the time: structlog copies every other record."""

    def __init__(self, *, own: list[Processor], foreign: list[Processor], rendering: list[Processor]) -> None:
        super().__init__(foreign_pre_chain=foreign, processors=[self.remove_processors_meta, *rendering])
        self._own = own

    def format(self, record: logging.LogRecord) -> str:
        line = record.msg
        if not isinstance(line, Said):
            return super().format(record)
        said: Any = {"event": line.text, **line.fields, "level": record.levelname.lower()}
        for process in self._own:
            said = process(None, record.levelname, said)
        return str(said)


def _rendering(form: LogForm, *, color: bool, terminal: bool) -> list[Processor]:
    if form == "text" or (form == "auto" and terminal):
        lines = structlog.dev.ConsoleRenderer(
            colors=color and terminal,
            pad_event_to=20,
            exception_formatter=structlog.dev.plain_traceback,  # one that shows locals shows payloads
        )
        return [_mask(printable), lines]
    return [_mask(str), _in_order, structlog.processors.JSONRenderer()]


def _in_order(_: Any, __: str, said: EventDict) -> EventDict:
    """What people look for first stands first."""
    head = {"timestamp": said.pop("timestamp"), "level": said.pop("level"), "message": said.pop("event")}
    return {**head, **said}


def _bind(delivery: Callable[[], Delivery | None]) -> Processor:
    def bind(_: Any, __: str, said: EventDict) -> EventDict:
        if current := delivery():
            said.setdefault("queue", current.message.queue)
            said.setdefault("message_id", current.message.id)
            said.setdefault("attempt", current.attempt)
            if current.letter_id is not None:
                said.setdefault("letter_id", current.letter_id)
            if trace_id := _span() or trace_of(current.message.headers):
                said.setdefault("trace_id", trace_id)
        return said

    return bind


def _span() -> str:
    """The id of the trace in which this is done, where spans are made."""
    if (api := sys.modules.get("opentelemetry.trace")) is None:
        return ""
    span = api.get_current_span().get_span_context()
    return f"{span.trace_id:032x}" if span.is_valid else ""


def _mask(shown: Callable[[str], str]) -> Processor:
    def mask(_: Any, __: str, said: EventDict) -> EventDict:
        for name, value in said.items():
            if name != "exception":
                said[name] = _shown(name, value, shown)
        if "exception" in said:  # a stack keeps its line breaks
            said["exception"] = "\n".join(map(shown, _FILTER.text(said["exception"]).splitlines()))
        return said

    return mask


def _shown(name: str, value: Any, shown: Callable[[str], str]) -> Any:
    if name in _NAMES:
        return shown(mask_url(value)) if isinstance(value, str) else value
    if name != "event" and _FILTER.hides(name):
        return MASK
    if isinstance(value, str):
        return shown(_FILTER.text(value))
    return _FILTER.mask(value) if isinstance(value, dict | list | tuple) else value


_FILTER = PrivacyFilter()
_NAMES = frozenset(
    (
        *("timestamp", "level", "queue", "group", "message_id", "attempt", "letter_id", "generation", "reason"),
        *("fingerprint", "payload_sha256", "event_name", "trace_id"),
    )
)
"""What stands in most of our lines, and names something: not searched for secrets, which would cost as much again."""
