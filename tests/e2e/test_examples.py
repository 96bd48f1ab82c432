"""Every example runs to its end and shows what its text promises."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from tests.servers.jumping_time import JumpingClock
from tests.servers.rabbitmq import RabbitServer

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(example: str, **environment: str) -> set[str]:
    """The lines that an example printed. Its threads print as they come, so their order says nothing."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / example],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return set(done.stdout.splitlines())


def test_a_celery_task_is_retried_given_up_kept_when_refused_and_sent_back() -> None:
    assert {
        "order 1: charged, attempts: 1",
        "order 2: charged, attempts: 3",
        "order 3: given up, attempts: 1",
        "order 4: this dead letter queue is full: its capacity is 1; back into the queue",
        "letter: b'{\"number\": 3}' gone after 1 attempt",
        "order 4: given up, attempts: 2",
        "sent back: {'number': 4}, charged",
    } <= output_of("celery_task.py")


def test_a_faststream_consumer_on_redis_is_retried_given_up_kept_when_refused_and_sent_back(empty_redis: str) -> None:
    lines = output_of("faststream_redis.py", REDIS_URL=empty_redis)

    assert {
        "order 4: no letter, pending: 1",
        "order 1: charged, attempts: 1",
        "order 2: charged, attempts: 3",
        "letter: order 3: no longer sold, attempts: 1",
        "letter: order 4: no longer sold, attempts: 1",
        "order 3: charged, attempts: 2",
        "did it work? True",
    } <= lines
    assert "did it work? False" not in lines


def test_an_aiokafka_consumer_is_retried_given_up_and_sent_back(kafka_url: str) -> None:
    servers = kafka_url.partition("://")[2].partition("?")[0]

    lines = output_of("aiokafka_consumer.py", KAFKA_SERVERS=servers, TOPIC=f"orders-{uuid4().hex[:12]}")

    assert lines == {
        "order 1: charged, attempts: 1",
        "order 2: charged, attempts: 3",
        "letter: order 3 gone",
        "order 3: charged, attempts: 2",
        "left: 0",
    }


def test_an_aio_pika_consumer_is_retried_given_up_and_sent_back(
    jumping_rabbitmq: tuple[RabbitServer, JumpingClock],
) -> None:
    lines = output_of("aio_pika_consumer.py", RABBITMQ_URL=jumping_rabbitmq[0].url)

    assert {
        "order 1: charged, attempts: 1",
        "order 2: charged, attempts: 3",
        "letter: order 3: no longer sold, attempts: 1",
        "order 3: charged, attempts: 2",
        "did it work? True",
    } <= lines
