from typing import Any

import pytest

from redrive.core.errors import ConfigError
from redrive.core.place import DeadLetterPlace, named, queue_of


@pytest.mark.parametrize(
    ("name", "dlq"),
    [
        (None, "orders.dlq"),
        ("dead", "dead"),
        ("q", "q"),
        ("{queue}.failed", "orders.failed"),
        ("x:{queue}", "x:orders"),
        ("{{queue}}:dead", "{orders}:dead"),
        ("{shop}dead", "{shop}dead"),
    ],
)
def test_the_name_is_the_default_a_pattern_or_fixed(name: str | None, dlq: str) -> None:
    assert DeadLetterPlace(name=name).dlq_of("orders", default="{queue}.dlq") == dlq


@pytest.mark.parametrize("pattern", ["{queue}.dlq", "{queue}:dlq", "dead/{queue}", "{{queue}}:dlq"])
def test_a_name_made_by_a_pattern_tells_its_queue(pattern: str) -> None:
    for queue in ("orders", "orders.dlq", "dlq"):
        assert queue_of(pattern, named(pattern, queue)) == queue


@pytest.mark.parametrize("queue", ["{shop}orders", "shop.{orders}"])
def test_a_queue_with_braces_of_its_own_gets_no_second_pair(queue: str) -> None:
    assert named("{{queue}}:dlq", queue) == f"{queue}:dlq"
    assert queue_of("{{queue}}:dlq", f"{queue}:dlq") == queue


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("{queue}.dlq", "orders"), ("{queue}.dlq", ".dlq"), ("{queue}.dlq", "orders:dlq"), ("dead", "dead")],
)
def test_a_name_of_another_form_tells_no_queue(pattern: str, name: str) -> None:
    assert queue_of(pattern, name) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"enabled": False},
        {"off": "hold"},
        {"enabled": False, "off": "forget"},
        {"on_failure": "forget"},
        {"name": ""},
        {"name": "{queue}"},
        {"name": "{topic}.dlq"},
        {"name": "{a}{b}"},
        {"name": "a b"},
        {"name": "a\n"},
    ],
)
def test_a_place_that_cannot_work_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^dlq\."):
        DeadLetterPlace(**settings)


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        DeadLetterPlace(name="{queue}", enabled=False, on_failure="forget")  # type: ignore[arg-type]

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == ["dlq.off", "dlq.on_failure", "dlq.name"]


@pytest.mark.parametrize("off", ["hold", "drop"])
def test_a_dlq_can_be_off_on_purpose(off: Any) -> None:
    assert DeadLetterPlace(enabled=False, off=off).off == off
