"""What every adapter must do, as one suite per port.

An adapter's test module brings one fixture and inherits the suite:

    from redrive.testing.conformance import BrokerSuite, BrokerUnderTest

    @pytest.fixture
    async def broker_under_test() -> AsyncIterator[BrokerUnderTest]:
        ...

    class TestMine(BrokerSuite):
        pass

Scenarios ask for the declared `Capabilities`, never for the adapter. Call
`pytest.register_assert_rewrite("redrive.testing.conformance")` in a conftest to see why an assertion failed.
"""

from redrive.testing.conformance.bench import BrokerUnderTest
from redrive.testing.conformance.contents import Contents
from redrive.testing.conformance.dead_letter_queue import DeadLetterQueueSuite, DeadLetterQueueUnderTest
from redrive.testing.conformance.dead_letters import DeadLetters
from redrive.testing.conformance.fetching import Fetching
from redrive.testing.conformance.giving_up import GivingUp
from redrive.testing.conformance.groups import Groups
from redrive.testing.conformance.holding import Holding
from redrive.testing.conformance.lifecycle import Lifecycle
from redrive.testing.conformance.names import Names
from redrive.testing.conformance.publishing import Publishing
from redrive.testing.conformance.retrying import Retrying
from redrive.testing.conformance.rows import RowsOfMessages
from redrive.testing.conformance.sending_back import SendingBack
from redrive.testing.conformance.settling import Settling
from redrive.testing.conformance.suspects import Suspects
from redrive.testing.conformance.watching import Depths, Pausing, Workers

__all__ = ["BrokerSuite", "BrokerUnderTest", "DeadLetterQueueSuite", "DeadLetterQueueUnderTest"]


class BrokerSuite(
    Publishing,
    Fetching,
    Settling,
    RowsOfMessages,
    Retrying,
    GivingUp,
    Suspects,
    Holding,
    SendingBack,
    DeadLetters,
    Pausing,
    Depths,
    Workers,
    Groups,
    Contents,
    Names,
    Lifecycle,
):
    """The promises of `Broker`, `Subscription` and `NativeDeadLetters`."""
