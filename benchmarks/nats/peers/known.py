"""The peers on NATS, at the settings that their documentation offers for pull consumers."""

from benchmarks.peers import Peer

FASTSTREAM = ("faststream[nats]==0.7.8", "nats-py==2.16.0", "uvloop==0.23.0")


def healthy(loop: str) -> list[Peer]:
    """Those that handle and ack, on this event loop."""
    return [
        _faststream("NACK_ON_ERROR, PullSub of 500, apply_types off, no logger; a call per batch", "batch", loop),
        _faststream("NACK_ON_ERROR, PullSub of 500, apply_types off, no logger; a call per message", "single", loop),
    ]


def _faststream(settings: str, mode: str, loop: str) -> Peer:
    return Peer(
        requirements=FASTSTREAM,
        settings=settings,
        fill="benchmarks.nats.hand:fill",
        drain="benchmarks.nats.peers.faststream:drain",
        messages=50_000,
        arguments={"loop": loop, "batch": mode == "batch"},
        mode=mode,
    )
