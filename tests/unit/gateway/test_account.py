from redrive.core.event import BatchSettled, LetterWritten
from redrive.testing import RecordingDeadLetterQueue
from tests.unit.gateway.stage import Provider, Stage, a_request, on_stage, refusal


async def test_only_what_has_become_a_letter_is_counted_as_dead() -> None:
    provider = Provider(always=lambda post: refusal(422 if b"odd" in post.body else 500))
    async with on_stage(provider, policy=0, dlq=RecordingDeadLetterQueue(capacity=1)) as stage:
        await stage.error(a_request("rejected", messages=[{"role": "user", "content": "odd"}]))
        await stage.error(a_request("letter"))
        assert (await stage.error(a_request("refused"))).refused  # the queue is full
        await stage.gateway.aclose()

    assert dead(stage) == 1
    assert sum(isinstance(event, LetterWritten) for event in stage.listener.events) == 1


async def test_what_the_end_of_a_gateway_ends_is_not_counted_as_dead() -> None:
    async with on_stage(Provider(always=refusal(500)), policy=[60]) as stage:
        await stage.gateway.submit(a_request())
        await stage.settle()
        await stage.gateway.aclose()

    assert dead(stage) == 0


def dead(stage: Stage) -> int:
    return sum(event.dead for event in stage.listener.events if isinstance(event, BatchSettled))
