"""Answers that come bit by bit, from a real server: retried before the first words, and never afterwards."""

import asyncio

import pytest

from redrive.core.errors import (
    AttemptTimeout,
    BadAnswer,
    GatewayError,
    RequestIdConflict,
    RequestRejected,
    RetriesExhausted,
    StreamInterrupted,
)
from redrive.gateway import LLMResponse
from tests.gateway.fault_server import DONE, EVENTS, Act, Visit, event, refuse, say, words, write
from tests.gateway.theatre import Theatre, a_request, theatre

ROLE = event(choices=[{"delta": {"role": "assistant", "content": ""}}])
USAGE = event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 4})
WHOLE = EVENTS + ROLE + words("hel") + b": keep alive\n\n" + words("lo", "stop") + USAGE + DONE


async def heard(play: Theatre, name: str = "r1") -> tuple[list[str], LLMResponse]:
    async with play.gateway.stream(a_request(name)) as stream:
        texts = [delta.text async for delta in stream]
        return texts, stream.response


async def broken(play: Theatre) -> tuple[list[str], GatewayError]:
    texts: list[str] = []
    async with play.gateway.stream(a_request()) as stream:
        try:
            async for delta in stream:
                texts.append(delta.text)  # noqa: PERF401 - what came before the error is wanted
        except GatewayError as error:
            return texts, error
    raise AssertionError(texts)


async def test_an_answer_comes_bit_by_bit() -> None:
    async with theatre() as play:
        play.server.plan(write(WHOLE))
        texts, response = await heard(play)

        assert texts == ["", "hel", "lo", ""]
        assert (response.text, response.finish_reason, response.usage) == ("hello", "stop", (3, 4))
        assert play.server.visits[0].body["stream"] is True


async def test_words_are_handed_out_before_the_answer_is_whole() -> None:
    async with theatre() as play:
        play.server.plan(write(EVENTS + words("hel"), then="hang"))
        async with play.gateway.stream(a_request()) as stream:
            assert (await anext(stream)).text == "hel"
        await play.server.gone(1)
        await play.settle()
        assert play.gateway.stats()["fast"].cancelled == 1


@pytest.mark.parametrize(
    "fault",
    [
        say(500),
        refuse(429, "rate_limit_exceeded"),
        write(b""),
        write(EVENTS),
        write(EVENTS + ROLE, then="reset"),
        write(EVENTS + ROLE),
        write(EVENTS + event(error={"type": "overloaded_error"})),
        write(EVENTS + b"data: junk\n\n"),
    ],
    ids=["500", "429", "closed", "no event", "reset", "only a role", "error event", "junk"],
)
async def test_what_fails_before_the_first_words_is_asked_again(fault: Act) -> None:
    async with theatre(policy=[0, 0]) as play:
        play.server.plan(fault, write(WHOLE))
        hearing = asyncio.create_task(heard(play))
        await play.server.arrived(1)
        await play.pass_time(1)  # which is how long the gate is closed after a 429
        texts, response = await hearing

        assert texts == ["", "hel", "lo", ""]
        assert response.attempts == 2


@pytest.mark.parametrize(
    "rest",
    [b"", words("lo"), event(error={"type": "overloaded_error"}), b"data: junk\n\n"],
    ids=["cut", "no end", "error event", "junk"],
)
async def test_an_answer_that_breaks_off_is_never_a_success_and_never_asked_again(rest: bytes) -> None:
    async with theatre() as play:
        play.server.plan(write(EVENTS + words("hel") + rest))
        texts, error = await broken(play)

        assert isinstance(error, StreamInterrupted)
        assert isinstance(error.__cause__, GatewayError)
        assert error.partial == "".join(texts)
        assert error.partial.startswith("hel")
        assert error.possibly_executed
        assert len(play.server.visits) == 1


async def test_an_end_without_the_last_word_counts_if_its_reason_was_told() -> None:
    async with theatre() as play:
        play.server.plan(write(EVENTS + words("hello", "stop")))
        assert (await heard(play))[1].text == "hello"


