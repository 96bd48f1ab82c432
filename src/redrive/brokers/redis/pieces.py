"""Fields that are too large for one argument: they stand in pieces, one after another under the same name."""

from collections.abc import Sequence


def too_large(fields: Sequence[bytes], *, largest: int) -> str:
    """Why a server would not even read these fields; empty if it does."""
    found = max(map(len, fields), default=0)
    return f"expected at most {largest} bytes in one field (proto-max-bulk-len), got {found}" if found > largest else ""


def in_pieces(fields: Sequence[bytes], *, largest: int) -> list[bytes]:
    """Names and values in turn, of which no value is larger than this."""
    if max(map(len, fields[1::2]), default=0) <= largest:
        return list(fields)
    pieces: list[bytes] = []
    for name, value in zip(fields[::2], fields[1::2], strict=True):
        for start in range(0, max(len(value), 1), largest):
            pieces += (name, value[start : start + largest])
    return pieces


def joined(fields: Sequence[bytes]) -> list[bytes]:
    """What `in_pieces` was given. Only for fields of which none stands twice for another reason."""
    names = fields[::2]
    if len(set(names)) == len(names):
        return list(fields)
    whole: dict[bytes, list[bytes]] = {}
    for name, value in zip(names, fields[1::2], strict=True):
        whole.setdefault(name, []).append(value)
    return [part for name, pieces in whole.items() for part in (name, b"".join(pieces))]
