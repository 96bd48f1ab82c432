import pytest

from redrive.brokers.names import LONGEST, check_names
from redrive.core.errors import ConfigError


@pytest.mark.parametrize("name", ["orders", "orders.eu", "a:b", "a/b", "_x", "0", "orders-v2.dlq", "x" * LONGEST])
def test_ordinary_names_are_welcome(name: str) -> None:
    check_names(queue=name, group=name)


@pytest.mark.parametrize("name", ["{orders}", "{shop}orders", "shop:{orders}.eu"])
def test_one_part_of_a_queue_may_stand_in_braces(name: str) -> None:
    check_names(queue=name)
    with pytest.raises(ConfigError, match="group: expected"):
        check_names(queue="orders", group=name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "a b", "a\n", "-a", ".a", "~a", "a..b", "a*", "grüß", "x" * (LONGEST + 1)),
        *("{}", "a{}", "{a}{b}", "{{a}}", "{.a}", "{a", "a}"),
    ],
)
def test_other_names_are_refused_with_what_was_expected(name: str) -> None:
    with pytest.raises(ConfigError, match="queue: expected"):
        check_names(queue=name)


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        check_names(queue="", group="~")

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == ["queue", "group"]
