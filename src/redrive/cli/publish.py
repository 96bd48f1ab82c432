"""`redrive publish`: put messages into a queue, byte for byte."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from redrive.cli.output import complain, tell
from redrive.cli.target import HERE, Target, open_broker
from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError, RedriveError
from redrive.core.message import RESERVED_PREFIX, Headers, Message

BATCH = 500


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Form:
    """What the messages of one command have in common."""

    header: Annotated[tuple[str, ...], Parameter(help="NAME=VALUE; may be given often.")] = ()
    key: Annotated[str | None, Parameter(help="The message's key.")] = None
    delay: Annotated[str, Parameter(help="Wait before the first delivery, such as 30s.")] = "0s"
    expires: Annotated[str | None, Parameter(help="Give up if it has not run by then, such as 1h.")] = None


PLAIN = Form()


async def publish(
    queue: Annotated[str, Parameter(help="The queue; it is made if it does not exist.")],
    payload: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="The message itself, @FILE for the bytes of a file, or - for those of standard input.",
        ),
    ],
    /,
    *,
    form: Form = PLAIN,
    lines: Annotated[bool, Parameter(help="One message per line; empty lines are none.")] = False,
    target: Target = HERE,
) -> None:
    """Put messages into a queue, byte for byte."""
    blank, delay = _filled(queue, form)
    published = 0
    with _opened(payload) as file:
        bodies = _lines(file) if lines else iter([file.read()])
        async with open_broker(target, create=True) as broker:
            while batch := [blank._replace(body=body) for body in islice(bodies, BATCH)]:
                try:
                    message_ids = await broker.publish(queue, batch, delay=delay)
                except RedriveError:
                    if published:
                        complain([f"{published} messages were published before this:"])
                    raise
                published += len(message_ids)
                if target.json:
                    for message_id in message_ids:
                        tell({"queue": queue, "message_id": message_id}, "", as_json=True)
    if not target.json:
        tell({}, f"published {published} message{'s' * (published != 1)} to {queue}", as_json=False)


def _filled(queue: str, form: Form) -> tuple[Message, timedelta]:
    mistakes: list[str] = []
    headers = _headers(form.header, mistakes)
    delay = _length("--delay", form.delay, mistakes)
    expires_at = None
    if form.expires is not None:
        expires_at = datetime.now(UTC) + _length("--expires", form.expires, mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    key = None if form.key is None else os.fsencode(form.key)
    return Message("", queue, b"", headers=headers, key=key, expires_at=expires_at), delay


def _headers(given: tuple[str, ...], mistakes: list[str]) -> Headers:
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            mistakes.append(f"--header: expected NAME=VALUE, got {text!r}")
        elif name.startswith(RESERVED_PREFIX):
            mistakes.append(f"--header: names that begin with {RESERVED_PREFIX} are Redrive's own, got {name!r}")
        pairs.append((name, os.fsencode(value)))
    return tuple(pairs)


def _length(flag: str, text: str, mistakes: list[str]) -> timedelta:
    try:
        return as_duration(text)
    except ValueError as error:
        mistakes.append(f"{flag}: {error}")
        return timedelta(0)


def _opened(payload: str) -> AbstractContextManager[BinaryIO]:
    if payload == "-":
        return nullcontext(sys.stdin.buffer)
    if not payload.startswith("@"):
        return BytesIO(os.fsencode(payload))  # what the shell passed, even where it is not text
    try:
        return Path(payload[1:]).open("rb")
    except OSError as error:
        raise ConfigError(f"{payload}: cannot be read: {error.strerror}") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    for line in file:
        body = line.removesuffix(b"\n")
        if body:
            yield body
