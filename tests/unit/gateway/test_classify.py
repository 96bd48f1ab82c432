import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.core.classify import Classifier
from redrive.core.errors import (
    AttemptTimeout,
    BadAnswer,
    GatewayError,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerFault,
    TransportFault,
)
from redrive.core.policy import RetryPolicy
from redrive.gateway.classify import read_reply, with_rules
from redrive.gateway.transport import Reply
from redrive.gateway.wire import WIRES, Answer
from tests.unit.gateway.stage import JSON, answer, refusal

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def read(reply: Reply, wire: str = "openai") -> Answer:
    return read_reply(reply, wire=WIRES[wire], now=NOW)


def error_of(reply: Reply, wire: str = "openai") -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        read(reply, wire)
    return caught.value


def is_retried(error: GatewayError) -> bool:
    return with_rules(RetryPolicy()).classify(error).retry


@pytest.mark.parametrize(
    ("status", "kind", "retried"),
    [
        (429, RateLimited, True),
        (408, ServerFault, True),
        (409, ServerFault, True),
        (425, ServerFault, True),
        (500, ServerFault, True),
        (502, ServerFault, True),
        (503, ServerFault, True),
        (529, ServerFault, True),
        (302, RequestRejected, False),
        (400, RequestRejected, False),
        (401, RequestRejected, False),
        (402, QuotaExhausted, False),
        (403, RequestRejected, False),
        (404, RequestRejected, False),
        (413, RequestRejected, False),
        (422, RequestRejected, False),
    ],
)
def test_a_status_is_retried_or_not(status: int, kind: type[GatewayError], retried: bool) -> None:  # noqa: FBT001
    error = error_of(refusal(status))

    assert type(error) is kind
    assert error.status_code == status
    assert is_retried(error) is retried


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached", "billing_error"])
def test_a_429_about_money_is_not_retried(code: str) -> None:
    error = error_of(refusal(429, code, {"x-should-retry": "true"}))

    assert type(error) is QuotaExhausted
    assert error.code == code
    assert not is_retried(error)


def test_the_server_has_the_last_word_about_retrying() -> None:
    assert not is_retried(error_of(refusal(500, headers={"x-should-retry": "false"})))
    assert is_retried(error_of(refusal(400, headers={"x-should-retry": "true"})))


def good(**changes: Any) -> bytes:
    return json.dumps({**json.loads(answer().body), **changes}).encode()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, JSON, b""),
        Reply(200, JSON, answer().body[:-20]),
        Reply(200, JSON, b"[]"),
        Reply(200, JSON, b"null"),
        Reply(200, {"content-type": "text/html"}, b"<html>502 Bad Gateway</html>"),
        Reply(200, {"content-type": "text/plain"}, answer().body),
        Reply(200, JSON, b'{"error": {"type": "overloaded_error", "message": "busy"}}'),
        Reply(200, JSON, b'{"error": "busy", "choices": null}'),
        Reply(200, JSON, b"{}"),
        Reply(200, JSON, good(choices=[])),
        Reply(200, JSON, good(choices=[{"message": None}])),
        Reply(200, JSON, good(choices=[{"message": {"role": "assistant"}}])),
        Reply(200, JSON, b"\xff\xfe"),
        Reply(200, JSON, b"[" * 100_000),
    ],
)
def test_what_is_no_answer_is_transient(reply: Reply) -> None:
    error = error_of(reply)

    assert type(error) is BadAnswer
    assert is_retried(error)
    assert with_rules(RetryPolicy()).classify(error).transient


def test_money_inside_a_success_is_not_retried() -> None:
    error = error_of(Reply(200, JSON, b'{"error": {"code": "insufficient_quota"}}'))

    assert type(error) is QuotaExhausted


def test_the_beginning_of_what_is_no_answer_is_kept_without_secrets() -> None:
    page = b"<html>token=abcdef0123456789 " + b"x" * 10_000
    error = error_of(Reply(200, {"content-type": "text/html"}, page))

    assert isinstance(error, BadAnswer)
    assert error.answer.startswith("<html>token=***")
    assert len(error.answer) <= 2048


def test_an_answer_has_its_text_its_end_and_its_cost() -> None:
    found = read(answer("hello", tokens=(3, 4)))

    assert (found.text, found.finish_reason) == ("hello", "stop")
    assert found.usage is not None
    assert found.usage.total == 7


def test_an_answer_that_only_calls_tools_is_an_answer() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    assert read(Reply(200, JSON, good(choices=[{"message": message}]))).text == ""


def test_strange_usage_is_no_usage() -> None:
    assert read(Reply(200, JSON, good(usage={"prompt_tokens": "many", "completion_tokens": -1}))).usage == (0, 0)
    assert read(Reply(200, JSON, good(usage=None))).usage is None


def test_an_anthropic_answer_is_read() -> None:
    body = {
        "type": "message",
        "content": [{"type": "text", "text": "hel"}, {"type": "tool_use"}, {"type": "text", "text": "lo"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 2, "output_tokens": 3},
    }
    found = read(Reply(200, JSON, json.dumps(body).encode()), "anthropic")

    assert (found.text, found.finish_reason, found.usage) == ("hello", "end_turn", (2, 3))


def test_an_anthropic_error_is_read() -> None:
    body = b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    error = error_of(Reply(529, {**JSON, "request-id": "req_1"}, body), "anthropic")

    assert (type(error), error.code, error.provider_request_id) == (ServerFault, "overloaded_error", "req_1")
    assert type(error_of(Reply(200, JSON, body), "anthropic")) is BadAnswer


def test_a_told_delay_is_on_the_error() -> None:
    assert error_of(refusal(429, headers={"retry-after": "2"})).retry_after == timedelta(seconds=2)
    assert error_of(refusal(503, headers={"retry-after": "2"})).retry_after == timedelta(seconds=2)


@pytest.mark.parametrize("body", [b"", b"no", b"[]", b'{"error": []}', b'{"error": {"message": 5}}', b'{"detail": []}'])
def test_an_error_without_a_word_is_an_error_all_the_same(body: bytes) -> None:
    assert type(error_of(Reply(500, {}, body))) is ServerFault


def test_secrets_in_a_providers_words_are_masked() -> None:
    error = error_of(refusal(401, words="Incorrect API key provided: sk-abcdefghijklmnopqrstuv"))

    assert "abcdefghijklmnop" not in str(error)


def test_the_owner_of_a_policy_knows_better() -> None:
    policy = with_rules(RetryPolicy(classify=Classifier(permanent=[BadAnswer], retryable=[RequestRejected])))

    assert not policy.classify(BadAnswer("x")).retry
    assert policy.classify(RequestRejected("x")).retry
    assert policy.classify(AttemptTimeout("x")).retry
    assert policy.classify(TransportFault("x")).transient
