"""From a claimed letter to what is sent back: which bytes, where to, and with which marks."""

from redrive.core.errors import DeadLetterError
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.store import Store
from redrive.core.redrive import Redrive, SendBack, Target, edited_origin, target_of
from redrive.core.seal import named_key, open_content, sealed_by
from redrive.core.stored import Claimed


async def opened(claimed: Claimed, store: Store, *, cipher: Cipher | None) -> Claimed:
    """What was claimed with its message as it was sent, byte for byte, where that is kept encrypted.

    Raises `DeadLetterError` if no key at hand opens it.
    """
    if claimed.body is None or named_key(claimed.headers) is None:
        return claimed
    letter = (await store.get(claimed.letter_id)).letter
    if sealed_by(letter) is None:  # a producer may have sent such a header
        return claimed
    content = open_content(claimed.body, claimed.headers, cipher, letter_id=claimed.letter_id)
    return claimed._replace(body=content.body, headers=content.headers, key=content.key)


def send_back_of(redrive: Redrive, claimed: Claimed) -> SendBack:
    """What a broker is asked to send. The same for the same claim, so that asking again sends nothing twice.

    A canary has one attempt: its first failure is the answer. In the queue itself nothing is marked where nobody is
    expected to report. Raises `DeadLetterError` for a letter without a payload.
    """
    if claimed.body is None:
        raise DeadLetterError(f"letter {claimed.letter_id} keeps no payload: there is nothing to send back")
    came_from = Target(claimed.broker, claimed.queue, claimed.group)
    target = target_of(came_from, to=redrive.to, target_queue=redrive.target_queue)
    return SendBack(
        letter_id=claimed.letter_id,
        generation=claimed.generation,
        queue=target.queue,
        body=claimed.body,
        headers=claimed.headers,
        key=claimed.key,
        group=target.group or None,
        origin=edited_origin(claimed.origin, claimed.edits),
        attempts_allowed=1 if claimed.step < len(redrive.steps) else None,
        marked=bool(target.group) or redrive.confirm == "reported",
    )
