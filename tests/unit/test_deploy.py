"""What stands in deploy/ is true to the program and to itself. Nothing is started here."""

import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from cyclopts import CycloptsError

from redrive.cli import app
from redrive.config import load_settings
from redrive.config.keys import KEYS, variable
from redrive.config.sources import FILE_NAMED
from redrive.core.duration import as_duration
from redrive.door import server
from redrive.worker import crew, supervisor

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
COMPOSE: Mapping[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: Mapping[str, Any] = COMPOSE["services"]
OURS = ("service", "worker")


def tool(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """A tool of the project's own environment, carried out."""
    command = [Path(sys.executable).with_name(name), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def mounts() -> Iterator[tuple[str, str]]:
    for name, service in SERVICES.items():
        yield from ((name, text.split(":")[0]) for text in service.get("volumes", ()))


def typed() -> Sequence[str]:
    """What `redrive` is told in the README, in containers or without."""
    text = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    ways = r"(?:^|exec (?:-T )?\w+ )redrive |run --rm -T service "
    return [words.strip() for words in re.findall(rf"(?:{ways})([^>&\n]+)", text, re.MULTILINE)]


def commands() -> Sequence[tuple[str, ...]]:
    """What `redrive` is told anywhere in the folder, each once."""
    usual = json.loads(re.findall(r"^CMD (.*)$", CONTAINERFILE, re.MULTILINE)[-1])
    told = [usual, *(SERVICES[name]["command"] for name in OURS), *map(shlex.split, typed())]
    return sorted({tuple(words) for words in told})


# -------------------------------------------------------------------------------------- the container file


def test_the_container_file_passes_its_linter() -> None:
    said = tool("hadolint", DEPLOY / "Containerfile")

    assert (said.returncode, said.stdout) == (0, "")


def test_the_linter_would_notice(tmp_path: Path) -> None:
    (tmp_path / "Containerfile").write_text("FROM python\nRUN cd / && sudo pip install redrive\n")

    assert tool("hadolint", tmp_path / "Containerfile").returncode == 1


def test_the_image_is_made_of_files_and_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE) for name in line.split()
    ]
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    (extras,) = re.findall(r"'\.\[(.*)\]'", CONTAINERFILE)

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert {f"!{name}" for name in copied} == {line for line in ignored if line.startswith("!")}
    assert {project["readme"], *project["license-files"]} <= {*copied}
    assert {*extras.split(",")} <= {*project["optional-dependencies"]}


# ---------------------------------------------------------------------------------------- the compose file


def test_the_compose_file_is_what_its_specification_says() -> None:
    said = tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")

    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_program_understands_its_command(words: Sequence[str]) -> None:
    command, *_ = app.parse_args(list(words), exit_on_error=False, print_error=False)

    assert callable(command)


def test_a_flag_that_is_gone_would_be_noticed() -> None:
    with pytest.raises(CycloptsError):
        app.parse_args([*SERVICES["worker"]["command"], "--gone"], exit_on_error=False, print_error=False)


def test_the_readme_shows_how_the_first_token_is_made_and_the_app_is_run() -> None:
    assert {"tokens", "serve", "worker", "publish"} <= {words.split()[0] for words in typed()}


def test_every_variable_is_one_that_redrive_reads() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and not {"secrets", "__pycache__"} & {*path.parts}]
    named = {name for path in files for name in re.findall(r"\bREDRIVE_[A-Z_]+", path.read_text(encoding="utf-8"))}

    assert named
    assert named - {FILE_NAMED, *map(variable, KEYS)} == set()


def test_whoever_is_waited_for_is_there_and_says_when_it_is_ready() -> None:
    awaited = {name for service in SERVICES.values() for name in service.get("depends_on", ())}

    assert awaited
    assert [name for name in awaited if "healthcheck" not in SERVICES[name]] == []


