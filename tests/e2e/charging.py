"""A shop that charges orders on Redis: its worker, the service and commands are processes; every run is noted."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.e2e.serving import Api, Shop, until

APP = """
import json
import os
import redrive

VERSION = os.environ["SHOP_VERSION"]
app = redrive.App(os.environ["SHOP_BROKER"], name="shop", version=VERSION, grace=5)


@app.consumer("orders", retry=[0.01, 0.01], breaker=None)
async def charge(order: dict[str, int], delivery: redrive.Delivery) -> None:
    with open("runs", "a") as file:
        file.write(json.dumps([order["id"], delivery.generation, order.get("price")]) + "\\n")
    if VERSION == "broken":
        raise ValueError("no rate")
    order["price"]
"""


class ChargingShop(Shop):
    """A shop whose store and broker are at these addresses. Orders die on the version `broken`."""

    def __init__(self, folder: Path, *, broker: str, store: str) -> None:
        super().__init__(
            folder,
            SHOP_BROKER=broker,
            REDRIVE_BROKER=broker,
            REDRIVE_STORE=store,
            REDRIVE_COLLECT_QUEUES="orders",
            REDRIVE_SERVICE_RATE_LIMIT="10000",
            REDRIVE_LOG_LEVEL="error",
        )
        (folder / "first.py").write_text(APP, "utf-8")
        (folder / "runs").touch()

    def worker(self, version: str) -> AbstractContextManager[Popen[str]]:
        self.env["SHOP_VERSION"] = version
        return self.process("worker", "first:app")

    def publish(self, orders: Iterable[int]) -> None:
        lines = "\n".join(json.dumps({"id": number, "price": 10}) for number in orders)
        (self.folder / "orders").write_text(lines, "utf-8")
        self.run("publish", "orders", "@orders", "--lines")

    def runs(self, generation: int) -> Counter[int]:
        """How often the handler saw each order in a generation."""
        return Counter(order for order, number, _ in self.noted() if number == generation)

    def noted(self) -> list[list[Any]]:
        """Every run of the handler: which order, in which generation, at which price."""
        lines = (self.folder / "runs").read_text("utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def die(self, api: Api, orders: Iterable[int]) -> None:
        """Publish orders to a broken worker; return when a letter of each has been collected."""
        before = total(api)
        wanted = [*orders]
        self.publish(wanted)
        with self.worker("broken"):
            until(lambda: total(api) == before + len(wanted), what="all are dead, and collected")


def total(api: Api) -> int:
    """How many letters are open or parked."""
    number: int = api.get("/api/v1/dlq/stats")["total_messages"]
    return number


def states(api: Api) -> dict[str, int]:
    every = ("open", "redriving", "resolved", "discarded", "parked")
    answer = api.client.get("/api/v1/dlq/stats", params={"state": every})
    assert answer.status_code == 200, answer.text
    found: dict[str, int] = answer.json()["by_state"]
    return found


def begin(api: Api, **order: Any) -> str:
    """Look at what a redrive would do, and begin exactly that; its id."""
    planned = post(api, "/api/v1/redrives", **order)
    assert planned["dry_run"] is True
    begun = post(api, "/api/v1/redrives", **order, dry_run=False, preview=planned["preview"])
    return str(begun["redrive_id"])


def progress(api: Api, redrive_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/api/v1/redrives/{redrive_id}")
    return found


def post(api: Api, path: str, **body: Any) -> dict[str, Any]:
    answer = api.client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def metric(api: Api, name: str, **labels: str) -> float:
    """The sum of a metric's series that have these labels."""
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    lines = [line for line in api.client.get("/metrics").text.splitlines() if line.startswith(f"{name}{{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(one in line for one in wanted))
