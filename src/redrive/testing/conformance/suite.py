"""What every topic stands on: one fixture from the adapter, one bench per scenario."""

import pytest

from redrive.testing.conformance.bench import Bench, BrokerUnderTest


class Suite:
    """Scenarios on a bench. The adapter's test module brings the fixture `broker_under_test`."""

    @pytest.fixture
    def bench(self, broker_under_test: BrokerUnderTest) -> Bench:
        """A fresh queue on the adapter."""
        return Bench(broker_under_test)


def needs(able: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence: needs(capabilities.durable, "...")
    """Skip a scenario, by name, that an adapter has declared to be beyond it."""
    if not able:
        pytest.skip(f"the adapter declares: {what}")
