import pytest

from redrive.brokers.redis.keys import GroupKeys, QueueKeys, has_tag, tag_of


def keys_of(queue: str) -> list[str]:
    keys = QueueKeys(queue).group("shop")
    return [keys.meta, keys.delayed, keys.delayed_messages, keys.once_letter("a:0"), keys.once_back("a:1"), *own(keys)]


def own(keys: GroupKeys) -> tuple[str, ...]:
    return keys.all_own


@pytest.mark.parametrize("queue", ["orders", "orders:eu", "{orders}", "{shop}orders", "shop.{orders}:eu"])
def test_everything_of_a_queue_has_the_tag_that_decides_about_its_slot(queue: str) -> None:
    assert {tag_of(key) for key in keys_of(queue)} == {tag_of(queue)}


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("orders", "orders"),
        ("{orders}", "orders"),
        ("a{b}c{d}", "b"),
        ("{}a", "{}a"),
        ("a{b", "a{b"),
        ("{}{a}", "{}{a}"),
    ],
)
def test_the_tag_is_the_first_pair_of_braces_that_holds_something(name: str, tag: str) -> None:
    assert tag_of(name) == tag
    assert has_tag(name) == (tag != name)


def test_no_two_queues_or_groups_share_a_key() -> None:
    queues = ["orders", "{orders}", "orders:redrive", "{orders}:redrive"]
    groups = ["shop", "delayed", "delayed:messages", "shop:lane", "lane", "due"]
    shared = [key for queue in queues for key in keys_of(queue)[:5]]
    private = [key for queue in queues for group in groups for key in own(QueueKeys(queue).group(group))]

    every = [*queues, *shared, *private]
    assert len(set(every) - {"{orders}:redrive"}) == len(every) - every.count("{orders}:redrive")
