import os
import signal

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


LONG = ("crash", "browser", "e2e", "properties", "conformance", "gateway", "kafka", "rabbitmq", "nats")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Every broker client is made for asyncio, so asyncio is what is tested."""
    return "asyncio"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, since many tests wait; but each starts servers of its own."""
    return min(os.cpu_count() or 1, 7) + 1


def pytest_configure() -> None:
    """Hear of Ctrl-C, and let the programs that tests start hear of it: a shell that runs us behind it ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests first: dealt last, they would keep one process busy while the others have ended."""
    folders = [f"/tests/{name}/" for name in LONG]
    items.sort(key=lambda item: next((at for at, folder in enumerate(folders) if folder in str(item.path)), len(LONG)))
