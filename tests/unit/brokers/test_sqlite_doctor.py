"""The doctor names what could lose messages."""

# ruff: noqa: ASYNC240 - a test may wait for the disk

from pathlib import Path

import pytest

from redrive.brokers.sqlite import SqliteBroker, doctor, space
from redrive.core.message import Message
from redrive.core.ports import Finding

MESSAGE = Message("", "orders", b"1")

MOUNTS = """
/dev/vda / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
server:/export /srv/shared\\040data nfs4 rw 0 0
/dev/vdb /srv/shared\\040data/local xfs rw 0 0
"""


async def found(broker: SqliteBroker) -> dict[str, Finding]:
    return {finding.check: finding for finding in await broker.diagnose()}


async def test_a_good_file_gets_a_clean_bill(broker: SqliteBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "filesystem_of", lambda _: "ext4")
    await broker.publish("orders", [MESSAGE])
    findings = await found(broker)

    assert {check: finding.level for check, finding in findings.items()} == dict.fromkeys(
        ("journal", "fsync", "filesystem", "space", "integrity", "permissions", "log"), "ok"
    )
    assert [finding for finding in findings.values() if not finding.prevents] == []


async def test_looking_at_a_file_does_not_make_one(broker: SqliteBroker, file: Path) -> None:
    findings = await found(broker)

    assert findings["file"].level == "ok"
    assert not file.exists()


async def test_a_file_that_cannot_be_opened_fails(broker: SqliteBroker, file: Path) -> None:
    file.write_bytes(b"no database " * 1000)

    assert (await found(broker))["file"].level == "fail"


async def test_a_damaged_file_fails(broker: SqliteBroker, file: Path) -> None:
    await broker.publish("orders", [Message("", "orders", bytes(2000))] * 100)
    await broker.aclose()
    whole = file.read_bytes()
    file.write_bytes(whole[:40_000] + b"\xff" * 40_000 + whole[80_000:])

    assert (await found(broker))["integrity"].level == "fail"


@pytest.mark.parametrize(("mode", "level"), [(0o660, "ok"), (0o664, "warn"), (0o666, "fail")])
async def test_a_file_for_everyone_is_told(broker: SqliteBroker, file: Path, mode: int, level: str) -> None:
    await broker.publish("orders", [MESSAGE])
    file.chmod(mode)

    assert (await found(broker))["permissions"].level == level


@pytest.mark.parametrize(
    ("free", "level"), [(space.RESERVE - 1, "fail"), (2 * space.RESERVE, "warn"), (9 * space.RESERVE, "ok")]
)
def test_little_room_is_told_before_it_is_too_little(monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    monkeypatch.setattr(doctor, "free_bytes", lambda _: free)

    assert doctor._space("queue.db", space.RESERVE).level == level  # noqa: SLF001 - one finding of many


@pytest.mark.parametrize(("kind", "level"), [("nfs4", "fail"), ("cifs", "fail"), ("tmpfs", "warn"), ("ext4", "ok")])
def test_a_file_on_another_machine_or_in_memory_is_told(monkeypatch: pytest.MonkeyPatch, kind: str, level: str) -> None:
    monkeypatch.setattr(doctor, "filesystem_of", lambda _: kind)

    assert doctor._filesystem("queue.db").level == level  # noqa: SLF001 - one finding of many


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/queue.db", "ext4"),
        ("/run/queue.db", "tmpfs"),
        ("/runner/queue.db", "ext4"),
        ("/srv/shared data/queue.db", "nfs4"),
        ("/srv/shared data/local/queue.db", "xfs"),
    ],
)
def test_the_filesystem_of_a_path_is_that_of_its_nearest_mount(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS.strip())

    assert doctor.filesystem_of(path, mounts=mounts) == kind


def test_where_the_system_does_not_tell_the_filesystem_is_not_known(tmp_path: Path) -> None:
    assert doctor.filesystem_of("/srv/queue.db", mounts=tmp_path / "none") == ""
