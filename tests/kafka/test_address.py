"""What a URL says."""

from datetime import timedelta

import pytest

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.membership import Membership
from redrive.clock import SystemClock
from redrive.core.errors import ConfigError
from redrive.wiring import connect


def test_hosts_have_kafkas_port_unless_they_say_otherwise() -> None:
    assert Address.of("kafka://a,b:9093").servers == "a:9092,b:9093"


def test_a_user_is_one_of_sasl_over_tls() -> None:
    settings = Address.of("kafka://shop:s%40cret@a").of_producer()

    assert settings["sasl.username"] == "shop"
    assert settings["sasl.password"] == "s@cret"
    assert (settings["security.protocol"], settings["sasl.mechanisms"]) == ("SASL_SSL", "PLAIN")


def test_settings_go_to_the_client_that_knows_them() -> None:
    address = Address.of("kafka://a?session.timeout.ms=7000&linger.ms=5&ssl.ca.location=/ca.pem")

    assert "linger.ms" not in address.of_consumer()
    assert "session.timeout.ms" not in address.of_producer()
    assert address.of_all()["ssl.ca.location"] == "/ca.pem"


def test_every_mistake_is_told_at_once_and_the_password_is_not() -> None:
    with pytest.raises(ConfigError) as caught:
        Address.of("kafka://u:s3cret@a/path?isolation.level=read_uncommitted&partitions=none&colour=red")

    assert len(caught.value.mistakes) == 4
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "setting",
    [
        "partition.assignment.strategy=range",
        "group.protocol=consumer",
        "group.instance.id=one",
        "transaction.timeout.ms=1000",
        "acks=1",
    ],
)
def test_a_setting_on_which_the_promises_stand_is_refused_by_its_name(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting.partition('=')[0]} is set by Redrive"):
        Address.of(f"kafka://a?{setting}")


@pytest.mark.parametrize(("asked", "given"), [("", 60_000), ("5000", 5000), ("90000", 60_000), ("0", 60_000)])
def test_no_message_of_a_transaction_is_tried_for_longer_than_the_transaction(asked: str, given: int) -> None:
    address = Address.of(f"kafka://a?message.timeout.ms={asked}" if asked else "kafka://a")

    assert address.of_transactions("me", timeout=60.0)["message.timeout.ms"] == given


async def test_the_name_that_the_url_gives_a_client_stands_before_the_name_of_the_process(queue: str) -> None:
    broker = KafkaBroker("kafka://nowhere:1?client.id=shop", clock=SystemClock())
    membership = Membership(broker._office, queue=queue, group="shop", life="", lease=timedelta(seconds=30))  # noqa: SLF001

    assert [each._settings["client.id"] for each in membership._intakes] == [f"shop-{membership.identity}"] * 2  # noqa: SLF001
    membership.close()
    await broker.aclose()


@pytest.mark.parametrize("url", ["kafka://", "kafka:///orders", "redis://a"])
def test_a_url_without_a_broker_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Address.of(url)


def test_a_kafka_url_is_a_broker_called_kafka() -> None:
    assert connect("kafka://nowhere:1").name == "kafka"
    assert connect("kafka://nowhere:1", name="shop").name == "shop"
