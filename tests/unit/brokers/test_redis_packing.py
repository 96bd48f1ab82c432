"""Commands as bytes: what our own packing makes of them is what the client library makes of them."""

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.brokers.redis.wire import Value, pack

VALUES = st.one_of(st.binary(max_size=50), st.text(max_size=20), st.integers(), st.floats())


@given(st.lists(VALUES, min_size=1, max_size=20))
def test_a_command_is_packed_as_the_client_does(command: list[Value]) -> None:
    assert pack(command) == hiredis.pack_command(tuple(command))  # type: ignore[arg-type] # of any length


@pytest.mark.parametrize("size", [0, 1, 9, 10, 4095, 4096, 100_000])
def test_a_part_of_any_size_is_packed_whole_the_second_time_too(size: int) -> None:
    part = b"x" * size
    for _ in range(2):
        assert pack(("SET", part)) == b"*2\r\n$3\r\nSET\r\n$%d\r\n%b\r\n" % (size, part)
