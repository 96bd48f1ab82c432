import pytest
from hypothesis import settings

# Here, because it must come before any other conftest imports the suites.
pytest.register_assert_rewrite("redrive.testing.conformance")

pytest_plugins = ["tests.servers.plugin"]

# A slow machine is no failure: no test is timed, not even by Hypothesis.
settings.register_profile("redrive", deadline=None)
settings.load_profile("redrive")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Every broker client is made for asyncio, so asyncio is what is tested."""
    return "asyncio"