def test_what_is_mounted_exists() -> None:
    files = [source for _, source in mounts() if source.startswith(".")]
    volumes = [source for _, source in mounts() if not source.startswith(".")]

    assert files
    assert [source for source in files if not (DEPLOY / source).exists()] == []
    assert sorted(volumes) == sorted(COMPOSE["volumes"])


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]

    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_may_do_little(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "\nUSER 10001:10001\n" in CONTAINERFILE


@pytest.mark.parametrize("name", OURS)
def test_a_container_is_not_killed_while_it_drains(name: str) -> None:
    drain = crew.GRACE.total_seconds() + max(supervisor.SOON, server.GRACE)

    assert as_duration(SERVICES[name]["stop_grace_period"]).total_seconds() > drain


def test_the_health_of_both_is_asked_at_one_port() -> None:
    (asked,) = re.findall(r"HTTPConnection\('127\.0\.0\.1', (\d+)", CONTAINERFILE)
    worker = SERVICES["worker"]["command"]

    assert asked == worker[worker.index("--health-port") + 1]
    assert int(asked) == load_settings({}).service.port


# --------------------------------------------------------------------------------- secrets and what is scraped


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A copy of the folder in which the secrets were made."""
    shutil.copy(DEPLOY / "make-secrets.sh", tmp_path)
    subprocess.run(["sh", tmp_path / "make-secrets.sh"], check=True, timeout=60)
    return tmp_path


def test_every_secret_is_made_by_the_script_or_by_a_command_of_the_readme(prepared: Path) -> None:
    made = {path.name for path in (prepared / "secrets").iterdir()}
    issued = {*re.findall(r"> secrets/(\S+)", README)}
    used = {name for service in SERVICES.values() for name in service.get("secrets", ())}

    assert made | issued == used == {*COMPOSE["secrets"]}
    assert {name: secret["file"] for name, secret in COMPOSE["secrets"].items()} == {
        name: f"./secrets/{name}" for name in used
    }


def test_secrets_are_for_their_owner_and_the_containers_only_and_made_once(prepared: Path) -> None:
    folder = prepared / "secrets"
    before = {path.name: path.read_text() for path in folder.iterdir()}
    subprocess.run(["sh", prepared / "make-secrets.sh"], check=True, timeout=60)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


def test_the_settings_that_are_made_lead_to_the_servers_with_their_passwords(prepared: Path) -> None:
    folder = prepared / "secrets"
    settings = load_settings({FILE_NAMED: str(folder / "redrive.toml")})
    broker, store = urlsplit(settings.broker.url), urlsplit(settings.store)
    database = SERVICES["postgres"]["environment"]

    assert {broker.hostname, store.hostname} <= {*SERVICES}
    assert f"requirepass {broker.password}\n" == (folder / "redis_password.conf").read_text()
    assert f"{store.password}\n" == (folder / "postgres_password").read_text()
    assert (store.username, store.path) == (database["POSTGRES_USER"], f"/{database['POSTGRES_DB']}")
    assert len({broker.password, store.password, (folder / "grafana_password").read_text()}) == 3


def test_prometheus_scrapes_the_ports_that_answer_and_grafana_asks_prometheus() -> None:
    jobs = {job["job_name"]: job for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]}
    (source,) = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    (workers,) = jobs["redrive-worker"]["dns_sd_configs"]
    worker = SERVICES["worker"]["command"]

    assert jobs["redrive-service"]["static_configs"] == [{"targets": [f"service:{load_settings({}).service.port}"]}]
    assert jobs["redrive-service"]["authorization"] == {"credentials_file": "/run/secrets/prometheus_token"}
    assert (workers["names"], str(workers["port"])) == (["worker"], worker[worker.index("--metrics-port") + 1])
    assert urlsplit(source["url"]).hostname in SERVICES


def test_what_is_generated_is_mounted_where_it_is_looked_for() -> None:
    inside = {text.split(":")[0]: text.split(":")[1] for one in SERVICES.values() for text in one.get("volumes", ())}
    (rules,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["rule_files"]
    (dashboards,) = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/redrive.yaml").read_text())["providers"]

    assert rules == f"{inside['./prometheus']}/*.rules.yaml"
    assert dashboards["options"]["path"] == inside["./grafana/dashboards"]
    assert [*(DEPLOY / "grafana/dashboards").glob("*.json")]
