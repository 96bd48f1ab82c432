"""Text from strangers as it may be shown: it cannot move the cursor, change a colour or reorder a line."""

import re

# C0 and C1 controls, separators of lines, lone surrogates, and the marks that reorder text to disguise it.
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with every control character escaped, line breaks too.

    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    return _UNSHOWN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")
