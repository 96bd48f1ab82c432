import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import install, plugin, roll
from tests.servers.install import Needed, Unavailable, on_path, require


class Apt:
    """Stands in for apt: says no to some of the calls."""

    def __init__(self, *refused: str) -> None:
        self.calls: list[str] = []
        self.refused = refused

    def run(self, *words: str) -> str:
        self.calls.append(" ".join(words))
        return "no such package" if self.calls[-1] in self.refused else ""

    def found_afterwards(self) -> Path | None:
        return Path("rare-server") if "install --no-install-recommends rare-core" in self.calls else None


INSTALL = "install --no-install-recommends rare-core"
DOWNLOAD = "install --no-install-recommends --download-only rare-core"


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Apt]:
    apt = Apt()
    monkeypatch.setattr(install, "_run", apt.run)
    monkeypatch.setattr(install, "_may_install", lambda: True)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    install.install.cache_clear()
    yield apt
    install.install.cache_clear()


def rare(apt: Apt) -> Needed:
    return Needed("rare-server", apt.found_afterwards, package="rare-core", advice="rare-server")


def test_what_is_there_is_not_installed() -> None:
    assert require(Needed("shell", on_path("no-such-shell", "sh"), package="dash", advice="dash")).name == "sh"


def test_what_is_absent_is_downloaded_and_installed(apt: Apt) -> None:
    found = require(rare(apt))

    assert found == Path("rare-server")
    assert apt.calls == [DOWNLOAD, INSTALL]


def test_the_list_of_packages_is_brought_up_to_date_only_if_need_be(apt: Apt) -> None:
    apt.refused = (DOWNLOAD,)
    require(rare(apt))

    assert apt.calls == [DOWNLOAD, "update", INSTALL]


def test_what_cannot_be_installed_is_tried_once_and_says_what_to_do(apt: Apt) -> None:
    apt.refused = (DOWNLOAD, INSTALL)
    never = Needed("rare-server", lambda: None, package="rare-core", advice="rare-server")
    said = []
    for _ in range(2):
        with pytest.raises(Unavailable) as absence:
            require(never)
        said.append(str(absence.value))

    hint = "rare-server is not installed and could not be installed: no such package; apt install rare-server"
    assert said == [hint, hint]
    assert apt.calls.count(INSTALL) == 1


def test_nothing_is_installed_by_somebody_who_may_not(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_may_install", lambda: False)
    with pytest.raises(Unavailable, match="neither root nor sudo"):
        require(rare(apt))

    assert apt.calls == []


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)], ids=["newcomer", "ci"]
)
def test_an_absent_server_is_a_named_skip_and_a_failure_where_servers_are_required(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(plugin.REQUIRED, required)
    monkeypatch.setattr(roll, "ABSENT", {})
    with pytest.raises(outcome, match="rare-server is not installed"), plugin.absence_named():
        raise Unavailable("rare-server", "is not installed")

    assert roll.ABSENT == {"rare-server": "is not installed"}
