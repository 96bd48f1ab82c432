"""What AMQP cannot carry as it is: many headers, long names, more than a frame takes."""

import pytest

from redrive.brokers.rabbitmq.grid import GRID, LONGEST, rounded, step_of
from redrive.core.duration import as_duration
from redrive.core.message import Headers, Message
from redrive.core.outcome import RetryLater, Settlement
from tests.rabbitmq.conftest import Scene


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param((("n" * 200, b"1"),), id="a name longer than a table takes"),
        pytest.param((("x-death", b"not the server's"),), id="a name of the server"),
        pytest.param((("b", b"1"), ("a", b"2"), ("b", b"3")), id="an order, and a name that stands twice"),
        pytest.param((("large", b"v" * 90_000),), id="nearly a frame"),
        pytest.param((("large", b"v" * 200_000), ("more", b"\xff" * 200_000)), id="more than a frame"),
    ],
)
async def test_headers_arrive_byte_for_byte_whatever_the_protocol_takes(scene: Scene, headers: Headers) -> None:
    worker = await scene.worker()
    await scene.broker.publish(scene.queue, [Message("", scene.queue, b"body", headers, b"key")])
    message = (await scene.take(worker)).message

    assert (message.body, message.headers, message.key) == (b"body", headers, b"key")


@pytest.mark.parametrize("headers", [(), (("large", b"v" * 90_000),)])
async def test_a_key_larger_than_a_frame_arrives_and_comes_again_byte_for_byte(scene: Scene, headers: Headers) -> None:
    worker = await scene.worker()
    await scene.broker.publish(scene.queue, [Message("", scene.queue, b"body", headers, b"k" * 200_000)])
    first = await scene.take(worker)
    await worker.settle([Settlement(first, RetryLater(0))])
    again = await scene.take(worker)

    assert (first.message.body, first.message.headers, first.message.key) == (b"body", headers, b"k" * 200_000)
    assert (again.message, again.failures) == (first.message, 1)


def test_a_delay_is_rounded_up_to_the_grid_and_never_down() -> None:
    assert [rounded(step) for step in GRID] == list(GRID)
    assert rounded(as_duration(61)) == as_duration(120)
    assert rounded(as_duration("8d")) == as_duration("8d")
    assert step_of(as_duration("8d")) == LONGEST
    assert list(GRID) == sorted(GRID)
