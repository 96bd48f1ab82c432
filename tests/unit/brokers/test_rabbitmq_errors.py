"""What the client raises, in our words."""

import asyncio

import pytest
from aiormq import exceptions as amqp

from redrive.brokers.rabbitmq.errors import is_missing, translate
from redrive.core.errors import BrokerUnavailable, QueueNotFound

NOT_UP_YET = [
    amqp.ChannelNotFoundEntity(
        "NOT_FOUND - home node 'rabbit@a' of durable queue 'orders' in vhost '/' is down or inaccessible"
    ),
    amqp.ChannelPreconditionFailed(
        "PRECONDITION_FAILED - queue 'queue 'orders' in vhost '/'' does not have a replica on the local node"
    ),
]
NO_QUEUE = "NOT_FOUND - no queue 'orders' in vhost '/'"


def test_a_queue_that_is_not_there_is_missing() -> None:
    error = amqp.ChannelNotFoundEntity(NO_QUEUE)

    assert is_missing(error)
    assert isinstance(translate(error), QueueNotFound)


@pytest.mark.parametrize("error", NOT_UP_YET, ids=lambda error: type(error).__name__)
def test_a_queue_that_the_server_has_not_begun_with_is_away_and_not_missing(error: Exception) -> None:
    assert not is_missing(error)
    assert isinstance(translate(error), BrokerUnavailable)


@pytest.mark.parametrize(
    "error",
    [
        amqp.AMQPConnectionError("reset"),
        amqp.ChannelInvalidStateError("closed"),
        asyncio.CancelledError(),
        StopAsyncIteration(),  # the server has closed the connection before it said a word
        TimeoutError(),
        OSError("no route"),
    ],
    ids=repr,
)
def test_a_connection_that_has_ended_is_a_server_that_is_away(error: BaseException) -> None:
    assert isinstance(translate(error), BrokerUnavailable)


def test_what_is_not_the_clients_stays_what_it_is() -> None:
    error = KeyError("id")

    assert translate(error) is error
