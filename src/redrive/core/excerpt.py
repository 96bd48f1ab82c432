"""The beginning of a text that may be of any size: errors, stacks and contexts come from strangers."""

_ELLIPSIS = "…"
_ELLIPSIS_SIZE = 3
_WIDEST = 4


def excerpt(text: str, *, limit: int) -> str:
    """The text, or as much of its beginning as fits into `limit` bytes of UTF-8 with an ellipsis after it.

    A text of any size costs only its first `limit` characters. Lone surrogates are kept.

    >>> excerpt("out of stock", limit=9)
    'out of…'
    """
    if len(text) * _WIDEST <= limit:
        return text
    head = text[:limit].encode("utf-8", "surrogatepass")
    if len(text) <= limit and len(head) <= limit:
        return text
    end = max(0, limit - _ELLIPSIS_SIZE)
    while end and _continues(head[end]):
        end -= 1
    return head[:end].decode("utf-8", "surrogatepass") + _ELLIPSIS


def _continues(byte: int) -> bool:
    """Whether this byte stands inside a character of UTF-8."""
    return byte & 0xC0 == 0x80  # noqa: PLR2004 - the bits that mark it
