import threading

import pytest

from redrive.triage import aside


@pytest.mark.parametrize(("letters", "elsewhere"), [(aside.LARGE, False), (aside.LARGE + 1, True)])
async def test_only_work_on_many_letters_is_done_in_a_thread(letters: int, *, elsewhere: bool) -> None:
    done_in = await aside.aside(range(letters), threading.get_ident)

    assert (done_in != threading.get_ident()) is elsewhere


async def test_what_work_done_aside_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="nine"):
        await aside.aside(range(aside.LARGE + 1), int, "nine")
