"""Personal data: the names that it has, and how it looks inside text.

For what people are shown, not for the path of a message. Every rule takes linear time, whatever the text.
"""

import functools
import re
from collections.abc import Callable, Iterator

_WORDS = (
    r"addr address(?:es)? birth birthdate birthday cardholder dob e_?mails? fax forwarded_for gender geo ip latitude"
    r" longitude mobile msisdn nationality passport phones? post_?code postal_?code street surname telephone username"
    r" zip zip_?code (?:account|passport|tax|national|vat)_(?:id|no|nr|number)"
    r" (?:contact|customer|family|first|full|given|last|legal|maiden|middle|nick|recipient|sender|user)_?names?"
)
_INSIDE = "emailaddress|ipaddress|phonenumber|streetname|mailaddress"
_NAME = re.compile(rf"(?:^|_)(?:{'|'.join(_WORDS.split())})(?:_|$)|{_INSIDE}|^e?mail(?:_to|_from)?$|_mail$")

_SHORTEST = len("a@b.de")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+(?:@|%40)(?:[\w-]{1,63}\.){1,9}[^\W\d][\w-]{1,62}")
_PHONE = re.compile(
    r"(?<![\w+])(?:\+|%2B)\d(?:[ ().-]{0,2}\d){6,14}(?!\w)"
    r"|(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[. -])\d{3}[. -]\d{4}(?![\w-])"
)
_CARD = re.compile(r"(?<![\w.-])[3-6](?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,4})?)(?![\w-])")

# A name and the sign behind it: `name=`, `"name":`, `name:` at the beginning of a line, `<name>`.
_HEAD = re.compile(
    r"(?<![\w.-])(?P<field>[^\W\d][\w.-]{0,127})\]?\s{0,3}=\s{0,3}"
    r"|[\"'](?P<member>[^\W\d][\w .-]{0,127})\\?[\"']\s{0,9}:\s{0,9}"
    r"|^[ \t>*-]{0,20}(?P<line>[^\W\d][\w.-]{0,63}(?: [\w.-]{1,63}){0,2}):[ \t]{1,9}"
    r"|<(?P<element>[^\W\d][\w:.-]{0,127})(?:\s[^<>]{0,512})?>",
    re.MULTILINE,
)
_VALUE = re.compile(
    r"[{\[][^{}\[\]]*[}\]]?|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|\\\"(?:(?!\\\").)*(?:\\\"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)"
    r"|[^\s,;&\"'}\])<>]+",
    re.DOTALL,
)
_VALUES = {"field": _VALUE, "member": _VALUE, "line": re.compile(r"[^\r\n]+"), "element": re.compile(r"\s*[^<\s][^<]*")}


@functools.lru_cache(maxsize=4096)
def looks_personal(words: str) -> bool:
    """Whether a value under this name, in lower-case words, is about a person."""
    return _NAME.search(words) is not None


def mask_named(text: str, *, hides: Callable[[str], bool], mask: str) -> str:
    """The text without the values of names that are hidden, in whatever notation: JSON, a form, a log line, XML."""
    if not any(sign in text for sign in "=:>"):
        return text
    return "".join(_named(text, hides, mask))


def mask_personal(text: str, *, mask: str) -> str:
    """The text without what looks like an address for mail, a telephone number, a card or an account."""
    if len(text) < _SHORTEST:
        return text
    if "@" in text or "%40" in text:
        text = _EMAIL.sub(mask, text)
    text = _CARD.sub(lambda found: mask if _adds_up(found[0]) else found[0], text)
    text = _IBAN.sub(lambda found: mask if " " in found[0] or _is_iban(found[0]) else found[0], text)
    return _PHONE.sub(mask, text)


def is_card(text: str) -> bool:
    """Whether the text is the number of a card, and nothing else."""
    return _CARD.fullmatch(text) is not None and _adds_up(text)


def _named(text: str, hides: Callable[[str], bool], mask: str) -> Iterator[str]:
    done = 0
    for head in _HEAD.finditer(text):
        kind = head.lastgroup or ""
        if head.start() < done or not hides(head[kind]):
            continue
        value = _VALUES[kind].match(text, head.end())
        if value is not None:
            yield text[done : head.end()]
            yield mask
            done = value.end()
    yield text[done:]


def _adds_up(text: str) -> bool:
    """Whether the last digit is the check digit that cards have (Luhn)."""
    digits = [int(one) for one in reversed(text) if one.isdecimal()]
    doubled = (sum(divmod(2 * one, 10)) for one in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether the two digits behind the country are the check digits of the account (ISO 7064)."""
    return int("".join(str(int(one, 36)) for one in text[4:] + text[:4])) % 97 == 1
