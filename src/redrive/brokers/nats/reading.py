"""Looking into a stream, without taking anything from it."""

import json
from base64 import b64decode
from collections.abc import Sequence
from email.parser import BytesHeaderParser

from redrive.brokers.nats.errors import NO_MESSAGE, Refused
from redrive.brokers.nats.heading import Stored, rfc3339, stored
from redrive.brokers.nats.link import Letter, Link
from redrive.brokers.nats.streams import Stream
from redrive.core.errors import QueueNotFound


async def get(link: Link, stream: Stream, seq: int) -> Stored | None:
    """The message at a place in a stream; None if it is not there any more."""
    found = await _ask(link, stream, {"seq": seq})
    return found if found is not None and found.seq == seq else None  # else it is the next one


async def after(link: Link, stream: Stream, subject: str, *, seq: int, most: int) -> Sequence[Stored]:
    """The messages on a subject, which may have wildcards, from a place on."""
    if stream.config.get("allow_direct"):
        body = json.dumps({"next_by_subj": subject, "seq": max(seq, 1), "batch": most}).encode()
        return [stored(one) for one in await link.stream(Letter(f"$JS.API.DIRECT.GET.{stream.name}", body))]
    found: list[Stored] = []
    while len(found) < most:
        one = await _ask(link, stream, {"next_by_subj": subject, "seq": max(seq, 1)})
        if one is None:
            break
        found.append(one)
        seq = one.seq + 1
    return found


async def delete(link: Link, stream: Stream, seq: int) -> bool:
    """Remove a message; whether it was there."""
    try:
        await link.api(f"STREAM.MSG.DELETE.{stream.name}", {"seq": seq, "no_erase": True})
    except Refused:
        if await get(link, stream, seq) is None:
            return False
        raise
    except QueueNotFound:
        return False
    return True


async def _ask(link: Link, stream: Stream, what: dict[str, object]) -> Stored | None:
    if stream.config.get("allow_direct"):
        found = await link.stream(
            Letter(f"$JS.API.DIRECT.GET.{stream.name}", json.dumps({**what, "batch": 1}).encode())
        )
        return stored(found[0]) if found else None
    try:
        told = (await link.api(f"STREAM.MSG.GET.{stream.name}", what))["message"]
    except Refused as error:
        if error.code == NO_MESSAGE:
            return None
        raise
    raw = b64decode(told.get("hdrs", "")).partition(b"\r\n")[2]
    heading = {name: str(value) for name, value in BytesHeaderParser().parsebytes(raw).items()}
    return Stored(told["subject"], told["seq"], rfc3339(told["time"]), b64decode(told.get("data", "")), heading)
