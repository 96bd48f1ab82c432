"""The Helm chart, linted and rendered; no cluster is at hand."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from redrive import wiring
from redrive.cli import app
from redrive.config import load_settings
from redrive.core.place import DeadLetterPlace
from redrive.core.policy import RetryPolicy
from redrive.worker import crew, supervisor
from tests.servers.helm import helm

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "redrive"
WITH_WORKER = "worker.enabled=true"


def tell(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm(), *words], capture_output=True, text=True, check=False, timeout=120)


def rendered(*values: str) -> dict[str, dict[str, Any]]:
    """What the chart asks Kubernetes for, by kind and name."""
    chosen = [word for value in values for word in ("--set", value)]
    said = tell("template", "shop", CHART, *chosen)
    assert said.returncode == 0, said.stderr
    made = [one for one in yaml.safe_load_all(said.stdout) if one]
    return {f"{one['kind']} {one['metadata']['name']}": one for one in made}


def container(made: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    (only,) = made[f"Deployment shop-{name}"]["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def test_the_chart_passes_its_linter() -> None:
    said = tell("lint", "--strict", CHART, "--set", WITH_WORKER)

    assert said.returncode == 0, said.stdout


def test_service_and_worker_run_commands_that_the_program_understands_without_root() -> None:
    made = rendered(WITH_WORKER)
    for name in ("service", "worker"):
        one = container(made, name)
        pod = made[f"Deployment shop-{name}"]["spec"]["template"]["spec"]
        command, *_ = app.parse_args(one["args"], exit_on_error=False, print_error=False)
        assert callable(command)
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["terminationGracePeriodSeconds"] > crew.GRACE.total_seconds() + supervisor.SOON
    assert [*rendered()] == ["Service shop-service", "Deployment shop-service"]


def test_probes_ask_ports_that_answer() -> None:
    made = rendered(WITH_WORKER)
    asked = {
        name: {probe: one[probe]["httpGet"] for probe in one if probe.endswith("Probe")}
        for name, one in (("service", container(made, "service")), ("worker", container(made, "worker")))
    }
    ports = {port["name"]: port["containerPort"] for port in container(made, "worker")["ports"]}
    args = container(made, "worker")["args"]

    assert {get["path"] for get in asked["worker"].values()} == {"/healthz"}
    assert asked["service"]["readinessProbe"]["path"] == "/readyz"
    assert asked["service"]["livenessProbe"] == asked["service"]["startupProbe"] == {"path": "/healthz", "port": "http"}
    assert str(ports["health"]) == args[args.index("--health-port") + 1]
    assert str(ports["metrics"]) == args[args.index("--metrics-port") + 1]


def test_the_values_of_the_dlq_become_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = rendered(WITH_WORKER, "kafka.dlq.topic=execution.tickets.dlq", "kafka.dlq.maxRetriesBeforeDLQ=5")
    said = variables(container(made, "worker"))
    settings = load_settings(said).kafka.dlq

    assert (settings.enabled, settings.topic, settings.max_attempts) == (True, "execution.tickets.dlq", 5)
    assert variables(container(made, "service"))["REDRIVE_STORE"] == "postgresql://redrive@postgres/letters"
    assert "REDRIVE_STORE" not in said

    monkeypatch.chdir(tmp_path)
    for name, value in variables(container(rendered(WITH_WORKER, "kafka.dlq.enabled=false"), "worker")).items():
        monkeypatch.setenv(name, value)
    defaults = wiring.consumer_defaults("kafka://localhost:9092")
    assert defaults == {
        "retry": RetryPolicy(max_attempts=3),
        "dlq": DeadLetterPlace(enabled=False, off="hold"),
    }


def test_a_url_with_a_password_comes_from_a_secret() -> None:
    made = rendered("store.urlSecret=letters", "broker.urlSecret=redis")
    secrets = {one["name"]: one["valueFrom"] for one in container(made, "service")["env"] if "valueFrom" in one}

    assert secrets == {
        "REDRIVE_STORE": {"secretKeyRef": {"name": "letters", "key": "url"}},
        "REDRIVE_BROKER": {"secretKeyRef": {"name": "redis", "key": "url"}},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "kafka.dlq.maxRetriesBeforeDLQ=0",
        "kafka.dlq.maxRetriesBeforeDLQ=often",
        "kafka.dlq.enabled=perhaps",
        "kafka.dlq.topik=typo",
        "worker.app=shop",
        "worker.gracePeriod=5",
        "settings.REDRIVE_LOG_LEVEL=7",
        "settings.DEBUG=yes",
        "broker.url=",
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_asked_for(wrong: str) -> None:
    said = tell("template", "shop", CHART, "--set", wrong)

    assert said.returncode == 1
    assert "don't meet the specifications of the schema" in said.stderr


def test_every_setting_of_the_chart_is_one_that_redrive_reads() -> None:
    made = rendered(WITH_WORKER, "kafka.dlq.topic=graves")
    for name in ("service", "worker"):
        load_settings(variables(container(made, name)))
