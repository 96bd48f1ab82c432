"""A document as we write it: read by its shape, in one step, as most letters are. Others are read leniently."""

from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec

from redrive.core.attempt import Trail, WrittenTrail
from redrive.core.reason import Reason
from redrive.core.wire.plain import LARGEST, from_base64
from redrive.core.wire.record import COUNTS, INSTANTS, TEXTS, WORDS

_KEPT_BYTES: Final = ("payload", "key")
_EMPTY: Final = b"[]"

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_Word = Annotated[str, msgspec.Meta(min_length=1)]  # an empty one is read leniently: as none
_Instant = Annotated[datetime, msgspec.Meta(tz=True)]

_SHAPE: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(TEXTS, (str, "")),
    **dict.fromkeys(WORDS, (_Word | None, None)),
    **dict.fromkeys(COUNTS, (_Count, 0)),
    **dict.fromkeys(INSTANTS, (_Instant | None, None)),
    **dict.fromkeys(_KEPT_BYTES, (str | None, None)),
    **dict.fromkeys((f"{name}_base64" for name in _KEPT_BYTES), (str | None, None)),
    "letter_id": (str,),
    "payload_sha256": (str,),
    "reason": (Reason,),
    "headers": (list[tuple[str, str]], ()),
    "attempts": (msgspec.Raw, msgspec.Raw(_EMPTY)),
    "context": (dict[str, Any], msgspec.field(default_factory=dict)),
}
_FIELDS: Final = [(name, *kind) for name, kind in _SHAPE.items()]
_Document: Final = msgspec.defstruct("_Document", _FIELDS, kw_only=True, gc=False)
_decode: Final = msgspec.json.Decoder(_Document).decode
_instants: Final = attrgetter(*INSTANTS)
_zone: Final = attrgetter("tzinfo")
_UTC: Final = {UTC}


def read_own(raw: bytes) -> dict[str, Any] | None:
    """The values of a letter, with what its producer sent; None if it is not just as we write it."""
    try:
        if not raw.isascii():
            raw.decode()  # the trail is passed over below, whether it is text or not
        told: Any = _decode(raw)
        values = msgspec.structs.asdict(told)
        values["payload"] = _bytes(told.payload, values.pop("payload_base64"))
        values["key"] = _bytes(told.key, values.pop("key_base64"))
        values["headers"] = tuple([(name, value.encode()) for name, value in told.headers])
        if not {*map(_zone, filter(None, _instants(told)))} <= _UTC:
            values |= {name: _in_utc(values[name]) for name in INSTANTS}
    except (ValueError, OverflowError, RecursionError):
        return None
    values["attempts"] = _trail(bytes(told.attempts))
    return values


def _bytes(text: str | None, base64: str | None) -> bytes | None:
    if base64 is not None:
        return from_base64(base64)
    return None if text is None else text.encode()


def _trail(raw: bytes) -> Trail:
    return WrittenTrail(raw) if raw.startswith(b"[") and raw != _EMPTY else ()


def _in_utc(instant: datetime | None) -> datetime | None:
    return instant if instant is None or instant.tzinfo is UTC else instant.astimezone(UTC)
