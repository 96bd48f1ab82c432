"""A query over letters: what every store must find, said once as a pure function."""

from dataclasses import dataclass
from datetime import datetime

from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.reason import Reason
from redrive.core.seal import sealed_by

_PAYLOAD = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which letters are asked for: all that is given must hold; what is None is not asked.

    A letter must be in one of `states`, which are kept in one order and each once; without any, in whichever. `from_at`
    is included, `to_at` is not; both are about `failed_at`. `text` is looked for in `searchable_text`, whatever the
    case. Raises `ValueError` for an instant without a zone.
    """

    states: tuple[LetterState, ...] = ()
    reason: Reason | None = None
    broker: str | None = None
    queue: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    fingerprint: str | None = None
    user_id: str | None = None
    tenant_id: str | None = None
    kind: str | None = None
    app_version: str | None = None
    dlq_entry_id: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", tuple(state for state in LetterState if state in self.states))
        for name in ("from_at", "to_at"):
            instant = getattr(self, name)
            if instant is not None and instant.tzinfo is None:
                raise ValueError(f"{name}: expected an instant with a zone, got {instant!r}")

    def matches(self, letter: DeadLetter, *, state: LetterState = LetterState.OPEN) -> bool:
        """Whether this letter is asked for. One that no store has seen is open."""
        if self.states and state not in self.states:
            return False
        if any(getattr(letter, name) != wanted for name, wanted in self.equal_to().items()):
            return False
        if self.from_at is not None and letter.failed_at < self.from_at:
            return False
        if self.to_at is not None and letter.failed_at >= self.to_at:
            return False
        return self.text is None or self.text.lower() in searchable_text(letter)

    def equal_to(self) -> dict[str, str]:
        """What the letter's fields of the same names must be equal to."""
        return {name: wanted for name in _EQUAL if (wanted := getattr(self, name)) is not None}

    def asked(self) -> set[str]:
        """The names of what it is about, beside states."""
        others = [name for name in ("from_at", "to_at", "text") if getattr(self, name) is not None]
        return {*self.equal_to(), *others}


_EQUAL = (
    *("reason", "broker", "queue", "error_type", "error_code", "fingerprint"),
    *("user_id", "tenant_id", "kind", "app_version", "dlq_entry_id"),
)


def is_searchable(text: str) -> bool:
    """Whether a text may be part of what a search looks at: it is one, without NUL and lone surrogates."""
    return bool(text) and "\x00" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)


def searchable_text(letter: DeadLetter) -> str:
    """What a search for text looks at, in lower case: ids, the error, and the first 64 KiB of the payload as text.

    It holds neither NUL nor lone surrogates, so that every store can keep it.
    """
    kept = b"" if sealed_by(letter) else letter.payload or b""
    payload = kept[:_PAYLOAD].decode("utf-8", "replace")
    parts = (letter.letter_id, letter.original_message_id, letter.error_type, letter.error_message, payload)
    text = "\n".join(parts).lower().replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
