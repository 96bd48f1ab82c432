import json
from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

from redrive.core.errors import BadAnswer, QuotaExhausted, RequestRejected, RetriesExhausted
from redrive.gateway import LLMResponse, Post, Reply
from tests.unit.gateway.stage import JSON, Provider, a_request, answer, kinds, on_stage, refusal

GOOD = json.loads(answer().body)


def row(name: str, status: int = 200, **fields: Any) -> dict[str, Any]:
    body = GOOD if status == 200 else {"error": {"message": "no", "code": "c"}}
    return {"custom_id": name, "response": {"status_code": status, "body": body}, **fields}


def reply(*results: Any, status: int = 200) -> Reply:
    return Reply(status, JSON, json.dumps({"results": results}).encode())


def names(post: Post) -> list[str]:
    return [one["custom_id"] for one in json.loads(post.body)["requests"]]


async def test_a_window_gathers_what_is_ready_at_about_the_same_time() -> None:
    async with on_stage(Provider(), batch_size=10, batch_wait="50ms") as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(3)])
        await stage.settle()
        assert stage.provider.posts == []

        before = stage.clock.now()
        await stage.end(*futures)
        assert stage.clock.now() - before == timedelta(milliseconds=50)
        assert len(stage.provider.posts) == 3  # each in a call of its own


async def test_a_full_window_does_not_wait() -> None:
    async with on_stage(Provider(), batch_size=3, batch_wait="1h") as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(3)])
        await stage.settle()

        assert all(future.done() for future in futures)


async def test_an_endpoint_for_many_gets_them_in_one_call() -> None:
    provider = Provider(always=lambda post: reply(*map(row, reversed(names(post)))))
    async with on_stage(provider, batch_size=10, batch_path="/batch") as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(10)])
        ended = await stage.end(*futures)

    assert [one.request_id for one in ended if isinstance(one, LLMResponse)] == [str(n) for n in range(10)]
    (post,) = provider.posts
    assert post.url == "http://provider.test/v1/batch"
    assert json.loads(post.body)["requests"][0]["body"]["model"] == "model-1"


async def test_only_what_failed_is_sent_again() -> None:
    async with on_stage(
        Provider(
            reply(row("0"), row("1", 500), row("2", 400), row("3"), row("3", 500), row("stranger"), "junk", status=207),
            always=lambda post: reply(*map(row, names(post))),
        ),
        batch_size=5,
        batch_path="/batch",
    ) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(5)])
        ended = await stage.end(*futures)

        assert kinds(ended) == ["LLMResponse", "LLMResponse", "RequestRejected", "LLMResponse", "LLMResponse"]
        again = [name for post in stage.provider.posts[1:] for name in names(post)]
        assert sorted(again) == ["1", "4"]  # 4 had no result


async def test_a_whole_call_that_fails_fails_each_request_by_itself() -> None:
    provider = Provider(refusal(500), always=lambda post: reply(*map(row, names(post))))
    async with on_stage(provider, batch_size=3, batch_path="/batch") as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(3)])
        ended = await stage.end(*futures)

    assert [one.attempts for one in ended if isinstance(one, LLMResponse)] == [2, 2, 2]


async def test_results_of_every_strange_kind_are_errors_of_their_request() -> None:
    odd = [
        {"custom_id": "0"},
        {"custom_id": "1", "error": {"code": "insufficient_quota"}},
        {"custom_id": "2", "response": {"status_code": 200, "body": {"choices": []}}},
        {"custom_id": "3", "response": {"status_code": 200, "body": {"error": "busy"}}},
        {"custom_id": "4", "status_code": 422, "body": {}},
        {"custom_id": "5", "status_code": 200, "body": GOOD},
    ]
    async with on_stage(Provider(reply(*odd)), batch_size=6, batch_path="/batch", policy=0) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(6)])
        ended = await stage.end(*futures)

    causes = [one.__cause__ if isinstance(one, RetriesExhausted) else one for one in ended]
    wanted = [BadAnswer, QuotaExhausted, BadAnswer, BadAnswer, RequestRejected, LLMResponse]
    assert [type(one) for one in causes] == wanted


async def test_a_caller_may_leave_a_call_that_others_are_in() -> None:
    async with on_stage(
        Provider(always=lambda post: reply(*map(row, names(post)))), batch_size=3, batch_path="/b"
    ) as s:
        futures = await s.gateway.submit_many([a_request(str(n)) for n in range(3)])
        futures[1].cancel()
        ended = await s.end(*futures)

    assert kinds(ended) == ["LLMResponse", "CancelledError", "LLMResponse"]


async def test_over_many_random_batches_every_answered_request_was_answered_once() -> None:
    random = Random(3)
    answered: Counter[str] = Counter()

    def moody(post: Post) -> Reply:
        results = []
        for name in names(post):
            fate = random.random()
            if fate < 0.6:
                answered[name] += 1
                results.append(row(name))
            elif fate < 0.9:
                results.append(row(name, random.choice([409, 425])))
        random.shuffle(results)
        return reply(*results, *(row(f"stranger{n}") for n in range(random.randrange(2))))

    async with on_stage(Provider(always=moody), batch_size=8, batch_path="/b", policy=[1] * 30, deadline="9h") as stage:
        ended = []
        for batch in range(50):
            futures = await stage.gateway.submit_many([a_request(f"{batch}-{n}") for n in range(40)])
            ended += await stage.end(*futures, step=1)

    assert kinds(ended) == ["LLMResponse"] * 2000
    assert len(answered) == 2000
    assert set(answered.values()) == {1}


async def test_a_stream_is_never_put_into_a_call_for_many() -> None:
    events = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    def either(post: Post) -> Reply:
        if post.url.endswith("/batch"):
            return reply(*map(row, names(post)))
        return Reply(200, {"content-type": "text/event-stream"}, events)

    async with on_stage(Provider(always=either), batch_size=4, batch_path="/batch") as stage:
        futures = await stage.gateway.submit_many([a_request("r1")])
        async with stage.gateway.stream(a_request("s1")) as stream:
            futures += await stage.gateway.submit_many([a_request("r2"), a_request("r3")])  # type: ignore[operator]
            await stage.end(*futures)
            assert [delta.text async for delta in stream] == ["hi"]

    sent = [names(post) if post.url.endswith("/batch") else ["s1"] for post in stage.provider.posts]
    assert sorted(sent) == [["r1"], ["r2", "r3"], ["s1"]]
