"""What a look at the broker shows: letters, depths, reports. Nothing is changed but by reading the reports."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from redrive.core.message import as_headers
from redrive.core.outcome import Settlement
from redrive.core.place import named
from redrive.core.ports import Broker, DeadEntry, NativeDeadLetters, Options
from redrive.core.wire import load_outcome
from tests.crash.checker import Found
from tests.crash.plan import HEADERS, QUEUES, Plan
from tests.crash.scenario import GROUP

PAGE = 200


async def prepare(broker: Broker) -> None:
    """Make queues and group, so that there is something to look at before the first worker has come up."""
    for queue in QUEUES:
        subscription = await broker.subscribe(queue, group=GROUP, options=Options(owner="checker"))
        await subscription.aclose()


async def entries_of(letters: NativeDeadLetters) -> Sequence[DeadEntry]:
    """Every entry of a DLQ."""
    found = list(await letters.peek(PAGE))
    while True:
        more = (await letters.peek(PAGE, start=found[-1].entry_id))[1:] if found else ()
        if not more:
            return found
        found += more


async def find_letters(broker: Broker) -> Sequence[Found]:
    """The dead letters of all queues."""
    return [_found(entry) for queue in QUEUES for entry in await entries_of(broker.dead_letters(queue))]


async def count_left(broker: Broker) -> int:
    """How many messages are neither done nor dead, over all queues."""
    left = 0
    for queue in QUEUES:
        depth = await broker.depth(queue, group=GROUP)
        left += depth.waiting + depth.in_flight + depth.scheduled + depth.held
    return left


async def count_in_hand(broker: Broker) -> int:
    """How many messages are in the hands of some process, over all queues."""
    return sum([(await broker.depth(queue, group=GROUP)).in_flight for queue in QUEUES])


async def read_reports(broker: Broker) -> Mapping[tuple[str, int], int]:
    """How often each redrive was reported as a success."""
    reports: Counter[tuple[str, int]] = Counter()
    for queue in QUEUES:
        name = named(broker.capabilities.outcomes, queue)
        subscription = await broker.subscribe(name, group="checker", options=Options(owner="checker"))
        while deliveries := await subscription.fetch(PAGE, wait=timedelta(0)):
            outcomes = [load_outcome(delivery.message.body) for delivery in deliveries]
            reports.update((one.letter_id, one.generation) for one in outcomes if one.succeeded)
            await subscription.settle([Settlement(delivery) for delivery in deliveries])
        await subscription.aclose()
    return reports


def _found(entry: DeadEntry) -> Found:
    letter = entry.letter
    plan = Plan.of(letter.payload)
    return Found(
        id=plan.id if plan is not None else f"unreadable {entry.entry_id}",
        letter_id=letter.letter_id,
        reason=letter.reason,
        attempts=letter.retry_count,
        crashes=sum(attempt.crash for attempt in letter.attempts),
        generation=letter.generation,
        intact=plan is not None and letter.payload == plan.body and letter.headers == as_headers(HEADERS),
    )
