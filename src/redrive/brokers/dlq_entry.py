"""An entry of a DLQ on its way back: the letter in it, and the message that it becomes again."""

from redrive.brokers.names import check_names
from redrive.core.errors import DeadLetterError
from redrive.core.keeping import no_payload
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.redrive import SendBack
from redrive.core.seal import sealed_by
from redrive.core.wire import read_letter


def letter_in(entry: Message, *, queue: str, broker: str) -> DeadLetter:
    """The letter in an entry of the DLQ of `queue`, in whatever form it is written. Never raises.

    `published_at` is the entry's own time: the time of failure of a letter that does not say when it failed.
    """
    assert entry.published_at is not None  # noqa: S101 - whatever a broker keeps has it
    return read_letter(
        entry.body,
        entry.headers,
        queue=queue,
        entry_id=entry.id,
        now=entry.published_at,
        broker=broker,
        key=entry.key,
    )


def as_send_back(letter: DeadLetter) -> SendBack:
    """What sends a letter back in its next generation: to the group that failed, or a foreign one to its queue.

    Raises `DeadLetterError` for a letter that keeps no payload, or has it sealed, and `ConfigError` for one that names
    a queue or a group of which no broker could have had it.
    """
    if letter.payload is None:
        raise no_payload(letter)
    if (key_id := sealed_by(letter)) is not None:
        raise DeadLetterError(
            f"letter {letter.letter_id} is encrypted with the key {key_id!r}: collect it, and redrive it from the store"
        )
    check_names(queue=letter.queue, group=letter.group or None)
    return SendBack(
        letter_id=letter.letter_id,
        generation=letter.generation + 1,
        queue=letter.queue,
        body=letter.payload,
        headers=letter.headers,
        key=letter.key,
        group=letter.group or None,
        origin=letter.original_message_id,
    )
