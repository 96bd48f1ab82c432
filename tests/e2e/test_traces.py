"""One trace over two processes: whoever publishes, and the worker, with a retry in between."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.serving import Shop, until

APP = """
import os
from pathlib import Path

import redrive
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def line(span):
    return span.to_json(indent=None) + "\\n"


provider = TracerProvider()
file = Path(f"spans-{os.getpid()}").open("a")
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=file, formatter=line)))
trace.set_tracer_provider(provider)

app = redrive.App("sqlite:///shop.db", name="shop", tracing=True)


@app.consumer("orders", retry=[0.01], breaker=None)
async def charge(body: bytes, delivery: redrive.Delivery) -> None:
    if delivery.attempt == 1:
        raise TimeoutError("no answer")
"""

PUBLISH = """
from first import app
from opentelemetry import trace

with trace.get_tracer("checkout").start_as_current_span("checkout"), app.sync() as shop:
    shop.publish("orders", b"{}")
"""


def spans(folder: Path) -> list[dict[str, Any]]:
    """What was exported so far, with the file it was found in."""
    files = {path.name: path.read_text("utf-8").splitlines(keepends=True) for path in folder.glob("spans-*")}
    return [{"file": name, **json.loads(line)} for name, found in files.items() for line in found if line[-1:] == "\n"]


def test_attempts_of_a_worker_stand_below_the_publishing_of_another_process(tmp_path: Path) -> None:
    shop = Shop(tmp_path, REDRIVE_LOG_LEVEL="error")
    (tmp_path / "first.py").write_text(APP, "utf-8")
    subprocess.run([sys.executable, "-c", PUBLISH], cwd=tmp_path, env=shop.env, check=True, timeout=60)
    with shop.process("worker", "first:app"):
        until(lambda: len(spans(tmp_path)) == 4, what="four spans are exported")

    checkout, published, *attempts = sorted(spans(tmp_path), key=lambda span: span["start_time"])
    assert [span["name"] for span in (checkout, published)] == ["checkout", "publish orders"]
    assert {span["context"]["trace_id"] for span in (published, *attempts)} == {checkout["context"]["trace_id"]}
    assert [span["parent_id"] for span in attempts] == [published["context"]["span_id"]] * 2
    assert [span["attributes"].get("error.type") for span in attempts] == ["TimeoutError", None]
    assert {span["file"] for span in attempts} & {published["file"]} == set()
