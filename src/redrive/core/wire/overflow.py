"""A dead letter is larger than its message: what to leave out when a broker's limit is near."""

import hashlib
from dataclasses import replace
from typing import Any

from redrive.core.excerpt import excerpt
from redrive.core.letter import DeadLetter
from redrive.core.wire.fields import to_fields
from redrive.core.wire.plain import dump
from redrive.core.wire.record import to_pairs

_MESSAGE = 512


def bounded(letter: DeadLetter, *, limit: int) -> DeadLetter:
    """The letter with as much left out as its fields need to fit into `limit` bytes; the payload is not counted.

    Left out in this order, each step only if still needed: the stack; all attempts but the first and the last, and
    their texts; the error's text beyond 512 bytes; the context; the headers, of which a SHA-256 stays. What was left
    out is told under `overflow` in the context. A letter that fits is returned as it is. One that does not fit even
    then is returned at its smallest: the caller must look, and keep the message where it is.
    """
    smaller = letter
    for leave_out in (_stack, _attempts, _message, _context, _headers):
        if fields_size(smaller) <= limit:
            break
        smaller = leave_out(smaller)
    return smaller


def fields_size(letter: DeadLetter) -> int:
    """The bytes of a letter's fields, names included, without its payload."""
    return sum(len(name.encode("utf-8", "surrogatepass")) + len(value) for name, value in to_fields(letter))


def _stack(letter: DeadLetter) -> DeadLetter:
    return letter if letter.stack is None else _noted(replace(letter, stack=None), stack=True)


def _attempts(letter: DeadLetter) -> DeadLetter:
    ends = letter.attempts if len(letter.attempts) <= 2 else (letter.attempts[0], letter.attempts[-1])  # noqa: PLR2004
    kept = tuple(attempt.shortened() for attempt in ends)
    return letter if kept == letter.attempts else _noted(replace(letter, attempts=kept), attempts=True)


def _message(letter: DeadLetter) -> DeadLetter:
    text = excerpt(letter.error_message, limit=_MESSAGE)
    return letter if text == letter.error_message else _noted(replace(letter, error_message=text), error_message=True)


def _context(letter: DeadLetter) -> DeadLetter:
    told = {name: value for name, value in letter.context.items() if name == "overflow"}
    return letter if told == letter.context else _noted(replace(letter, context=told), context=True)


def _headers(letter: DeadLetter) -> DeadLetter:
    if not letter.headers:
        return letter
    hashed = hashlib.sha256(dump(to_pairs(letter.headers))).hexdigest()
    return _noted(replace(letter, headers=()), headers_sha256=hashed)


def _noted(letter: DeadLetter, **left_out: Any) -> DeadLetter:
    told = letter.context.get("overflow")
    overflow = {**told, **left_out} if isinstance(told, dict) else left_out
    return replace(letter, context={**letter.context, "overflow": overflow})
