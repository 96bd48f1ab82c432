import pytest

from redrive.brokers.redis.address import SCHEMES, Address, Durability
from redrive.core.errors import ConfigError
from redrive.wiring.counting import REDIS_SCHEMES


def test_the_wiring_knows_every_scheme() -> None:
    assert set(REDIS_SCHEMES) == set(SCHEMES)


@pytest.mark.parametrize(
    "url", ["redis://localhost", "rediss://shop:s3cret@cache:6380/2?ssl_cert_reqs=none", "unix:///run/redis.sock?db=1"]
)
def test_the_url_of_one_server_is_left_to_the_client(url: str) -> None:
    address = Address.of(url)

    assert (address.url, address.is_cluster, address.hosts) == (url, False, ())
    assert (address.payload, address.durability) == (b"payload", Durability())


def test_our_own_options_are_taken_out_of_the_url() -> None:
    address = Address.of("redis://localhost/3?payload=data&durability=wait:2&socket_connect_timeout=1")

    assert address.url == "redis://localhost/3?socket_connect_timeout=1"
    assert (address.payload, address.durability) == (b"data", Durability(2))


@pytest.mark.parametrize(
    ("text", "durability"),
    [("local", Durability()), ("wait:1", Durability(1)), ("wait:3", Durability(3))],
)
def test_durability_says_how_many_replicas_must_have_it(text: str, durability: Durability) -> None:
    assert Durability.of(text) == durability


@pytest.mark.parametrize("text", ["", "wait", "wait:", "wait:0", "wait:-1", "wait:two", "fsync:1", "local:1"])
def test_another_durability_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="durability: expected"):
        Durability.of(text)


def test_waiting_for_disks_is_refused_because_nobody_has_tried_it() -> None:
    with pytest.raises(ConfigError, match="waitaof has not been tried on a server that knows it: use wait:1"):
        Address.of("redis://localhost?durability=waitaof:1")


def test_sentinels_are_named_with_the_primary_and_the_database() -> None:
    address = Address.of("redis+sentinel://shop:s3%40cret@one,[::1]:5000/primary/2?sentinel_password=x")

    assert address.hosts == (("one", 26379), ("::1", 5000))
    assert (address.primary, address.is_cluster) == ("primary", False)
    assert address.options == {"username": "shop", "password": "s3@cret", "db": 2, "sentinel_password": "x"}


def test_a_cluster_is_named_by_some_of_its_hosts() -> None:
    address = Address.of("redis+cluster://:s3cret@one:7000,two,[::1]")

    assert (address.hosts, address.is_cluster) == ((("one", 7000), ("two", 6379), ("::1", 6379)), True)
    assert address.options == {"password": "s3cret"}


def test_options_of_sentinels_and_clusters_are_understood_as_those_of_a_server() -> None:
    address = Address.of("redis+cluster://one?socket_connect_timeout=1.5&ssl=true&client_name=shop&max_connections=7")

    assert address.options == {"socket_connect_timeout": 1.5, "ssl": True, "client_name": "shop", "max_connections": 7}
    with pytest.raises(ConfigError, match="socket_timeout: not a value"):
        Address.of("redis+sentinel://one/primary?sentinel_socket_timeout=soon")


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Address.of("redis+sentinel://one:x?payload=&durability=wait")

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == [
        *("payload", "durability", "broker", "broker"),
    ]


def test_a_password_is_never_told() -> None:
    with pytest.raises(ConfigError) as caught:
        Address.of("redix://shop:s3cret@host")

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://host/shop", "rediss://host:6379/0/1"])
def test_what_is_no_number_of_a_database_is_not_taken_for_the_first_one(url: str) -> None:
    with pytest.raises(ConfigError, match="broker: expected the number of a database after the host"):
        Address.of(url)


@pytest.mark.parametrize("place", ["redis://host/1", "redis+sentinel://host/main", "redis+cluster://host"])
def test_what_a_url_says_of_how_answers_are_read_is_for_other_clients(place: str) -> None:
    address = Address.of(f"{place}?protocol=3&decode_responses=True&socket_timeout=0.1&client_name=shop")

    assert address.url == f"{place}?client_name=shop"
    assert not {"protocol", "decode_responses", "socket_timeout"} & address.options.keys()
