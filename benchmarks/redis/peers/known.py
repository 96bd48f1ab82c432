"""The peers on Redis, at the settings that their documentation offers and that were the fastest in a trial of each."""

from typing import Any

from benchmarks.peers import Peer

CLIENT = ("redis==8.1.0", "hiredis==3.5.0")
OLD_CLIENT = ("redis==5.3.1", "hiredis==3.5.0")  # the newest that arq takes
UVLOOP = "uvloop==0.23.0"

FASTSTREAM = ("faststream[redis]==0.7.8", *CLIENT, UVLOOP)
DRAMATIQ = ("dramatiq==2.2.1", *CLIENT)
RQ = ("rq==2.12.0", *CLIENT)


def healthy(loop: str) -> list[Peer]:
    """Those that only have to handle and ack; on this event loop, where they have one."""
    on_loop = {"loop": loop}
    return [
        _peer(
            FASTSTREAM,
            "NACK_ON_ERROR, max_records 500, apply_types off, no logger; one call and one outcome per batch",
            100_000,
            mode="batch",
            arguments={**on_loop, "batch": True},
        ),
        _peer(
            FASTSTREAM,
            "NACK_ON_ERROR, max_records 500, apply_types off, no logger",
            10_000,
            mode="single",
            arguments={**on_loop, "batch": False},
        ),
        _peer(DRAMATIQ, "one process, 8 threads, prefetch 500", 10_000),
        _peer(
            ("celery[redis]==5.7.0", *CLIENT),
            "solo pool, acks_late, prefetch 100, no events, gossip, mingle, heartbeat or results",
            3_000,
        ),
        _peer(RQ, "SimpleWorker, result_ttl 0", 1_000),
        _peer(
            ("arq==0.28.0", *OLD_CLIENT, UVLOOP),
            "max_jobs 100, poll_delay 5 ms, keep_result 0",
            4_000,
            arguments=on_loop,
        ),
        _peer(
            ("taskiq==0.13.0", "taskiq-redis==1.2.4", *CLIENT, UVLOOP),
            "RedisStreamBroker, xread_count 500, 100 tasks at once, acks when executed, no results",
            6_000,
            arguments=on_loop,
        ),
        _peer(
            ("streaq==7.2.0", "coredis==6.9.0", UVLOOP), "concurrency 16, prefetch 500, ttl 0", 3_000, arguments=on_loop
        ),
        _peer(
            ("huey==3.5.4", *CLIENT),
            "RedisHuey, one thread, no results; takes a message off before it runs it",
            10_000,
        ),
    ]


def failing() -> list[Peer]:
    """Those that also have a place for the dead: every tenth message fails three times and goes there."""
    return [
        _peer(DRAMATIQ, "max_retries 2, backoff 1 ms", 2_000, mode="failing", program="drain_failing"),
        _peer(RQ, "Retry(max=2)", 1_000, mode="failing", filler="fill_failing", arguments={"failing": True}),
    ]


def _peer(
    requirements: tuple[str, ...],
    settings: str,
    messages: int,
    *,
    mode: str = "",
    filler: str = "fill",
    program: str = "drain",
    arguments: dict[str, Any] | None = None,
) -> Peer:
    package = requirements[0].partition("=")[0].partition("[")[0]
    module = f"benchmarks.redis.peers.{package}"
    return Peer(
        requirements=requirements,
        settings=settings,
        fill=f"{module}:{filler}",
        drain=f"{module}:{program}",
        messages=messages,
        arguments=arguments or {},
        mode=mode,
    )
