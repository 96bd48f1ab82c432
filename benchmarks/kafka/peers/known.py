"""The peers on Kafka, at the settings that their documentation offers for throughput with manual commits."""

from typing import Any

from benchmarks.peers import Peer

CLIENT = "confluent-kafka==2.16.1"
UVLOOP = "uvloop==0.23.0"

FASTSTREAM = ("faststream[confluent]==0.7.8", CLIENT, UVLOOP)
AIOKAFKA = ("aiokafka==0.14.0", UVLOOP)
ARROYO = ("sentry-arroyo==2.48.0",)


def healthy(loop: str) -> list[Peer]:
    """Those that handle and commit; on this event loop, where they have one."""
    on_loop = {"loop": loop}
    return [
        _peer(
            FASTSTREAM,
            "faststream",
            "NACK_ON_ERROR, max_records 500, apply_types off, no logger; one call and one commit per batch",
            100_000,
            mode="batch",
            arguments={**on_loop, "batch": True},
        ),
        _peer(
            FASTSTREAM,
            "faststream",
            "NACK_ON_ERROR, apply_types off, no logger; a commit per message",
            3_000,
            mode="single",
            arguments={**on_loop, "batch": False},
        ),
        _peer(AIOKAFKA, "aiokafka", "getmany of 500 at most, one commit for them", 100_000, arguments=on_loop),
        _peer(ARROYO, "arroyo", "RunTask, CommitOffsets, a commit per second", 50_000),
    ]


def _peer(
    requirements: tuple[str, ...],
    module: str,
    settings: str,
    messages: int,
    *,
    mode: str = "",
    arguments: dict[str, Any] | None = None,
) -> Peer:
    return Peer(
        requirements=requirements,
        settings=settings,
        fill="benchmarks.kafka.hand:fill",
        drain=f"benchmarks.kafka.peers.{module}:drain",
        messages=messages,
        arguments=arguments or {},
        mode=mode,
    )
