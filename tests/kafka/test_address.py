"""What a URL says."""

import pytest

from redrive.brokers.kafka.address import Address
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


@pytest.mark.parametrize("url", ["kafka://", "kafka:///orders", "redis://a"])
def test_a_url_without_a_broker_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Address.of(url)


def test_a_kafka_url_is_a_broker_called_kafka() -> None:
    assert connect("kafka://nowhere:1").name == "kafka"
    assert connect("kafka://nowhere:1", name="shop").name == "shop"
