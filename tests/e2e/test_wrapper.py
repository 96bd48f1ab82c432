"""The wrapper on a real queue file, where it is used: in plain scripts, threads, event loops and forked workers."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import redrive


async def payloads(url: str) -> list[bytes]:
    broker = redrive.connect(url)
    entries = await broker.dead_letters("orders").peek(100)
    await broker.aclose()
    return sorted(entry.letter.payload or b"" for entry in entries)


def test_scripts_threads_and_event_loops_share_one_queue_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'letters.db'}"
    keep = redrive.dead_letter(url, source="orders", retry=[0])

    @keep
    def charge(_: str) -> None:
        raise RuntimeError("no stock")

    @keep
    async def ship(_: str) -> None:
        raise RuntimeError("no truck")

    charge("script")
    asyncio.run(ship("loop 1"))
    asyncio.run(ship("loop 2"))
    threads = [threading.Thread(target=charge, args=(f"thread {number}",)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert asyncio.run(payloads(url)) == [b"loop 1", b"loop 2", b"script", b"thread 1", b"thread 2"]


def test_a_queue_file_that_cannot_be_opened_leaves_the_message_with_the_framework(tmp_path: Path) -> None:
    @redrive.dead_letter(f"sqlite:///{tmp_path / 'no such directory' / 'letters.db'}", source="orders", retry=0)
    def charge(_: str) -> None:
        raise RuntimeError("no stock")

    with pytest.raises(redrive.DeadLetterError) as raised:
        charge("7")
    assert str(raised.value.__cause__) == "no stock"


FORKING = """
import os, sys
import redrive

keep = redrive.dead_letter(sys.argv[1], source="orders", retry=[0])

@keep
def charge(order):
    raise RuntimeError("no stock")

charge("parent, before")
children = []
for number in (1, 2):
    child = os.fork()
    if not child:
        charge(f"child {number}")
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
charge("parent, after")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_workers_each_write_their_letters_and_the_parent_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'letters.db'}"

    subprocess.run([sys.executable, "-c", FORKING, url], check=True, timeout=120)

    assert asyncio.run(payloads(url)) == [b"child 1", b"child 2", b"parent, after", b"parent, before"]
