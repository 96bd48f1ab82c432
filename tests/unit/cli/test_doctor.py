import json
from collections.abc import Sequence

import pytest

from redrive import wiring
from redrive.brokers.memory import MemoryBroker
from redrive.clock import SystemClock
from redrive.core.ports import Finding
from tests.unit.cli.conftest import Shop


class Patient(MemoryBroker):
    def __init__(self, *findings: Finding) -> None:
        super().__init__(clock=SystemClock())
        self._findings = findings

    async def diagnose(self) -> Sequence[Finding]:
        return self._findings


@pytest.mark.parametrize(("level", "status"), [("ok", 0), ("warn", 0), ("fail", 1)])
def test_only_a_failed_check_is_a_failure(shop: Shop, monkeypatch: pytest.MonkeyPatch, level: str, status: int) -> None:
    finding = Finding("disk", level, "2 MB free", "losing messages", "free some space")  # type: ignore[arg-type]
    monkeypatch.setattr(wiring, "connect_existing", lambda _: Patient(finding))

    said = shop.run("doctor")

    assert said.status == status
    for text in (level, "disk", "2 MB free", "losing messages"):
        assert text in said.lines[1]


@pytest.mark.parametrize(("level", "advised"), [("ok", False), ("warn", True)])
def test_advice_is_shown_only_where_something_is_to_be_done(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, level: str, *, advised: bool
) -> None:
    finding = Finding("disk", level, "2 MB free", "losing messages", "free some space")  # type: ignore[arg-type]
    monkeypatch.setattr(wiring, "connect_existing", lambda _: Patient(finding))

    said = shop.run("doctor")

    assert said.lines[0].split()[:4] == ["check", "found", "without", "it"]
    assert ("advice" in said.out, "free some space" in said.out) == (advised, advised)


def test_the_findings_of_a_real_file_are_told_as_json(shop: Shop) -> None:
    shop.subscribe("orders")

    said = shop.run("doctor", "--json")

    findings = [json.loads(line) for line in said.lines]
    assert findings
    assert {"check", "level", "found", "prevents", "advice"} == set(findings[0])
