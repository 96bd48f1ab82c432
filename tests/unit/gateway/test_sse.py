from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from redrive.gateway.sse import EventReader, ServerEvent

STREAM = (
    ": keep alive\n\nevent: ping\n\ndata: one\n\r\nevent: two\r\ndata: a\r\ndata:b\r\nid: 7\r\n\r\n"
    "data: größe\n\ndata: cut"
).encode()
EVENTS = [ServerEvent("", "one"), ServerEvent("two", "a\nb"), ServerEvent("", "größe")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_events_are_put_together_wherever_the_bytes_were_cut(cuts: list[int]) -> None:
    reader = EventReader()
    places = [0, *sorted(cuts), len(STREAM)]

    found = [event for a, b in pairwise(places) for event in reader.feed(STREAM[a:b])]

    assert found == EVENTS
