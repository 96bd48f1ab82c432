"""Sending letters back: once per key, which the server knows for a while, and the bucket for a week."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from redrive.brokers.nats.book import Write
from redrive.brokers.nats.heading import MSG_ID, is_plain, terms_of, write_heading
from redrive.brokers.nats.link import Letter
from redrive.brokers.nats.names import check_subject, lane_of, token
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.parts import fit
from redrive.core.marks import write_marks
from redrive.core.message import Message, without_reserved
from redrive.core.redrive import SendBack

REMEMBERED: Final = timedelta(days=7)


async def send_back(office: Office, items: Sequence[SendBack]) -> Sequence[str]:
    """Send letters back; return message ids in order, the same when repeated."""
    for item in items:
        check_subject(queue=item.queue, group=item.group)
    unique = {_key(item): item for item in items}
    known = {key: row.value.decode() for key, row in (await office.book.read(list(unique))).items()} if items else {}
    new = {key: item for key, item in unique.items() if key not in known}
    letters = [await _letter(office, item) for item in new.values()]
    answers = await office.link.publish(letters) if letters else ()
    sent: dict[str, str] = {}
    for key, answer in zip(new, answers, strict=True):
        if isinstance(answer, Exception):
            raise answer
        sent[key] = f"{answer.stream}:{answer.seq}"
    await office.book.write([Write(key, name.encode(), kept_for=REMEMBERED) for key, name in sent.items()])
    known |= sent
    return [known[_key(item)] for item in items]


async def _letter(office: Office, item: SendBack) -> Letter:
    """To its group's lane, or into the queue, where no group speaks for it."""
    if item.group is None:
        stream = await office.streams.ensure(item.queue)
        subject = item.queue
    else:
        stream = (await office.groups.join(item.queue, item.group)).wells[-1].stream
        subject = lane_of(item.queue, item.group)
    marks = write_marks(item)
    plain = {name: value.decode() for name, value in marks if is_plain(value)}
    odd = tuple(mark for mark in marks if mark[0] not in plain)
    message = Message("", item.queue, item.body, (*without_reserved(item.headers), *odd), item.key)
    more = {MSG_ID: item.once_key, **terms_of(message), **plain}
    made = Letter(subject, message.body, write_heading(message.headers, more))
    return await fit(office.link, stream, item.queue, made)


def _key(item: SendBack) -> str:
    return f"sent.{token(item.queue)}.{token(item.letter_id)}.{item.generation}"
