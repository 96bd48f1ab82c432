import os

import pytest
from hypothesis import settings

# Here, because it must come before any other conftest imports the suites.
pytest.register_assert_rewrite("redrive.testing.conformance")

pytest_plugins = ["tests.servers.plugin"]

# Containers often forbid it; but the tests start hundreds of processes, and each would compile every module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A slow machine is no failure: no test is timed, not even by Hypothesis.
settings.register_profile("redrive", deadline=None)
settings.load_profile("redrive")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Every broker client is made for asyncio, so asyncio is what is tested."""
    return "asyncio"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, since many tests wait; but each starts servers of its own."""
    return min(os.cpu_count() or 1, 7) + 1
