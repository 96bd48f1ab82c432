"""The peers on RabbitMQ, at the settings that their documentation offers."""

from benchmarks.peers import Peer

FASTSTREAM = ("faststream[rabbit]==0.7.8", "aio-pika==10.2.1", "uvloop==0.23.0")


def healthy(loop: str) -> list[Peer]:
    """Those that handle and ack, on this event loop."""
    return [
        Peer(
            requirements=FASTSTREAM,
            settings="NACK_ON_ERROR, prefetch 500, apply_types off, no logger; an ack per message",
            fill="benchmarks.rabbitmq.hand:fill",
            drain="benchmarks.rabbitmq.peers.faststream:drain",
            messages=20_000,
            arguments={"loop": loop},
        )
    ]
