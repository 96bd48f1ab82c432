"""Messages that were trimmed or deleted while pending: a letter says so, where else there would be silence."""

from dataclasses import replace

from redrive.brokers.redis.entry import published_at
from redrive.brokers.redis.keys import GroupKeys
from redrive.brokers.redis.lane import BACK
from redrive.brokers.redis.letters import letter_fields
from redrive.brokers.redis.scripts import run
from redrive.brokers.redis.setting import Setting
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.delivery import Delivery
from redrive.core.event import Event, LetterWritten, MessageDropped
from redrive.core.failure import Failure
from redrive.core.letter import DeadLetter, Source, write_letter
from redrive.core.message import Message
from redrive.core.reason import Reason

WHY = "its entry was trimmed or deleted from the stream while the message was pending: nothing but its id is left"


async def bury(wire: Wire, member: bytes, *, keys: GroupKeys, setting: Setting) -> None:
    """Write the letter of a vanished message into the DLQ, in the step that takes it out of the pending list.

    Where acks move, whoever took the entry has moved it: nothing has vanished. Without a DLQ, an event is all there is.
    """
    letter = _letter(member, keys=keys, setting=setting)
    named = [keys.queue, keys.lane, keys.due, keys.stories, setting.dlq]
    writes = setting.options.dlq.enabled and not setting.options.moves
    fields = letter_fields(letter, largest=setting.largest) if writes else ()
    args: list[Value] = [keys.name, setting.options.owner, member, *fields]
    (buried,) = await run(wire, "bury", named, args)
    if buried and not setting.options.moves and setting.sink is not None:
        setting.sink.emit(_told(letter, setting=setting))


def _told(letter: DeadLetter, *, setting: Setting) -> Event:
    at, broker, queue, group = letter.failed_at, letter.broker, letter.queue, letter.group
    if setting.options.dlq.enabled:
        return LetterWritten(at=at, broker=broker, queue=queue, group=group, letter=letter)
    return MessageDropped(
        at=at,
        broker=broker,
        queue=queue,
        group=group,
        message_id=letter.original_message_id,
        payload_sha256="",
        reason=letter.reason,
        error_type=letter.error_type,
    )


def _letter(member: bytes, *, keys: GroupKeys, setting: Setting) -> DeadLetter:
    now = setting.clock.now()
    entry_id = member[1:]
    message_id = (BACK if member[:1] == b"l" else "") + entry_id.decode()
    message = Message(message_id, keys.queue, b"", published_at=published_at(entry_id))
    written = write_letter(
        Delivery(message, keys.name, now),
        source=Source(setting.broker, setting.incarnation, app_version=setting.options.version),
        failure=Failure("Vanished", WHY),
        reason=Reason.VANISHED,
        trail=(),
        now=now,
    )
    return replace(written, payload=None, payload_sha256="")
