"""One letter sent back at once: a redrive of one, which whoever asks carries out to the point where it is sent."""

import asyncio
import contextlib
import hashlib
from typing import NamedTuple
from uuid import uuid4

from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, DeadLetterError, StateConflict, StoreError
from redrive.core.keeping import no_payload
from redrive.core.letter import payload_hash
from redrive.core.life import LetterState
from redrive.core.ports import Broker
from redrive.core.ports.originals import Originals
from redrive.core.redrive import Planned, Redrive, RedriveState, SendBack, Target, target_of
from redrive.core.seal import open_letter
from redrive.core.stored import StoredLetter
from redrive.triage import redrives
from redrive.triage.desk import Desk
from redrive.triage.redriver import LEASE
from redrive.triage.remarks import Brokers
from redrive.triage.sending import opened, send_back_of


class Retried(NamedTuple):
    """The message that a letter was sent back as, and the redrive that waits for its answer, if one does."""

    redrive_id: str
    message_id: str


async def retry(desk: Desk, stored: StoredLetter, *, brokers: Brokers) -> Retried:
    """Claim, publish and record one letter, as it was looked at. A redriver hears what becomes of it.

    Of several at once one sends, and the others leave no trace. Raises `StateConflict` for a letter that is not open or
    has changed, `DeadLetterError` for one without a payload or of a queue that cannot be one, and `BrokerUnavailable`:
    then it stays claimed, and a redriver sends it as soon as the broker is there. If the broker says no, `BrokerError`:
    it stays claimed too, and its redrive is paused.
    """
    _refuse(desk, stored, brokers)
    if stored.letter.payload is None and not stored.edits:
        return await _send_original(desk, stored, broker=brokers[stored.letter.broker])
    letter_id, owner = stored.letter.letter_id, uuid4().hex
    redrive = await _begin(desk, stored, owner=owner)
    claimed_by = f"letter {letter_id} is claimed by redrive {redrive.redrive_id}"
    try:
        async with asyncio.timeout(LEASE.total_seconds()):
            message_id = await _send(desk, redrive, letter_id, brokers=brokers)
    except (BrokerUnavailable, TimeoutError) as error:
        said = f"{str(error) or 'the broker does not answer'}; {claimed_by}"
        raise BrokerUnavailable(f"{said}, which sends it as soon as the broker is there") from error
    except BrokerError as error:
        with contextlib.suppress(StoreError):  # a redriver that finds it running pauses it too
            await redrives.pause(desk, redrive.redrive_id, why=f"a letter cannot be sent: {error}")
        said = f"{error}; {claimed_by}, which is paused"
        raise BrokerError(f"{said}; resume it once the cause is mended, and it goes on with the letter") from error
    finally:
        with contextlib.suppress(StoreError):
            now = desk.clock.now()
            await desk.store.take(redrive.redrive_id, owner=owner, now=now, until=now)
    return Retried(redrive.redrive_id, message_id)


def _refuse(desk: Desk, stored: StoredLetter, brokers: Brokers) -> None:
    """Raise what says why a letter cannot be sent back, before anything is claimed."""
    letter = stored.letter
    if stored.life.state is not LetterState.OPEN:
        raise StateConflict(f"letter {letter.letter_id} is {stored.life.state}: only an open one can be retried")
    open_letter(letter, desk.cipher)  # raises now, while nothing is claimed
    if letter.broker not in brokers:
        raise BrokerError(f"no broker named {letter.broker!r} is at hand: the letter cannot be sent from here")
    try:
        brokers[letter.broker].dead_letters(letter.queue)
    except ConfigError as error:  # a foreign letter may say anything
        raise DeadLetterError(f"letter {letter.letter_id} cannot be sent back: {error}") from error


async def _send_original(desk: Desk, stored: StoredLetter, *, broker: Broker) -> Retried:
    """Send the message itself, where its queue still holds it and the letter keeps no copy: none is made in the store.

    So no redrive claims the letter, and it stays open until something is heard. Its generation is the once-key: asked
    twice, it is sent once.
    """
    letter = stored.letter
    found = await broker.original(letter.queue, letter.original_message_id) if isinstance(broker, Originals) else None
    if found is None or payload_hash(found.body) != letter.payload_sha256:
        raise no_payload(letter)
    item = SendBack(
        letter.letter_id,
        stored.life.generation + 1,
        letter.queue,
        found.body,
        headers=found.headers,
        key=found.key,
        group=letter.group or None,
        origin=letter.original_message_id,
    )
    act = desk.act("letters.redrive", selection=f"letter={letter.letter_id}", count=1, original=found.id)
    await desk.store.record(act, letter_ids=[letter.letter_id])
    (message_id,) = await broker.send_back([item])
    return Retried("", message_id)


async def _begin(desk: Desk, stored: StoredLetter, *, owner: str) -> Redrive:
    """A redrive that is ours. Raises `StateConflict` if somebody else sends the letter just now."""
    letter, now = stored.letter, desk.clock.now()
    came_from = Target(letter.broker, letter.queue, letter.group)
    redrive = Redrive(
        redrive_id=await _name(desk, stored),
        created_at=now,
        by=desk.who,
        selection=f"letter={letter.letter_id}",
        total=1,
        targets=(target_of(came_from, to="lane", target_queue=None),),
        failed_on=(letter.app_version,) if letter.app_version else (),
    )
    act = desk.act("letters.redrive", selection=redrive.selection, count=1, redrive_id=redrive.redrive_id)
    item = Planned(letter.letter_id, stored.life.version)
    await desk.store.create(redrive, [item], act=act, owner=owner, until=now + LEASE)
    if not await desk.store.take(redrive.redrive_id, owner=owner, now=now, until=now + LEASE):
        raise StateConflict(f"letter {letter.letter_id} is being sent by redrive {redrive.redrive_id}")
    return redrive


async def _name(desk: Desk, stored: StoredLetter) -> str:
    """One name for all who retry a letter as it is now, so that one redrive is begun; another once that has halted."""
    seen = f"{stored.letter.letter_id} {stored.life.version}"
    name = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    if name not in stored.redrive_ids or (await desk.store.redrive(name)).state is RedriveState.RUNNING:
        return name
    return uuid4().hex[:12]


async def _send(desk: Desk, redrive: Redrive, letter_id: str, *, brokers: Brokers) -> str:
    claimed = await desk.store.claim(redrive.redrive_id, step=0, limit=1)
    if not claimed:
        raise StateConflict(f"letter {letter_id} has changed since it was looked at")
    one = await opened(claimed[0], desk.store, cipher=desk.cipher)
    (message_id,) = await brokers[one.broker].send_back([send_back_of(redrive, one)])
    await desk.store.sent(redrive.redrive_id, {letter_id: message_id}, at=desk.clock.now())
    return message_id
