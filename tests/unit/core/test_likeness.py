from datetime import UTC, datetime, timedelta

from redrive.core.likeness import Likeness, in_common
from tests.unit.core.letters import a_letter


def letters(*payloads: str, **changes: str) -> list:  # type: ignore[type-arg]
    return [a_letter(payload.encode(), **changes) for payload in payloads]


def test_what_most_letters_share_is_found_in_fields_context_and_payload() -> None:
    alike = in_common(letters(*[f'{{"country": "DE", "order": {n}}}' for n in range(10)], app_version="4f2c"))

    assert Likeness("payload.country", "DE", 10, 10) in alike
    assert Likeness("app_version", "4f2c", 10, 10) in alike
    assert not any(one.field == "payload.order" for one in alike)


def test_nine_of_ten_are_enough_and_come_after_ten_of_ten() -> None:
    alike = in_common(letters(*['{"country": "DE"}'] * 9, '{"country": "FR"}'))

    assert alike[-1] == Likeness("payload.country", "DE", 9, 10)


def test_letters_that_died_in_the_same_hour_have_it_in_common() -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    together = [a_letter(b"{}", failed_at=noon + timedelta(minutes=minutes)) for minutes in (0, 30, 59)]
    apart = [*together, a_letter(b"{}", failed_at=noon + timedelta(hours=1))]

    assert Likeness("hour", "2030-01-01 12:00 UTC", 3, 3) in in_common(together)
    assert not any(one.field == "hour" for one in in_common(apart))


def test_one_letter_has_nothing_in_common() -> None:
    assert in_common(letters('{"a": 1}')) == []


def test_a_payload_that_is_no_json_object_is_no_obstacle() -> None:
    alike = in_common(letters("[1]", "\udc00".encode("utf-8", "surrogatepass").decode("latin-1"), "[" * 10_000))

    assert Likeness("queue", "orders", 3, 3) in alike
