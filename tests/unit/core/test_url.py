import pytest

from redrive.core.url import mask_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://shop:s3cret@cache:6379/0", "redis://shop:***@cache:6379/0"),
        ("redis://:s3cret@cache", "redis://:***@cache"),
        ("nats://t0ken@host:4222", "nats://***@host:4222"),
        ("amqp://shop:p@ss/w:rd@host/vhost", "amqp://shop:***@host/vhost"),
        (
            "postgresql://db/letters?sslPassword=s3cret&app=shop",
            "postgresql://db/letters?sslPassword=***&app=shop",
        ),
        ("http://gateway/v1?api_key=s3cret", "http://gateway/v1?api_key=***"),
        ("'redis://a:b@one', 'redis://c:d@two'", "'redis://a:***@one', 'redis://c:***@two'"),
        ("sqlite:///orders.db", "sqlite:///orders.db"),
        ("http://host/path?mail=a@b.example", "http://host/path?mail=a@b.example"),
        ("write to shop@example.com", "write to shop@example.com"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert mask_url(url) == shown
