import asyncio
import errno
import http.client
import json
import socket
import ssl
import urllib.error
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.core.classify import Classified, Classifier, unwrap
from redrive.core.errors import BrokerUnavailable, ConfigError
from redrive.core.outcome import GiveUp, RetryLater

RULES = Classifier()


class Carrier(Exception):
    """An exception that carries an HTTP status, and maybe more."""

    def __init__(self, status: int, **attributes: Any) -> None:
        super().__init__("carrier")
        self.status = status
        for name, value in attributes.items():
            setattr(self, name, value)


class OrderRefused(ValueError): ...


class OrderRefusedForNow(OrderRefused): ...


def raised_from(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def raised_while_handling(error: BaseException, cause: BaseException) -> BaseException:
    error.__context__ = cause
    return error


def foreign(module: str, *names: str) -> Exception:
    """An exception whose classes are named as in a library that is not installed: the root first."""
    kind: type[Exception] = Exception
    for name in names:
        kind = type(name, (kind,), {"__module__": module})
    return kind("foreign")


def answers(known: Classified) -> tuple[bool, bool]:
    return known.retry, known.transient


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 529, 599])
def test_a_status_that_may_pass_is_retried_and_transient(status: int) -> None:
    known = RULES(Carrier(status))

    assert answers(known) == (True, True)
    assert known.why == f"HTTP {status}"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 413, 422, 451])
def test_any_other_4xx_is_permanent(status: int) -> None:
    assert answers(RULES(Carrier(status))) == (False, False)


def test_a_conflict_is_retried_but_is_no_sign_of_an_outage() -> None:
    assert answers(RULES(Carrier(409))) == (True, False)


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached", "billing_error"])
def test_a_code_about_money_is_permanent_whatever_the_status(code: str) -> None:
    known = RULES(Carrier(429, code=code, response=SimpleNamespace(headers={"retry-after": "1"})))

    assert answers(known) == (False, False)
    assert known.why == f"code {code}"


