"""What a worker keeps of a message that is given up, as its consumer's `payload=` says."""

from collections.abc import Callable
from typing import NamedTuple

from redrive.core.context import ContextRule
from redrive.core.errors import ConfigError
from redrive.core.keeping import PayloadMode, digest_rule, digested
from redrive.core.letter import DeadLetter
from redrive.core.ports.cipher import Cipher
from redrive.core.seal import seal
from redrive.worker.consumer import Treatment
from redrive.worker.payload import InvalidPayload

Keep = Callable[[DeadLetter, str], DeadLetter]
"""Makes of a letter what is kept of it. The text is what may be said of the error where nothing else may."""


class Keeping(NamedTuple):
    """`rule`: what letters tell of their messages. `text`: the texts of attempts, masked. `keep`: None keeps all."""

    rule: ContextRule | None
    text: Callable[[str], str]
    keep: Keep | None = None


def keeping_of(treatment: Treatment, *, cipher: Cipher | None) -> Keeping:
    """How a consumer's letters are kept. Raises `ConfigError` if they are to be encrypted and there is no key."""
    if treatment.payload is PayloadMode.DIGEST:
        return Keeping(digest_rule(treatment.context), _nothing, lambda letter, safe: digested(letter, safe=safe))
    rule = treatment.context
    text = (rule or ContextRule()).privacy.text
    if treatment.payload is PayloadMode.FULL:
        return Keeping(rule, text)
    if cipher is None:
        raise ConfigError("payload: 'encrypted' needs a key: REDRIVE_ENCRYPTION_KEYS, or encryption.keys_file")
    return Keeping(rule, text, lambda letter, _: seal(letter, cipher))


def safe_text(error: BaseException, *, own: tuple[type[BaseException], ...]) -> str:
    """What may be said of an error where nothing of the message may: what our `own` errors say, and little else."""
    if isinstance(error, own):
        return str(error)
    return error.safe if isinstance(error, InvalidPayload) else ""


def _nothing(_: str) -> str:
    return ""
