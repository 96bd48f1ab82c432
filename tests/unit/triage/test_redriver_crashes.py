"""What a redriver leaves behind when it dies, and when those it works with are away."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from redrive.core.errors import BrokerUnavailable, StoreUnavailable
from redrive.core.redrive import RedriveState, SendBack
from redrive.triage.redriver import Redriver
from tests.unit.triage.bench import Bench, begin, redriver, succeeds


class Killed(BaseException):
    """The process dies here."""


class FlakyStore:
    """A store whose process dies at a named point, once."""

    def __init__(self, bench: Bench, *, after: str | None = None, before: str | None = None) -> None:
        self._bench = bench
        self._after = after
        self._before = before

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._bench.store, name)
        if name not in (self._after, self._before):
            return call

        async def dying(*args: Any, **kwargs: Any) -> Any:
            if name == self._before:
                raise Killed
            await call(*args, **kwargs)
            raise Killed

        return dying


class Recording:
    """A broker that notes what it was asked to send."""

    def __init__(self, bench: Bench, *, fails: int = 0) -> None:
        self._bench = bench
        self._fails = fails
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench.broker, name)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        if self._fails:
            self._fails -= 1
            raise BrokerUnavailable("the broker is away")
        self.asked.extend(item.once_key for item in items)
        return await self._bench.broker.send_back(items)


@pytest.mark.parametrize("point", [{"after": "claim"}, {"before": "sent"}, {"after": "sent"}])
async def test_a_redriver_that_dies_at_any_point_is_followed_by_one_that_sends_nothing_twice(
    point: Mapping[str, str],
) -> None:
    bench = Bench()
    await bench.collect(40)
    redrive = await begin(bench, canary=(3,))
    dying = Redriver(FlakyStore(bench, **point), bench.brokers, clock=bench.clock, chunk=10)
    with pytest.raises(Killed):
        await dying.run(redrive.redrive_id)

    ended = await bench.while_consuming(redriver(bench, chunk=10).run(redrive.redrive_id), succeeds)

    assert ended.state is RedriveState.DONE
    assert await bench.states() == {"resolved": 40}
    assert sorted(bench.published) == sorted(f"letter-{number}:1" for number in range(40))


async def test_an_answer_that_overtakes_the_record_is_not_undone() -> None:
    bench = Bench()
    await bench.collect(3)
    redrive = await begin(bench)
    dying = Redriver(FlakyStore(bench, before="sent"), bench.brokers, clock=bench.clock)
    with pytest.raises(Killed):
        await dying.run(redrive.redrive_id)
    await bench.consume(succeeds)
    assert await bench.states() == {"resolved": 3}

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)

    assert ended.state is RedriveState.DONE
    assert await bench.states() == {"resolved": 3}
    assert len(bench.published) == 3


async def test_a_broker_that_is_away_is_waited_for() -> None:
    bench = Bench()
    await bench.collect(3)
    broker = Recording(bench, fails=3)
    bench.brokers["memory"] = broker  # type: ignore[assignment]
    redrive = await begin(bench)

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)

    assert ended.state is RedriveState.DONE
    assert "the broker is away" in {one.waiting for one in bench.told}
    assert len(broker.asked) == 3


async def test_a_store_that_is_away_is_waited_for() -> None:
    bench = Bench()
    await bench.collect(3)
    redrive = await begin(bench)
    times = iter([StoreUnavailable("locked")] * 3)

    class Away:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        async def claim(self, *args: Any, **kwargs: Any) -> Any:
            for error in times:
                raise error
            return await bench.store.claim(*args, **kwargs)

    ended = await bench.while_consuming(
        Redriver(Away(), bench.brokers, clock=bench.clock).run(redrive.redrive_id),
        succeeds,
    )

    assert ended.state is RedriveState.DONE
