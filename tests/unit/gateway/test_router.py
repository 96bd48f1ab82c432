import asyncio
import gc
import logging

import pytest

from redrive.core.errors import GatewayClosed, ServerFault
from redrive.gateway import LLMResponse, ResponseRouter


def a_response(request_id: str = "r1") -> LLMResponse:
    return LLMResponse(request_id=request_id, model="fast", text="hello")


async def test_an_answer_reaches_everybody_who_waits_for_it() -> None:
    router = ResponseRouter()
    futures = [router.register("r1") for _ in range(3)]

    assert router.resolve("r1", a_response())
    assert [await future for future in futures] == [a_response()] * 3
    assert len(router) == 0


async def test_each_caller_gets_an_error_object_of_its_own() -> None:
    router = ResponseRouter()
    futures = [router.register("r1") for _ in range(3)]
    error = ServerFault("busy", status_code=503, code="overloaded")
    error.__cause__ = OSError("wire")

    router.resolve_error("r1", error)
    found = await asyncio.gather(*futures, return_exceptions=True)

    assert len({id(one) for one in found}) == 3
    assert {(str(one), one.status_code, one.code) for one in found if isinstance(one, ServerFault)} == {
        ("busy", 503, "overloaded")
    }
    assert all(isinstance(one, ServerFault) and isinstance(one.__cause__, OSError) for one in found)


async def test_what_comes_for_nobody_is_counted_and_harms_nobody() -> None:
    router = ResponseRouter()
    future = router.register("r1")
    router.resolve("r1", a_response())

    assert not router.resolve("r1", a_response())
    assert not router.resolve_error("r1", ServerFault("late"))
    assert not router.resolve("never heard of", a_response())
    assert router.late == 3
    assert await future == a_response()


async def test_a_cancelled_future_is_never_touched() -> None:
    router = ResponseRouter()
    future = router.register("r1")
    future.cancel()

    assert not router.is_wanted("r1")
    assert not router.resolve("r1", a_response())
    await asyncio.sleep(0)
    assert len(router) == 0


async def test_only_when_the_last_caller_has_left_a_request_is_abandoned() -> None:
    abandoned: list[str] = []
    router = ResponseRouter(abandoned.append)
    one, other = router.register("r1"), router.register("r1")

    one.cancel()
    await asyncio.sleep(0)
    assert abandoned == []
    assert router.is_wanted("r1")

    other.cancel()
    await asyncio.sleep(0)
    assert abandoned == ["r1"]


async def test_a_request_that_was_answered_is_not_abandoned() -> None:
    abandoned: list[str] = []
    router = ResponseRouter(abandoned.append)
    router.register("r1")
    router.resolve("r1", a_response())
    await asyncio.sleep(0)

    assert abandoned == []


async def test_after_close_nobody_waits() -> None:
    router = ResponseRouter()
    futures = [router.register(str(n)) for n in range(5)]

    assert router.close(GatewayClosed) == 5
    found = await asyncio.gather(*futures, return_exceptions=True)

    assert [str(one) for one in found] == ["0", "1", "2", "3", "4"]
    assert router.pending() == []


async def test_an_error_that_nobody_asks_for_makes_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    router = ResponseRouter()
    router.register("r1")
    with caplog.at_level(logging.ERROR):
        router.resolve_error("r1", ServerFault("busy"))
        await asyncio.sleep(0)
        gc.collect()

    assert caplog.records == []


async def test_cancelling_by_id_cancels_every_future() -> None:
    router = ResponseRouter()
    futures = [router.register("r1") for _ in range(2)]

    assert router.cancel("r1")
    assert not router.cancel("nobody")
    assert all(future.cancelled() for future in futures)
