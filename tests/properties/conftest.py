from pathlib import Path

import pytest

from tests.properties.stores import make_empty_file


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "empty.db"
    make_empty_file(path)
    return path
