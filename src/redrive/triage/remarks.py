"""What a person should read before letters are sent back: what stays, and who sees what goes."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from redrive.core.errors import BrokerUnavailable
from redrive.core.life import LetterState
from redrive.core.ports import Broker
from redrive.core.redrive import Target
from redrive.core.url import mask_url
from redrive.triage.selection import Kind

PATIENCE = timedelta(seconds=1)  # with a broker that neither answers nor refuses
_TOLD = 5  # letters of which it is said why they cannot be sent

Brokers = Mapping[str, Broker]
"""Brokers by the name that letters have for them."""

_ADVICE = {
    LetterState.PARKED: ", at the generation cap; sent only if over-cap is asked for",
    LetterState.REDRIVING: ", sent before and not heard of; sent once more only if again is asked for",
}


def unsendable(why: Collection[str]) -> list[str]:
    """Letters that keep nothing to send back; of the first it is said why."""
    told = [f"left out: {said}" for said in [*why][:_TOLD]]
    return [*told, f"{len(why) - _TOLD:,} more left out: they keep no payload"] if len(why) > _TOLD else told


def left_out(kinds: Mapping[Kind, int], *, states: Collection[LetterState]) -> list[str]:
    """Letters in other states than these."""
    found = Counter[LetterState]()
    for kind, number in kinds.items():
        if kind.state not in states:
            found[kind.state] += number
    return [f"{number:,} left out: {state}{_ADVICE.get(state, '')}" for state, number in found.items()]


async def about(targets: Collection[Target], brokers: Brokers) -> list[str]:
    """Where letters go, as far as it is not their own lane. Each broker is asked once, all of them at the same time."""
    asked = sorted({target.broker for target in targets if not target.group and target.broker in brokers})
    answers = await asyncio.gather(*(_readers(brokers[name]) for name in asked))
    readers = dict(zip(asked, answers, strict=True))
    return [*dict.fromkeys(said for target in targets if (said := _about(target, brokers, readers)))]


def _about(target: Target, brokers: Brokers, readers: Mapping[str, Mapping[str, Sequence[str]] | str]) -> str:
    if target.broker not in brokers:
        return f"no broker named {target.broker!r} is at hand: its letters cannot be sent from here"
    if target.group:
        return ""
    found = readers[target.broker]
    if isinstance(found, str):
        return f"the broker {target.broker} is away, letters wait until it is back: {found}"
    groups = found.get(target.queue, ())
    seen = f"every group sees them: {', '.join(groups)}" if groups else "no group reads it yet"
    return f"letters go to the queue {target.queue} itself, {seen}; nothing reports back"


async def _readers(broker: Broker) -> Mapping[str, Sequence[str]] | str:
    """The groups of each queue; of a broker that is away, why."""
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            lanes = await broker.queues()
    except BrokerUnavailable as error:
        return mask_url(str(error))
    except TimeoutError:
        return f"no answer within {PATIENCE.total_seconds():g} s"
    found: defaultdict[str, list[str]] = defaultdict(list)
    for queue, group in sorted({*lanes}):
        if group:
            found[queue].append(group)
    return found
