"""How much of a message its dead letter keeps: all of it, all of it encrypted, or only what names it."""

from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, Self

from redrive.core.context import ContextRule, OwnFields
from redrive.core.errors import ConfigError, DeadLetterError
from redrive.core.letter import DeadLetter

STAGE: Final = "validation_stage"
"""What a letter's context calls the stage that refused its message."""

_NAMED: Final = ("tenant_id", "run_id", "trace_id")
_NOT_KEPT: Final = "not kept: letters of this queue hold nothing of their messages"


class PayloadMode(StrEnum):
    """How much of a message its letter keeps."""

    FULL = "full"  # payload, key and headers, byte for byte
    DIGEST = "digest"  # nothing but the payload's hash
    ENCRYPTED = "encrypted"  # payload, key and headers, for those who have the key

    @classmethod
    def of(cls, spec: Any) -> Self:
        """Read `payload=` as people write it. Raises `ConfigError`."""
        try:
            return cls(spec)
        except ValueError as error:
            raise ConfigError(f"payload: expected one of {', '.join(cls)}, got {spec!r}") from error


def digest_rule(rule: ContextRule | None) -> ContextRule:
    """What of a message a digest may tell: what `context=` asks for, else tenant, run and trace.

    What is about a person is masked in it too.
    """
    rule = rule or ContextRule()
    names = rule.names if rule.names or rule.function else _NAMED
    return replace(rule, names=names, privacy=replace(rule.privacy, personal=True))


def digested(letter: DeadLetter, *, safe: str = "") -> DeadLetter:
    """The letter without anything of its message but the payload's hash and what its context was asked to tell.

    The texts of errors quote what they complain about, so they go too, and `safe` stands in their place. Names stay:
    the type and code of the error, which are the program's, and the id that the broker gave the message.
    """
    untold: dict[str, Any] = {name: None for name in OwnFields._fields if name not in (*_NAMED, *letter.context)}
    return replace(
        letter,
        payload=None,
        key=None,
        headers=(),
        content_type="",
        error_message=safe or _NOT_KEPT,
        stack=None,
        attempts=tuple(attempt if attempt.crash else attempt.told("") for attempt in letter.attempts),
        **untold,
    )


def no_payload(letter: DeadLetter) -> DeadLetterError:
    """What is said of a letter that cannot be sent back as it is, with where its message was."""
    place = f"queue {letter.queue}" + (f" of broker {letter.broker}" if letter.broker else "")
    hashed = f", sha256 {letter.payload_sha256}" if letter.payload_sha256 else ""
    return DeadLetterError(
        f"letter {letter.letter_id} keeps no payload: there is nothing to send back, unless an edit gives it a body;"
        f" its message was {letter.original_message_id or 'unnamed'} in the {place}{hashed}"
    )
