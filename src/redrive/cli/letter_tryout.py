"""`redrive letters try`: the current handler on a dead letter's bytes, in this terminal."""

import sys
import traceback
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from redrive.cli.anywhere import STORE, Anywhere, letter_named, open_clerk
from redrive.cli.letters import LetterId
from redrive.cli.output import Exit, preview, tell
from redrive.clock import SystemClock
from redrive.core.errors import ConfigError
from redrive.core.printable import printable

if TYPE_CHECKING:
    from redrive.app import App
    from redrive.triage.tryout import Tried
    from redrive.worker.consumer import Consumer


async def try_letter(
    letter_id: LetterId,
    app: Annotated[str, Parameter(help="Where the app is: module:attribute, such as first:app.")],
    /,
    *,
    pdb: Annotated[bool, Parameter(help="If it fails, open the debugger where it failed.")] = False,
    at: Anywhere = STORE,
) -> Exit:
    """Run the app's handler once on what would be sent back, here: breakpoints work. Exits with 1 if it fails.

    Nothing is settled, no letter changes. What the handler itself does, it does. With --url the letter is revealed to
    you, which goes on record.
    """
    from redrive.app import load_app
    from redrive.triage.tryout import try_letter as try_it
    from redrive.worker.handler_call import handler_of

    async with open_clerk(at) as clerk:
        stored = (await clerk.letters.show(await letter_named(clerk.letters, letter_id), reveal=True)).stored
    loaded = load_app(app)
    consumer = _consumer_of(loaded, stored.letter.queue, named=app)
    async with loaded, loaded.resources() as resources:
        tried = await try_it(
            stored, handler_of(consumer, resources), policy=consumer.treatment.retry, clock=SystemClock()
        )
    if not at.json and tried.error is not None:
        _show_trace(tried.error)
    tell(_fact(stored.letter.letter_id, tried), _words(tried), as_json=at.json)
    if pdb and tried.error is not None:
        import pdb as debugger  # noqa: T100 - asked for

        debugger.post_mortem(tried.error.__traceback__)
    return Exit.OK if tried.succeeded else Exit.NO


def _consumer_of(app: "App", queue: str, *, named: str) -> "Consumer":
    for consumer in app.consumers:
        if consumer.queue == queue:
            return consumer
    there = ", ".join(consumer.queue for consumer in app.consumers) or "none"
    raise ConfigError(f"{named}: has no consumer of the queue {queue!r}; it has: {there}")


def _show_trace(error: BaseException) -> None:
    for lines in traceback.format_exception(error):
        sys.stderr.writelines(f"{printable(line)}\n" for line in lines.splitlines())


def _fact(letter_id: str, tried: "Tried") -> dict[str, Any]:
    failure = tried.failure
    return {
        "letter_id": letter_id,
        "succeeded": tried.succeeded,
        "returned": None if tried.result is None else preview(repr(tried.result).encode(), width=1000),
        "error_type": failure.error_type if failure else None,
        "error_message": failure.error_message if failure else None,
        "same_failure": tried.same,
        "would": tried.would,
    }


def _words(tried: "Tried") -> str:
    if tried.succeeded:
        returned = "" if tried.result is None else f", returning {preview(repr(tried.result).encode())}"
        return f"it succeeded{returned}; {tried.would}"
    how = "the same way" if tried.same else "in another way"
    name = tried.failure.error_type if tried.failure else type(tried.error).__name__
    return f"it failed {how}: {name}; in a worker: {tried.would}"
