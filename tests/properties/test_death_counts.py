"""Every death counts once, in its hour by every dimension and in its incident, however it is heard of."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.core.letter import DeadLetter
from redrive.core.reason import Reason
from redrive.testing.conformance.store.bench import AT, letter
from tests.properties.recount import check_counts, check_deaths
from tests.properties.stores import both_stores

Batches = Sequence[Sequence[DeadLetter]]


@st.composite
def deaths(draw: st.DrawFn) -> list[DeadLetter]:
    """Deaths of a few letters in a few generations, each in its own way; some left no attempts behind."""
    places = draw(st.sets(st.tuples(st.sampled_from("ab"), st.integers(0, 6)), min_size=1, max_size=8))
    return [_death(draw, name, generation) for name, generation in sorted(places)]


def _death(draw: st.DrawFn, name: str, generation: int) -> DeadLetter:
    changes: dict[str, Any] = {} if draw(st.booleans()) else {"attempts": ()}
    fingerprint = draw(st.sampled_from(["f1", "f2"]))
    return letter(
        name,
        generation=generation,
        fingerprint=fingerprint,
        queue=draw(st.sampled_from(["orders", "mail"])),
        reason=draw(st.sampled_from([Reason.REJECTED, Reason.INVALID])),
        error_type=draw(st.sampled_from(["KeyError", "ValueError"])),
        error_code=draw(st.sampled_from([None, "", "no_card"])),
        failed_at=AT + timedelta(hours=draw(st.integers(0, 2)), minutes=generation),
        **changes,
    )


@st.composite
def tellings(draw: st.DrawFn) -> tuple[list[DeadLetter], Batches]:
    """Deaths, and one way to tell of all of them: in any order, some of them again, in batches of any size."""
    died = draw(deaths())
    told = draw(st.permutations([*died, *draw(st.lists(st.sampled_from(died), max_size=6))]))
    ends = sorted(draw(st.sets(st.integers(1, len(told)))) | {len(told)})
    return died, [told[start:end] for start, end in zip([0, *ends], ends, strict=False)]


async def tell(place: Path | str, telling: tuple[list[DeadLetter], Batches]) -> None:
    died, batches = telling
    async with both_stores(place) as stores:
        for store in stores:
            for batch in batches:
                await store.collect(batch)
            await check_deaths(store, died)
            await check_counts(store)


@settings(max_examples=60)
@given(tellings())
def test_every_death_counts_once_in_any_order_any_batches_and_told_again(
    empty_file: Path, telling: tuple[list[DeadLetter], Batches]
) -> None:
    asyncio.run(tell(empty_file, telling))


@settings(max_examples=10)
@given(tellings())
def test_every_death_counts_once_in_postgres(shared_postgres: str, telling: tuple[list[DeadLetter], Batches]) -> None:
    asyncio.run(tell(shared_postgres, telling))


@settings(max_examples=8)
@given(tellings())
def test_every_death_counts_once_in_mongodb(shared_mongodb: str, telling: tuple[list[DeadLetter], Batches]) -> None:
    asyncio.run(tell(shared_mongodb, telling))
