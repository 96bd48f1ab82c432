import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.environments import NotInstallable, environment, folder_of
from benchmarks.peers import Peer, install


def peer(requirement: str, *, mode: str = "") -> Peer:
    return Peer(
        requirements=[requirement], settings="as it comes", fill="a:fill", drain="a:drain", messages=1000, mode=mode
    )


@pytest.mark.parametrize(
    ("requirement", "mode", "name"),
    [("huey==3.5.4", "", "huey 3.5.4"), ("faststream[redis]==0.7.8", "batch", "faststream 0.7.8 batch")],
)
def test_a_peer_is_named_by_package_version_and_mode(requirement: str, mode: str, name: str) -> None:
    assert peer(requirement, mode=mode).name == name


def test_a_peer_that_cannot_be_installed_is_named_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(requirements: Sequence[str]) -> str:
        if requirements == ["broken==1"]:
            raise NotInstallable("no such version")
        return "/its/python"

    monkeypatch.setattr(peers, "environment", made)
    found = install([peer("huey==3.5.4"), peer("broken==1")], scale=0.1)

    assert found.missing == {"broken 1": "no such version"}
    (case,) = found.cases
    assert (case.name, case.python, case.optional) == ("huey 3.5.4", "/its/python", True)
    assert case.arguments == case.preparation == {"messages": 100}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_an_environment_has_a_place_of_its_own_in_the_cache(cache: Path) -> None:
    folder = folder_of(["faststream[redis]==0.7.8", "redis==8"])

    assert folder.parent == cache / "redrive-bench"
    assert folder.name.startswith("faststream-")
    assert folder != folder_of(["faststream[redis]==0.7.8", "redis==9"])


@pytest.mark.usefixtures("cache")
def test_an_environment_that_is_ready_is_not_made_again() -> None:
    folder = folder_of(["huey==3.5.4"])
    folder.mkdir(parents=True)
    (folder / "ready").touch()

    assert environment(["huey==3.5.4"]) == str(folder / "bin" / "python")


@pytest.mark.usefixtures("cache")
def test_an_environment_that_cannot_be_made_says_why_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    for _ in range(2):
        with pytest.raises(NotInstallable, match="/no/such/python"):
            environment(["huey==3.5.4"])
