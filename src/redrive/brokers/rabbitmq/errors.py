"""The one place where the exceptions of the client become ours."""

import asyncio
import ssl

from aiormq import exceptions as amqp

from redrive.core.errors import BrokerError, BrokerUnavailable, QueueNotFound

GONE = (
    amqp.AMQPConnectionError,
    amqp.ChannelInvalidStateError,
    amqp.ConnectionClosed,
    ConnectionError,
    OSError,
    asyncio.TimeoutError,
    RuntimeError,
    StopAsyncIteration,
)
"""What says that a connection or a channel is not there any more; the last one, that it ended before the greeting."""

REFUSED = (amqp.DeliveryError, amqp.PublishError)
"""What says that the server will not have a message: its queue is full, or there is none."""


class QueueFull(BrokerError):
    """A queue with a limit has reached it, and takes no more."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        super().__init__(f"rabbitmq: {queue!r} does not take it (it is full)")


_NOT_UP_YET = ("is down or inaccessible", "does not have a replica on the local node")


def translate(error: BaseException) -> BaseException:
    """The exception to raise instead: the client's become ours, every other one stays what it is."""
    ours: BrokerError
    if isinstance(error, amqp.ProbableAuthenticationError | amqp.AuthenticationError):
        ours = BrokerError("rabbitmq: the server does not accept this user, password or vhost")
    elif isinstance(error, ssl.SSLError):
        ours = BrokerError(f"rabbitmq: no connection by TLS ({error})")
    elif _is_not_up_yet(error):
        ours = BrokerUnavailable(f"rabbitmq: no service for now ({text_of(error)})")
    elif isinstance(error, amqp.ChannelNotFoundEntity):
        ours = QueueNotFound(f"rabbitmq: {text_of(error)}")
    elif isinstance(error, amqp.ChannelAccessRefused):
        ours = BrokerError(f"rabbitmq: the server does not permit this to the user ({text_of(error)})")
    elif isinstance(error, REFUSED):
        ours = BrokerError(f"rabbitmq: {why_refused(error)}")
    elif isinstance(error, amqp.ChannelPreconditionFailed):
        ours = BrokerError(f"rabbitmq: {text_of(error)}")
    elif isinstance(error, asyncio.CancelledError):  # that is how the client ends whatever waits for an answer
        ours = BrokerUnavailable("rabbitmq: the connection has ended")
    elif isinstance(error, (*GONE, amqp.AMQPError)):
        ours = BrokerUnavailable(f"rabbitmq: no service for now ({type(error).__name__}: {text_of(error)})")
    else:
        return error
    ours.__cause__ = error
    return ours


def why_refused(error: BaseException) -> str:
    """Why the server would not have a message."""
    if isinstance(error, amqp.PublishError):
        return "no queue takes it (it was returned)"
    if isinstance(error, amqp.DeliveryError):
        return "the queue does not take it (it is full)"
    return text_of(error)


def text_of(error: BaseException) -> str:
    """What an exception of the client says, without its frames."""
    words = [str(each) for each in error.args if isinstance(each, str | bytes | int)]
    return " ".join(words)[:300] or type(error).__name__


def is_missing(error: BaseException) -> bool:
    """Whether something is not there."""
    return isinstance(error, amqp.ChannelNotFoundEntity) and not _is_not_up_yet(error)


def _is_not_up_yet(error: BaseException) -> bool:
    """Whether the server has not begun with a queue: for a moment after its start it says that it is not there."""
    return isinstance(error, amqp.AMQPChannelError) and any(words in text_of(error) for words in _NOT_UP_YET)


def is_from_server(error: BaseException) -> bool:
    """Whether the server has closed a channel because of what was asked, and not because it went away."""
    return isinstance(error, amqp.AMQPChannelError) and not isinstance(error, amqp.ChannelInvalidStateError)
