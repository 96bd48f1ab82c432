import pytest
from redis import exceptions as redis
from redis._parsers.base import BaseParser
from redis.asyncio.sentinel import MasterNotFoundError

from redrive.brokers.redis.errors import _FOR_NOW, _REFUSED, code_of, translate
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, QueueNotFound

ANSWERS = {
    "LOADING": "Redis is loading the dataset in memory",
    "BUSY": "Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "READONLY": "You can't write against a read only replica.",
    "MASTERDOWN": "Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS": "Not enough good replicas to write.",
    "MISCONF": "Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "OOM": "command not allowed when used memory > 'maxmemory'.",
    "CLUSTERDOWN": "The cluster is down",
    "TRYAGAIN": "Multiple keys request during rehashing of slot",
    "MOVED": "3999 127.0.0.1:6381",
    "ASK": "3999 127.0.0.1:6381",
    "NOGROUP": "No such key 'orders' or consumer group 'shop' in XREADGROUP with GROUP option",
    "UNBLOCKED": "the stream key no longer exists",
    "NOAUTH": "Authentication required.",
    "WRONGPASS": "invalid username-password pair or user is disabled.",
    "NOPERM": "User shop has no permissions to run the 'xadd' command",
    "WRONGTYPE": "Operation against a key holding the wrong kind of value",
}


def parsed(answer: str) -> Exception:
    """The exception that redis-py makes of an answer."""
    error: Exception = BaseParser.parse_error(answer)  # type: ignore[no-untyped-call]
    return error


def test_every_answer_that_we_know_is_tried() -> None:
    assert set(ANSWERS) == set(_FOR_NOW) | set(_REFUSED)


@pytest.mark.parametrize("code", ANSWERS)
def test_an_answer_is_known_by_its_first_word(code: str) -> None:
    assert code_of(parsed(f"{code} {ANSWERS[code]}")) == code


@pytest.mark.parametrize("code", [code for code in ANSWERS if code not in ("MOVED", "ASK")])
def test_an_answer_is_known_when_a_script_passes_it_on(code: str) -> None:
    told = f"{code} {ANSWERS[code]} script: 7503320b441e58fa6e7b87a3bcd6c39313ed933f, on @user_script:2."

    assert code_of(parsed(told)) == code


@pytest.mark.parametrize("code", _FOR_NOW)
def test_what_passes_is_unavailable_with_the_reason_in_plain_words(code: str) -> None:
    ours = translate(parsed(f"{code} {ANSWERS[code]}"))

    assert isinstance(ours, BrokerUnavailable)
    assert _FOR_NOW[code] in str(ours)
    assert isinstance(ours.__cause__, redis.RedisError)


@pytest.mark.parametrize("code", _REFUSED)
def test_what_does_not_pass_by_itself_is_an_error(code: str) -> None:
    ours = translate(parsed(f"{code} {ANSWERS[code]}"))

    assert type(ours) is BrokerError
    assert _REFUSED[code] in str(ours)


def test_a_group_that_is_there_already_is_no_reason_to_wait() -> None:
    assert type(translate(parsed("BUSYGROUP Consumer Group name already exists"))) is BrokerError


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("Connection closed by server."),
        redis.TimeoutError("Timeout reading from socket"),
        ConnectionRefusedError(111, "refused"),
        TimeoutError(),
        redis.RedisClusterException("Redis Cluster cannot be connected."),
    ],
)
def test_a_server_that_says_nothing_is_unavailable(error: Exception) -> None:
    assert isinstance(translate(error), BrokerUnavailable)


def test_other_answers_have_their_own_errors() -> None:
    assert isinstance(translate(parsed("ERR no such key")), QueueNotFound)
    assert isinstance(translate(parsed("CROSSSLOT Keys in request don't hash to the same slot")), ConfigError)
    assert type(translate(parsed("ERR Invalid stream ID specified as stream command argument"))) is BrokerError


def test_a_password_for_a_server_that_has_none_is_no_silent_server() -> None:
    ours = translate(redis.AuthenticationError("AUTH <password> called without any password configured"))

    assert not isinstance(ours, BrokerUnavailable)
    assert "does not accept this user and password" in str(ours)


def test_a_primary_that_no_sentinel_knows_is_told_without_the_objects_of_the_client() -> None:
    ours = translate(MasterNotFoundError("No master found for 'main' : <redis.asyncio.client.Redis(…)> - network:…"))

    assert isinstance(ours, BrokerUnavailable)
    assert str(ours).endswith("(No master found for 'main')")


def test_whatever_is_not_of_redis_stays_what_it_is() -> None:
    ours, theirs = BrokerUnavailable("away"), ValueError("no")

    assert (translate(ours), translate(theirs)) == (ours, theirs)