def test_a_rate_limit_code_is_not_about_money() -> None:
    assert RULES(Carrier(429, code="rate_limit_exceeded")).retry


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        BrokenPipeError(),
        TimeoutError(),
        asyncio.IncompleteReadError(b"", 5),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        ssl.SSLError(),
        ssl.SSLCertVerificationError(),
        http.client.IncompleteRead(b""),
        urllib.error.URLError("unreachable"),
        OSError(errno.ENETUNREACH, "unreachable"),
        OSError(errno.EHOSTUNREACH, "unreachable"),
        BrokerUnavailable(),
        foreign("httpx", "HTTPError", "RequestError", "TransportError", "TimeoutException", "PoolTimeout"),
        foreign("httpx", "HTTPError", "RequestError", "TransportError", "NetworkError", "ConnectError"),
        foreign("httpx", "HTTPError", "RequestError", "TransportError", "ProtocolError", "RemoteProtocolError"),
        foreign("aiohttp.client_exceptions", "ClientError", "ClientConnectionError", "ServerDisconnectedError"),
        foreign("aiohttp.client_exceptions", "ClientError", "ClientPayloadError"),
        foreign("redis.exceptions", "RedisError", "ConnectionError", "BusyLoadingError"),
        foreign("redis.exceptions", "RedisError", "TimeoutError"),
        foreign("redis.exceptions", "RedisError", "ResponseError", "ReadOnlyError"),
        foreign("requests.exceptions", "RequestException", "Timeout", "ReadTimeout"),
        foreign("psycopg", "Error", "DatabaseError", "OperationalError", "ConnectionTimeout"),
        foreign("asyncpg.exceptions", "PostgresError", "PostgresConnectionError", "ConnectionFailureError"),
        foreign("pymongo.errors", "PyMongoError", "ConnectionFailure", "AutoReconnect", "NotPrimaryError"),
        foreign("botocore.exceptions", "BotoCoreError", "ConnectionError", "EndpointConnectionError"),
        foreign("sqlalchemy.exc", "SQLAlchemyError", "TimeoutError"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__qualname__} {error}",
)
def test_an_error_of_the_network_is_known_by_its_name(error: Exception) -> None:
    assert RULES(error) == Classified(retry=True, transient=True, told=None, why="a network error")


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        FileNotFoundError(errno.ENOENT, "no file"),
        json.JSONDecodeError("cut off", "", 0),
        foreign("redis.exceptions", "RedisError", "DataError"),
        foreign("psycopg", "Error", "DatabaseError", "DataError"),
        foreign("shop.errors", "ConnectionError"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_no_rule_names_is_retried_but_is_no_sign_of_an_outage(error: Exception) -> None:
    assert RULES(error) == Classified(retry=True, transient=False, told=None, why="no rule names it")


def test_what_the_user_names_as_retryable_is_a_sign_of_an_outage() -> None:
    assert answers(Classifier(retryable=[OrderRefused])(OrderRefusedForNow())) == (True, True)


def test_an_outage_is_known_by_what_an_exception_was_raised_from() -> None:
    assert answers(RULES(raised_from(OrderRefused(), ConnectionResetError()))) == (True, True)
    assert answers(RULES(raised_while_handling(OrderRefused(), Carrier(503)))) == (True, True)


def test_a_named_type_covers_its_subclasses() -> None:
    rules = Classifier(permanent=[ValueError])

    assert answers(rules(OrderRefused())) == (False, False)
    assert rules(OrderRefused()).why == "ValueError is permanent"


def test_the_nearest_class_wins_whichever_list_names_it() -> None:
    assert Classifier(permanent=[ValueError], retryable=[OrderRefusedForNow])(OrderRefusedForNow()).retry
    assert not Classifier(retryable=[Exception], permanent=[OrderRefused])(OrderRefusedForNow()).retry


def test_the_outermost_exception_that_a_rule_knows_decides() -> None:
    rules = Classifier(permanent=[KeyError], retryable=[OrderRefused])

    assert not rules(raised_from(RuntimeError(), KeyError())).retry
    assert not rules(raised_while_handling(RuntimeError(), KeyError())).retry
    assert rules(raised_from(OrderRefused(), KeyError())).retry
    assert RULES(raised_while_handling(TimeoutError(), Carrier(404))).retry
    assert not RULES(raised_from(RuntimeError(), Carrier(404))).retry


def test_a_suppressed_context_does_not_decide() -> None:
    error = raised_while_handling(RuntimeError(), Carrier(404))
    error.__suppress_context__ = True

    assert RULES(error).retry


def test_a_rule_of_the_user_goes_before_what_is_built_in() -> None:
    assert Classifier(retryable=[Carrier])(Carrier(404)).retry
    assert not Classifier(permanent=[TimeoutError])(TimeoutError()).retry


def test_a_function_may_be_a_rule() -> None:
    rules = Classifier(
        permanent=[lambda error: "deleted" in str(error)], retryable=[lambda error: "locked" in str(error)]
    )

    assert rules(ValueError("row deleted")).why == "a rule calls it permanent"
    assert rules(raised_from(ValueError("wrapped"), ValueError("row locked"))).why == "a rule calls it retryable"
    assert rules(ValueError("other")).why == "no rule names it"


def test_a_function_that_raises_has_not_said_yes() -> None:
    rules = Classifier(permanent=[lambda error: error.args[0] == "deleted"])

    assert rules(ValueError()).retry
    assert not rules(ValueError("deleted")).retry


def test_a_told_delay_is_found_along_the_causes() -> None:
    limited = Carrier(429, response=SimpleNamespace(headers={"Retry-After": "2.5"}))
    known = RULES(raised_from(RuntimeError(), limited))

    assert known.why == "HTTP 429"
    assert known.told is not None
    assert known.told.total_seconds() == 2.5


def test_give_up_is_not_retried_even_from_a_task_group() -> None:
    error = GiveUp("no customer")

    assert answers(RULES(error)) == (False, False)
    assert answers(RULES(ExceptionGroup("tasks", [error]))) == (False, False)
    assert answers(RULES(ExceptionGroup("tasks", [TimeoutError(), error]))) == (False, False)


def test_a_group_stands_for_its_only_member_at_any_depth() -> None:
    one, two = ValueError(), KeyError()
    both = ExceptionGroup("both", [one, two])
    deep: ExceptionGroup[Exception] = ExceptionGroup("inner", [one])
    for _ in range(5000):
        deep = ExceptionGroup("outer", [deep])

    assert unwrap(deep) is one
    assert unwrap(both) is both
    assert unwrap(two) is two


def test_a_member_raised_again_while_its_group_is_handled_is_no_endless_loop() -> None:
    error = RetryLater(5)
    raised_while_handling(error, ExceptionGroup("tasks", [error]))

    assert answers(RULES(error)) == (True, False)


def test_a_group_of_several_is_known_by_its_first_known_member() -> None:
    assert RULES(ExceptionGroup("tasks", [ValueError(), Carrier(404), TimeoutError()])).why == "HTTP 404"


def test_retry_later_is_retried_whatever_the_rules_say() -> None:
    known = Classifier(permanent=[Exception])(RetryLater(5))

    assert answers(known) == (True, False)
    assert known.told is not None
    assert known.told.total_seconds() == 5


def test_retry_later_while_handling_an_outage_is_a_sign_of_that_outage() -> None:
    assert answers(RULES(raised_while_handling(RetryLater(5), TimeoutError()))) == (True, True)
    assert answers(RULES(raised_from(RetryLater(5), Carrier(404)))) == (True, False)


def test_retry_later_without_a_delay_takes_the_one_its_cause_was_told() -> None:
    limited = Carrier(429, retry_after=7)

    first, second = RULES(raised_from(RetryLater(), limited)), RULES(raised_from(RetryLater(60), limited))

    assert first.told is not None
    assert second.told is not None
    assert (first.told.total_seconds(), second.told.total_seconds()) == (7, 60)


def test_every_mistake_in_the_rules_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Classifier(permanent=[str, KeyError, "ValueError"], retryable=[KeyError])  # type: ignore[list-item]

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == [
        "permanent[0]",
        "permanent[2]",
        "retryable",
    ]


@pytest.mark.parametrize("rules", [ValueError, "KeyError", None])
def test_rules_are_a_list(rules: Any) -> None:
    with pytest.raises(ConfigError, match="permanent: expected a list of exception types and functions"):
        Classifier(permanent=rules)


def test_a_classifier_is_a_value() -> None:
    assert Classifier(permanent=[KeyError]) == Classifier(permanent=(KeyError,))
    assert hash(Classifier()) == hash(RULES)
