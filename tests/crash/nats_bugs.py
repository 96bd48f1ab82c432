"""Planted bugs inside the NATS adapter: mistakes that consumers of JetStream make. Those of `bugs.py` come on top."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from redrive.brokers.nats import intake, letters, settling
from redrive.brokers.nats.hand import Held
from redrive.brokers.nats.heading import read_reply
from redrive.core.delivery import Delivery


def count_deliveries_as_attempts() -> None:
    """Take the server's count of deliveries for the number of attempts."""
    deliver = intake.Intake._delivery  # noqa: SLF001

    async def counted(self: intake.Intake, held: Held, message: Any, at: datetime, *, now: datetime) -> Delivery:
        found = await deliver(self, held, message, at, now=now)
        return found._replace(failures=read_reply(message.reply).delivered - 1)

    intake.Intake._delivery = counted  # type: ignore[method-assign]  # noqa: SLF001


def letters_without_an_id() -> None:
    """Publish letters as if the server could not know them again."""
    make = letters.letter_for

    async def made(*arguments: Any, **options: Any) -> Any:
        letter = await make(*arguments, **options)
        return letter._replace(heading={k: v for k, v in (letter.heading or {}).items() if k != "Nats-Msg-Id"})

    settling.letter_for = made  # type: ignore[attr-defined]


def terminate_what_failed() -> None:
    """Answer a failure with the word that ends a message, instead of the one that brings it back."""
    settling.nak = lambda _delay=timedelta(): b"+TERM"  # type: ignore[assignment, attr-defined]


BUGS: Final[Mapping[str, Callable[[], None]]] = {
    bug.__name__: bug
    for bug in (
        count_deliveries_as_attempts,
        letters_without_an_id,
        terminate_what_failed,
    )
}
