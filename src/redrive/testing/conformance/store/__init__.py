"""What every letter store must do.

An adapter's test module brings one fixture and inherits the suite:

    from redrive.testing.conformance.store import StoreSuite, StoreUnderTest

    @pytest.fixture
    async def store_under_test() -> AsyncIterator[StoreUnderTest]:
        ...

    class TestMine(StoreSuite):
        pass
"""

from redrive.testing.conformance.store.auditing import Auditing
from redrive.testing.conformance.store.bench import StoreUnderTest
from redrive.testing.conformance.store.collecting import Collecting
from redrive.testing.conformance.store.contents import Contents
from redrive.testing.conformance.store.counting import Counting
from redrive.testing.conformance.store.deciding import Deciding
from redrive.testing.conformance.store.incidents import Incidents
from redrive.testing.conformance.store.memos import Memos
from redrive.testing.conformance.store.news import News
from redrive.testing.conformance.store.purging import Purging
from redrive.testing.conformance.store.redriving import Redriving
from redrive.testing.conformance.store.relapses import Relapses
from redrive.testing.conformance.store.reporting import Reporting
from redrive.testing.conformance.store.searching import Searching
from redrive.testing.conformance.store.selecting import Selecting
from redrive.testing.conformance.store.tokens import Tokens

__all__ = ["StoreSuite", "StoreUnderTest"]


class StoreSuite(
    Collecting,
    Relapses,
    Contents,
    Searching,
    Selecting,
    Counting,
    News,
    Incidents,
    Deciding,
    Purging,
    Redriving,
    Reporting,
    Auditing,
    Tokens,
    Memos,
):
    """The promises of `LetterStore`, `RedriveStore`, `AuditLog`, `TokenBook` and `MemoBook`."""
