"""What must not leave the worker, or be seen: values under secret-looking names, and secrets inside text."""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from redrive.core.errors import ConfigError
from redrive.core.excerpt import excerpt
from redrive.core.personal import is_card, looks_personal, mask_named, mask_personal
from redrive.core.url import mask_url

MASK = "***"

_TEXT = 2048
_NAME = 128
_ITEMS = 100
_DEPTH = 8
_BITS = 256

_WORDS = (
    r"auth authorization bearer card cookies? credentials? csrf cvc cvv dsn iban jwt otp pan passcode passphrase"
    r" passw(?:or)?ds? pin pwd secrets? session sid signature ssn token(?!_(?:count|limit|type|usage))"
    r" (?:access|api|encryption|private|secret|signing|ssh)_?key"
)
_INSIDE = (
    "password|passwd|passphrase|apikey|accesskey|privatekey|secretkey|credential|authorization|accesstoken"
    "|authtoken|refreshtoken|idtoken|clientsecret|creditcard|cardnumber"
)
_SECRET_NAME = re.compile(rf"(?:^|_)(?:{'|'.join(_WORDS.split())})(?:_|$)|{_INSIDE}")
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^a-zA-Z0-9]+")

_SECRET_TEXT = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    r"|(?<![\w-])(?:"
    r"(?P<scheme>(?i:bearer|basic)\s{1,9})(?:(?=\S{0,64}(?:[\d.=]|[a-z][A-Z]))[\w.~+/=-]{4,}|[\w.~+/=-]{16,})"
    r"|eyJ[\w-]{4,}\.[\w-]{4,}\.[\w-]*"  # a JWT
    r"|(?:[spr]k[-_]|rdt_)[\w-]{16,}|gh[opsur]_\w{20,}|xox[a-z]-[\w-]{8,}|AKIA[A-Z0-9]{12,})"
    r"|(?<![a-zA-Z0-9])"
    r"(?P<name>(?i:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|client[_-]?secret"
    r"|authorization|cookie)[\"']?\s{0,9}[=:]\s{0,9}(?i:(?:bearer|basic)\s{1,9})?)(?:\"[^\"]*\"|'[^']*'|[^\s,;&\"'}\])]+)"
)
# What a secret in a text cannot be without, in lower case: a sign, and beside it one of these words.
_NAMED = ("pass", "pwd", "secret", "token", "key", "auth", "cookie")
_SIGNS = (
    *(("=", _NAMED), (":", _NAMED), ("-", ("-----begin", "k-", "xox")), ("_", ("k_", "gh", "rdt_"))),
    *((alone, ("",)) for alone in ("bearer", "basic", "eyj", "akia")),
)


@dataclass(frozen=True, slots=True)
class PrivacyFilter:
    """Masks secrets in values of any shape. `names` and `patterns` add to what is known to be secret.

    A name is compared word by word: `names=("birth_date",)` also hides `birthDate` and `Birth-Date`. A pattern is a
    regular expression; what it matches inside text is masked. `personal` adds what is about a person (`core.personal`):
    right for people who look, too much for the path of a message. Raises `ConfigError` for a pattern that is none.
    """

    names: Sequence[str] = ()
    patterns: Sequence[str | re.Pattern[str]] = ()
    personal: bool = field(default=False, kw_only=True)
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lists = {"names": self.names, "patterns": self.patterns}
        mistakes = [f"privacy.{key}: expected a list, got {v!r}" for key, v in lists.items() if isinstance(v, str)]
        if mistakes:
            raise ConfigError(mistakes)
        for key, value in lists.items():
            object.__setattr__(self, key, tuple(value))
        object.__setattr__(self, "_names", frozenset(map(_words, self.names)))
        object.__setattr__(self, "_patterns", _compiled(self.patterns))

    def hides(self, name: str) -> bool:
        """Whether a value under this name must not be seen."""
        words = _words(name[:_NAME])
        return words in self._names or _looks_secret(words) or (self.personal and looks_personal(words))

    def text(self, text: str) -> str:
        """The text with secrets inside it masked: tokens, keys, passwords in URLs or after `password=`."""
        text = _without_secrets(text) if len(text) <= _TEXT else _without_secrets.__wrapped__(text)
        if self.personal:
            text = mask_personal(mask_named(text, hides=self.hides, mask=MASK), mask=MASK)
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return text

    def mask(self, value: Any) -> Any:
        """The value as plain JSON values, secrets masked; cycles, depth, size and strange objects are cut short.

        Never raises.
        """
        return self._mask(value, ())

    def _mask(self, value: Any, above: tuple[int, ...]) -> Any:
        try:
            if value is None or isinstance(value, int | float):
                number = _number(value)
                return MASK if self.personal and is_card(str(number)) else number
            if isinstance(value, Mapping | list | tuple | AbstractSet):
                return self._nested(value, above)
            return self._leaf(value)
        except Exception as trouble:  # noqa: BLE001 - a mapping or a `__str__` is anybody's code
            return f"(unreadable: {type(trouble).__name__})"

    def _nested(self, value: Any, above: tuple[int, ...]) -> Any:
        if id(value) in above:
            return "(a cycle)"
        if len(above) == _DEPTH:
            return "(too deep)"
        above = (*above, id(value))
        left = len(value) - _ITEMS
        if isinstance(value, Mapping):
            found = {}
            for key, item in islice(value.items(), _ITEMS):
                name = self._leaf(key)
                found[name] = MASK if self.hides(name) else self._mask(item, above)
            return {**found, "…": f"{left} more"} if left > 0 else found
        items = [self._mask(item, above) for item in islice(value, _ITEMS)]
        return [*items, f"… {left} more"] if left > 0 else items

    def _leaf(self, value: Any) -> str:
        if isinstance(value, bytes | bytearray):
            value = bytes(value[:_TEXT]).decode("utf-8", "backslashreplace")
        return excerpt(self.text(str(value)[: 2 * _TEXT]), limit=_TEXT)


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON knows no such number
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"(a number of {value.bit_length()} bits)"  # Python refuses to print thousands of digits
    return value


@functools.lru_cache(maxsize=64)
def _without_secrets(text: str) -> str:
    """Remembered, because what fails in heaps mostly says the same."""
    text = mask_url(text)
    return _SECRET_TEXT.sub(_masked, text) if _may_hide(text) else text


def _may_hide(text: str) -> bool:
    """Whether `_SECRET_TEXT` could find anything. Beyond ASCII, a letter may have more than two cases: ask it."""
    if not text.isascii():
        return True
    lower = text.lower()
    return any(word in lower for sign, words in _SIGNS if sign in lower for word in words)


def _masked(found: re.Match[str]) -> str:
    """What was found, only its secret masked: not the name or the scheme before it."""
    return (found["name"] or found["scheme"] or "") + MASK


@functools.lru_cache(maxsize=4096)
def _words(name: str) -> str:
    """A name as lower-case words: `xApiKey`, `X-API-Key` and `x.api.key` are all `x_api_key`."""
    return _WORD_BORDER.sub("_", name).strip("_").lower()


@functools.lru_cache(maxsize=4096)
def _looks_secret(words: str) -> bool:
    return _SECRET_NAME.search(words) is not None


def _compiled(patterns: Iterable[str | re.Pattern[str]]) -> tuple[re.Pattern[str], ...]:
    mistakes = []
    found = []
    for pattern in patterns:
        try:
            found.append(re.compile(pattern))
        except re.error as error:
            mistakes.append(f"privacy.patterns: expected a regular expression, got {pattern!r}: {error}")
    if mistakes:
        raise ConfigError(mistakes)
    return tuple(found)
