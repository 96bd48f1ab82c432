import json
from datetime import timedelta
from typing import Any

import pytest

from redrive.core.errors import RequestRejected
from redrive.gateway import LLMRequest
from tests.unit.gateway.stage import a_request


def test_every_mistake_in_a_request_is_told_at_once() -> None:
    wrong: dict[str, Any] = {
        "agent_id": "",
        "model": 7,
        "messages": [{"content": "hi"}, "hello"],
        "params": {"model": "other", "stream": True},
        "priority": "high",
        "deadline": "soon",
        "est_tokens": 0,
        "metadata": [],
        "request_id": "a\nb",
    }
    with pytest.raises(RequestRejected) as caught:
        LLMRequest(**wrong)

    named = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert sorted(named) == sorted(
        f"{field}" for field in ("messages[0]", "messages[1]", *(name for name in wrong if name != "messages"))
    )


@pytest.mark.parametrize("messages", [[], "hi", None, {"role": "user"}])
def test_a_request_has_one_message_at_least(messages: Any) -> None:
    with pytest.raises(RequestRejected, match="messages"):
        a_request(messages=messages)


def test_what_is_said_later_is_not_in_the_request() -> None:
    history = [{"role": "user", "content": "one"}]
    request = a_request(messages=history)
    history.append({"role": "assistant", "content": "two"})

    assert [message["content"] for message in request.messages] == ["one"]


def test_a_mistake_is_shown_in_short() -> None:
    with pytest.raises(RequestRejected) as caught:
        a_request(messages="x" * 1_000_000, agent_id="y" * 1000, params=["z"] * 1000)

    assert len(str(caught.value)) < 1000


def test_requests_that_ask_the_same_have_one_fingerprint() -> None:
    one = a_request(params={"temperature": 0.5})

    assert LLMRequest.from_json(one.to_json()).fingerprint == one.fingerprint
    assert one.within("1m").fingerprint == one.fingerprint
    assert a_request(params={"temperature": 0.6}).fingerprint != one.fingerprint


def test_a_request_without_an_id_gets_one_of_its_own() -> None:
    one, other = (LLMRequest(agent_id="a", model="fast", messages=[{"role": "user"}]) for _ in range(2))

    assert one.request_id != other.request_id


def test_a_request_comes_back_from_its_letter_as_it_was() -> None:
    request = a_request(params={"temperature": 0.5}, priority=3, deadline="90s", est_tokens=9, metadata={"trace": "t"})

    assert LLMRequest.from_json(request.to_json()) == request
    assert request.deadline == timedelta(seconds=90)


def test_what_is_not_said_is_not_in_the_letter() -> None:
    assert set(json.loads(a_request().to_json())) == {"agent_id", "model", "messages", "request_id"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"agent_id": 1', b'{"what": 1}', b"\xff"])
def test_what_is_no_request_is_rejected(body: bytes) -> None:
    with pytest.raises(RequestRejected):
        LLMRequest.from_json(body)


def test_a_deadline_of_nothing_is_a_mistake() -> None:
    with pytest.raises(RequestRejected, match="more than zero"):
        a_request(deadline=0)
