import pytest

from benchmarks.measure import Sample
from benchmarks.redis.cases import HAND, HAND_WAITING, MEMORY, OURS, OURS_WAITING, PARTS, RETRY, TRACED, TYPED, cases
from benchmarks.redis.peers import known
from benchmarks.redis.report import report
from benchmarks.runs import Samples


def sample(micros: float, *, rate: float = 1000) -> Sample:
    return Sample(messages=900, cpu=micros * 900 / 1e6, wall=900 / rate, peak_rss=30_000_000, server_micros=2)


def lines_of(samples: Samples, *peers: str) -> list[str]:
    settings = dict.fromkeys(peers, "as it comes")
    text = report(samples, conditions="On a machine.", peers=settings, backlog=1_000_000)
    return text.splitlines()


def test_the_bars_of_the_healthy_path_are_judged_beside_hand_and_peers() -> None:
    samples = {
        HAND: [sample(3, rate=200)],
        OURS: [sample(4, rate=150)],
        TYPED: [sample(5)],
        TRACED: [sample(40)],
        "faststream 0.7.8 batch": [sample(16, rate=40)],
        "dramatiq 2.2.1": [sample(100, rate=4)],
    }
    lines = lines_of(samples, "faststream 0.7.8 batch", "dramatiq 2.2.1")

    assert "| CPU per message, Redrive ÷ hand-written | at most 1.25 | 1.33 | **no** |" in lines
    assert "| rate, Redrive ÷ hand-written | at least 0.8 | 0.75 | **no** |" in lines
    assert "| CPU per message, faststream 0.7.8 batch ÷ Redrive | at least 3 | 4 | yes |" in lines
    assert "| CPU per message, dramatiq 2.2.1 ÷ Redrive | at least 30 | 25 | **no** |" in lines
    assert "| rate, Redrive ÷ the fastest peer, faststream 0.7.8 batch | at least 1 | 3.75 | yes |" in lines
    assert "- dramatiq 2.2.1: as it comes" in lines


def test_latency_and_memory_are_judged_without_the_rest() -> None:
    samples = {
        HAND_WAITING: [Sample(times=[0.001])],
        OURS_WAITING: [Sample(times=[0.0012])],
        RETRY: [Sample(times=[0.003])],
        MEMORY: [Sample(rss=[40_000_000, 41_000_000, 42_000_000])],
    }
    lines = lines_of(samples)

    assert "| low load: half are handled within, Redrive ÷ bare loop | at most 1.3 | 1.2 | yes |" in lines
    assert "| RSS at the end ÷ after a tenth of 1,000,000 | at most 1.1 | 1.05 | yes |" in lines
    assert "| Redrive, a long backlog | 40 | 41 | 42 |" in lines
    assert not [line for line in lines if "Nothing fails" in line]


def test_every_case_has_a_name_of_its_own_and_knows_how_many_messages_it_handles() -> None:
    found = cases(PARTS, scale=1, loop="asyncio")
    peers = [*known.healthy("asyncio"), *known.failing()]
    names = [*(case.name for case in found), *(peer.name for peer in peers)]

    assert len({*names}) == len(names)
    assert all(case.arguments["messages"] for case in found)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_both_sides_of_every_ratio_are_on_the_same_event_loop(loop: str) -> None:
    ours = [case.arguments for case in cases(PARTS, scale=1, loop=loop)]
    peers = [peer.arguments for peer in known.healthy(loop)]

    assert {given["loop"] for given in ours} == {loop}
    assert {given["loop"] for given in peers if "loop" in given} == {loop}


def test_a_part_can_be_measured_alone_and_peers_are_measured_beside_us() -> None:
    assert [case.name for case in cases(["memory"], scale=1, loop="asyncio")] == [MEMORY]
    assert [case.name for case in cases(["peers"], scale=1, loop="asyncio")] == [HAND, OURS, TYPED, TRACED]


def test_every_peer_is_pinned() -> None:
    required = {name for peer in known.healthy("asyncio") for name in peer.requirements}

    assert [name for name in required if "==" not in name] == []
