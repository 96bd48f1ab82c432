"""Values as databases keep them, many at once."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from redrive.stores.exact import all_escaped, all_microseconds, escaped, microseconds

AT = datetime(2030, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
ELSEWHERE = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))


def test_many_instants_are_kept_as_one_is_also_where_some_are_none() -> None:
    instants = [AT, ELSEWHERE, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]

    assert [*all_microseconds(instants)] == [microseconds(at) for at in instants]
    assert [*all_microseconds([AT, None])] == [microseconds(AT), None]
    assert [*all_microseconds([])] == []


@given(st.lists(st.none() | st.text() | st.sampled_from(["\x00", "\ud800", "für", "\ufdd0x"])))
def test_many_texts_are_kept_as_one_is(texts: list[str | None]) -> None:
    assert [*all_escaped(texts)] == [None if text is None else escaped(text) for text in texts]
