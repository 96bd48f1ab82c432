from datetime import timedelta

import pytest

from redrive.brokers.nats.address import Address, Terms
from redrive.core.errors import ConfigError
from redrive.wiring import connect


def test_a_plain_url_has_the_usual_port_and_terms() -> None:
    assert Address.of("nats://one,two:5222") == Address(("nats://one:4222", "nats://two:5222"), Terms(), {})


def test_user_token_and_credentials_go_to_the_client() -> None:
    assert Address.of("nats://shop:a%2Fb@host").options == {"user": "shop", "password": "a/b"}
    assert Address.of("tls://secret@host").options == {"token": "secret"}
    assert Address.of("nats://host?credentials=/etc/shop.creds").options == {"user_credentials": "/etc/shop.creds"}


def test_the_terms_of_a_dlq_stand_in_the_url() -> None:
    terms = Address.of(
        "nats://host?replicas=3&dlq.strict=true&dlq.window=2h&dlq.max_age=30d&dlq.max_bytes=1000&dlq.max_msgs=10"
    ).terms

    assert terms == Terms(
        replicas=3,
        strict=True,
        window=timedelta(hours=2),
        max_age=timedelta(days=30),
        max_bytes=1000,
        max_msgs=10,
    )


def test_every_mistake_is_reported_at_once_and_no_password_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        Address.of("nats://shop:geheim@host/path?replicas=0&dlq.strict=yes&dlq.window=soon&colour=red")

    assert len(caught.value.mistakes) == 5
    assert "geheim" not in str(caught.value)


def test_letters_that_are_kept_more_briefly_than_they_are_known_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"dlq\.max_age"):
        Address.of("nats://host?dlq.max_age=1m")


@pytest.mark.parametrize("url", ["nats://localhost", "tls://localhost"])
def test_both_schemes_lead_to_the_broker(url: str) -> None:
    assert connect(url).name == "nats"
