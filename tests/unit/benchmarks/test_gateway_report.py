"""What the benchmark of the gateway says about its samples."""

from benchmarks.gateway.cases import (
    BARE,
    IN_FLIGHT,
    JOURNAL,
    MEMORY,
    NO_JOURNAL,
    OURS,
    PARTS,
    PEERS,
    costs,
    named,
    others,
)
from benchmarks.gateway.provider import FAULTS, Provider
from benchmarks.gateway.report import MEANT, report
from benchmarks.measure import Sample

PEER = "litellm 1.106.2"


def cost(micros: float) -> Sample:
    return Sample(messages=1000, cpu=micros / 1000, wall=1.0, peak_rss=50_000_000)


def a_report(*, ours: float = 300, peer: float = 6000) -> str:
    samples = {
        named(name, in_flight): [cost(micros)] * 3
        for in_flight in IN_FLIGHT
        for name, micros in ((BARE, 200.0), (OURS, ours), (PEER, peer))
    }
    samples[MEMORY] = [Sample(messages=10_000, rss=[50 * 2**20, 70 * 2**20])]
    samples |= {name: [Sample(messages=100, times=[0.001] * 100)] for name in (JOURNAL, NO_JOURNAL)}
    end = {"said": "answered", "seconds": 2.4, "visits": [1.0, 3.3]}
    met = {OURS: dict.fromkeys(FAULTS, end), PEER: {key: {**end, "visits": [1.0]} for key in FAULTS}}
    return report(samples, conditions="So it was.", peers={PEER: "one deployment"}, met=met)


def test_goals_that_are_met_and_not_are_told() -> None:
    text = a_report()
    assert "| 64 in flight: CPU per request, Redrive ÷ aiohttp | at most 1.8 | 1.5 | yes |" in text
    assert f"| 64 in flight: CPU per request, {PEER} ÷ Redrive | at least 15 | 20 | yes |" in text
    assert "| MiB for 10,000 queued requests | at most 40 | 20 | yes |" in text
    assert "| journal: ms the event loop is late, 99 % | at most 5 | 1 | yes |" in text
    assert "| at most 1.8 | 2 | **no** |" in a_report(ours=400)


def test_every_fault_is_told_in_words() -> None:
    assert set(MEANT) == {*FAULTS}
    text = a_report()
    assert "answered, 2.4 s; asked twice, again after 2.3 s" in text
    assert "answered, 2.4 s; asked once |" in text
    assert all(words in text for words in MEANT.values())


def test_every_client_is_driven_with_so_many_in_flight() -> None:
    peers = [(peer, f"/env/{peer.package}/python") for peer in PEERS]
    found = {case.name: case for case in [*costs(peers, scale=0.1), *others(PARTS)]}

    assert len(found) == len(IN_FLIGHT) * (2 + len(PEERS)) + 3
    assert found[named(PEER, 256)].python == "/env/litellm/python"
    assert found[named(PEER, 256)].arguments == {"messages": 2048, "in_flight": 256}
    assert found[named(PEER, 256)].optional
    assert not found[named(OURS, 64)].optional


class Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def test_the_provider_reads_requests_in_parts_and_counts_its_visits() -> None:
    one = Provider()
    one._transport, one._left = Written(), b""  # type: ignore[assignment] # noqa: SLF001
    call = b"POST /retry-after-2/me/v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
    one.data_received(call[:30])
    one.data_received(call[30:] + call)

    said = one._transport.data  # type: ignore[attr-defined] # noqa: SLF001
    assert (said.count(b"HTTP/1.1 429"), said.count(b"HTTP/1.1 200")) == (1, 1)
    assert len(Provider.visits.pop("retry-after-2 me")) == 2
