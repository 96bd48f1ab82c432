"""What the repository promises about itself."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

REGISTRY = re.compile(r"\b(crates|golang|maven|npmjs|pypi|pythonhosted|rubygems)\.(apache|com|io|org)\b")
SOMEBODYS_MACHINE = re.compile(r"(?<![\w.~])/(home|root|work|Users)/\w|[A-Z]:\\Users\\\w")


def repository_files() -> list[Path]:
    """The files that are, or are about to be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path in repository_files()
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def imported_packages(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def package_name(requirement: str) -> str:
    """The name alone, in its one canonical spelling."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert lines_that_match(REGISTRY) == []


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    assert lines_that_match(SOMEBODYS_MACHINE) == []


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}
    modules = [path for path in repository_files() if path.suffix == ".py"]

    assert [path for path in modules if drawers & {*path.with_suffix("").parts}] == []


def test_the_core_imports_itself_and_the_standard_library_and_one_reader_of_json() -> None:
    modules = list((ROOT / "src/redrive/core").rglob("*.py"))
    strangers = {module.name: imported_packages(module) - sys.stdlib_module_names - {"redrive"} for module in modules}

    assert modules
    assert {name: packages for name, packages in strangers.items() if packages} == {"own.py": {"msgspec"}}  # ADR 21


def test_constraints_are_names_and_versions_in_order() -> None:
    names = [line.partition("==")[0].lower() for line in CONSTRAINTS]

    assert [line for line in CONSTRAINTS if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []
    assert names == sorted(set(names))


def test_every_dependency_has_a_constraint() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = chain(project["dependencies"], *project["optional-dependencies"].values())

    assert {*map(package_name, required)} - {*map(package_name, CONSTRAINTS)} == {"redrive"}


@pytest.mark.parametrize("goals", [["help"], []], ids=["help", "no goal"])
def test_make_lists_every_target_with_its_help(goals: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    promised = re.findall(r"^([a-z-]+):.*## (.+)$", makefile, re.MULTILINE)
    # Under `make test` the outer make's flags are in the environment; they are not for this one.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    shown = subprocess.check_output(["make", *goals], cwd=ROOT, env=env, text=True).splitlines()

    assert {"setup", "run", "test", "test-unit", "check", "help"} <= {name for name, _ in promised}
    assert [line.split(maxsplit=2) for line in shown] == [["make", name, text] for name, text in promised]


def test_help_loads_no_adapter_and_no_heavy_library() -> None:
    program = (
        "import contextlib, sys\n"
        "from redrive.cli import main\n"
        "sys.argv = ['redrive', '--help']\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print('loaded:', *sys.modules)\n"
    )
    output = subprocess.check_output([sys.executable, "-c", program], text=True)
    shown, _, loaded = output.rpartition("loaded:")
    adapter = re.compile(r"redrive\.(brokers|stores|notifiers|ciphers)\.")
    library = re.compile(r"(celery|fastapi|pydantic|redis|sqlalchemy|sqlite3|uvloop)\b")

    assert "Usage" in shown
    assert [name for name in loaded.split() if adapter.match(name) or library.match(name)] == []
