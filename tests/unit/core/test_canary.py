from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from redrive.core.canary import draw, step_sizes

kinds = st.lists(st.sampled_from("abc"), max_size=40)
canaries = st.lists(st.integers(1, 12), max_size=4)


def test_each_step_takes_its_number_and_the_rest_is_the_last_step() -> None:
    drawn = draw(["orders"] * 1000, canary=[1, 5, 25], random=Random(1))

    assert drawn.sizes == (1, 5, 25)
    assert Counter(drawn.steps) == {0: 1, 1: 5, 2: 25, 3: 969}


def test_canaries_are_drawn_at_random() -> None:
    first = {draw(range(0), canary=[1], random=Random(0)).steps}
    drawn = {draw(["a"] * 20, canary=[1], random=Random(seed)).steps.index(0) for seed in range(40)}

    assert first == {()}
    assert len(drawn) > 5


def test_every_kind_has_canaries_of_its_own() -> None:
    kinds = ["a"] * 30 + ["b"] * 3 + ["c"]
    drawn = draw(kinds, canary=[1, 2], random=Random(1))

    assert drawn.sizes == (3, 4)
    assert {kind for kind, step in zip(kinds, drawn.steps, strict=True) if step == 0} == {"a", "b", "c"}


def test_a_step_that_would_take_everything_is_the_last_one() -> None:
    assert draw(["a"], canary=[1, 5], random=Random(1)).sizes == ()
    assert draw(["a"] * 3, canary=[1, 5, 25], random=Random(1)).sizes == (1,)


@given(kinds=kinds, canary=canaries, seed=st.integers())
def test_every_letter_is_in_exactly_one_step_and_no_step_is_empty(
    kinds: list[str], canary: list[int], seed: int
) -> None:
    drawn = draw(kinds, canary=canary, random=Random(seed))
    counted = Counter(drawn.steps)

    assert len(drawn.steps) == len(kinds)
    assert [counted[step] for step in range(len(drawn.sizes))] == [*drawn.sizes]
    assert step_sizes(Counter(kinds).values(), canary=canary) == drawn.sizes
    assert all(counted[step] for step in range(len(drawn.sizes) + 1)) or not kinds
