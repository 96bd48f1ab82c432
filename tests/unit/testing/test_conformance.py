from collections import Counter

import pytest

from redrive.testing.conformance import BrokerSuite, DeadLetterQueueSuite


@pytest.mark.parametrize("suite", [BrokerSuite, DeadLetterQueueSuite])
def test_no_scenario_of_a_suite_hides_another_of_the_same_name(suite: type) -> None:
    names = Counter(name for topic in suite.__mro__ for name in vars(topic) if name.startswith("test_"))

    assert names
    assert [name for name, count in names.items() if count > 1] == []