@pytest.mark.parametrize(
    ("wire", "said", "alive"),
    [
        ("openai", words("hel"), b": keep alive\n\n"),
        ("openai", words("hel"), words("")),
        ("openai", words("hel"), event(choices=[])),
        ("anthropic", event(type="content_block_delta", delta={"text": "hel"}), event(type="ping")),
    ],
    ids=["comments", "empty words", "no choices", "pings"],
)
async def test_a_stream_that_falls_silent_ends_whatever_keeps_it_alive(wire: str, said: bytes, alive: bytes) -> None:
    later = asyncio.Event()

    async def act(visit: Visit) -> None:
        visit.writer.write(EVENTS + said)
        await later.wait()
        visit.writer.write(alive)
        await visit.reader.read()

    async with theatre(attempt_timeout=10, wire=wire) as play:
        play.server.plan(act)
        async with play.gateway.stream(a_request()) as stream:
            assert (await anext(stream)).text == "hel"
            play.clock.advance(6)
            later.set()
            if not alive.startswith(b":"):  # which nobody is told of
                assert (await anext(stream)).text == ""
            play.clock.advance(4)
            with pytest.raises(StreamInterrupted) as caught:
                await anext(stream)

        assert isinstance(caught.value.__cause__, AttemptTimeout)


def choice(index: int, text: str, finish: str | None = None) -> dict[str, object]:
    return {"index": index, "delta": {"content": text}, "finish_reason": finish}


async def test_an_answer_with_a_choice_that_was_cut_is_no_success() -> None:
    async with theatre() as play:
        cut = event(choices=[choice(0, "hel"), choice(1, "good")]) + event(choices=[choice(0, "lo", "stop")])
        play.server.plan(write(EVENTS + cut))
        _, error = await broken(play)

        assert isinstance(error, StreamInterrupted)


async def test_an_answer_of_several_choices_ends_with_the_last_of_them_and_has_the_words_of_the_first() -> None:
    async with theatre() as play:
        first = event(choices=[choice(1, "good")]) + event(choices=[choice(0, "hello", "stop")])
        play.server.plan(write(EVENTS + first + event(choices=[choice(1, "bye", "length")])))
        texts, response = await heard(play)

        assert texts == ["", "hello", ""]
        assert (response.text, response.finish_reason) == ("hello", "stop")


async def test_a_rejected_stream_raises_when_it_is_read() -> None:
    async with theatre() as play:
        play.server.plan(say(400))
        texts, error = await broken(play)

        assert texts == []
        assert isinstance(error, RequestRejected)


async def test_a_server_that_does_not_stream_is_an_answer_in_one_bit() -> None:
    async with theatre() as play:
        texts, response = await heard(play)

        assert texts == [response.text] == ["hello"]


async def test_a_page_instead_of_a_stream_is_no_answer() -> None:
    async with theatre(policy=0) as play:
        play.server.plan(say(body=b"<html>", headers={"Content-Type": "text/html"}))
        _, error = await broken(play)

        assert isinstance(error, RetriesExhausted)
        assert isinstance(error.__cause__, BadAnswer)


async def test_a_stream_shares_its_id_with_nobody() -> None:
    async with theatre() as play:
        play.server.plan(write(EVENTS + words("hel"), then="hang"))
        async with play.gateway.stream(a_request()) as stream:
            await anext(stream)
            with pytest.raises(RequestIdConflict):
                await play.gateway.submit(a_request())
            with pytest.raises(RequestIdConflict):
                async with play.gateway.stream(a_request()):
                    pass


async def test_an_anthropic_answer_comes_bit_by_bit() -> None:
    def named(**fields: object) -> bytes:
        return f"event: {fields['type']}\n".encode() + event(**fields)

    answer = (
        EVENTS
        + named(type="message_start", message={"usage": {"input_tokens": 9, "output_tokens": 1}})
        + named(type="ping")
        + named(type="content_block_delta", delta={"type": "text_delta", "text": "hel"})
        + named(type="content_block_delta", delta={"type": "text_delta", "text": "lo"})
        + named(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5})
        + named(type="message_stop")
    )
    async with theatre(wire="anthropic") as play:
        play.server.plan(write(answer))
        texts, response = await heard(play)

        assert "".join(texts) == response.text == "hello"
        assert (response.finish_reason, response.usage) == ("end_turn", (9, 5))
