import pytest

from redrive.brokers.redis.traits import LARGEST_FIELD, Traits, look
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.errors import BrokerError


class FakeWire(Wire):
    """Answers what it was given."""

    def __init__(self, *answers: object) -> None:
        self._answers = answers

    async def calls(self, _commands: object) -> list[object]:
        return [*self._answers]


def told(version: str, *settings: Value) -> FakeWire:
    return FakeWire(f"# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\n".encode(), [*settings])


async def test_a_server_tells_its_version_and_how_large_a_field_may_be() -> None:
    wire = told("7.0.15", b"proto-max-bulk-len", b"1048576")

    assert await look(wire) == Traits((7, 0), 1_048_576)


async def test_a_server_that_does_not_tell_is_given_the_benefit_of_the_doubt() -> None:
    wire = FakeWire(RuntimeError("NOPERM"), RuntimeError("NOPERM"))

    assert await look(wire) == Traits((), LARGEST_FIELD)


@pytest.mark.parametrize("version", ["6.2.5", "5.0.14"])
async def test_a_server_that_is_too_old_is_refused(version: str) -> None:
    with pytest.raises(BrokerError, match=r"expected Redis 7\.0 or later, got " + version[:3]):
        await look(told(version))
