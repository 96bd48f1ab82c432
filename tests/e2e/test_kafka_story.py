"""The whole way on Kafka, into MongoDB and past an Alertmanager; worker and service die in the middle of it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.charging import begin, progress, states, total
from tests.e2e.serving import Api, until
from tests.e2e.ticketing import TicketShop
from tests.kafka.scenes import values_in
from tests.servers.alertmanager import Alertmanager, Somebody
from tests.servers.mongo import MongoServer, client

Tickets = dict[str, dict[str, Any]]

DESK = "https://desk.example/redrive"
DATABASE, COLLECTION = "neural_hive", "execution_tickets_dlq"
QUARTER = timedelta(milliseconds=90 * 24 * 60 * 60 * 1000)


def tickets(task_type: str, numbers: Iterable[int]) -> Tickets:
    every = [{"ticket_id": f"t-{number}", "task_type": task_type, "priority": number % 3} for number in numbers]
    return {str(ticket["ticket_id"]): ticket for ticket in every}


BUILD, DEPLOY, TEST = tickets("BUILD", range(12)), tickets("DEPLOY", range(12, 22)), tickets("TEST", range(22, 32))
DEAD = {**DEPLOY, **TEST}


@pytest.fixture
def shop(tmp_path: Path, kafka_url: str, fresh_mongodb: MongoServer, alertmanager: Alertmanager) -> TicketShop:
    (tmp_path / "redrive.toml").write_text(
        f"""
        [alerts]
        alertmanager = "{alertmanager.url}"
        labels = {{ severity = "critical" }}
        growth = "off"
        [service]
        public_url = "{DESK}/"
        """
    )
    return TicketShop(tmp_path, broker=kafka_url, store=f"{fresh_mongodb.url}/{DATABASE}?collection={COLLECTION}")


def test_tickets_die_are_found_in_mongosh_and_called_about_and_go_back_each_once_past_a_dead_worker_and_a_dead_service(
    shop: TicketShop, fresh_mongodb: MongoServer, alertmanager: Alertmanager, caller: Somebody
) -> None:
    shop.issue([*BUILD.values(), *DEAD.values()])
    with shop.service() as api:
        until(api.is_ready, what="ready")
        with shop.worker("broken") as worker:
            until(lambda: total(api) == len(DEPLOY), what="those that die first are collected")
            until(lambda: len(shop.tickets("attempt 2")) == len(DEAD), what="the others are at their second attempt")
            until(lambda: shop.left(api) == len(TEST), what="all else is settled")
            incident = check_call(api, shop, caller.next_call())
            assert firing(alertmanager) == [incident]
            check_documents(latest_ten(fresh_mongodb), DEPLOY)
            shop.kill(worker, api)
        (shop.folder / "stuck").unlink()
        fresh_mongodb.pause()
        with shop.worker("broken"):
            until(lambda: shop.look(api)["dead"] == len(TEST), what="the others are dead too")
            until(lambda: shop.look(api, shop.dlq)["in_flight"] > 0, what="the service has some in hand")
            api.kill()
        fresh_mongodb.resume()

    with shop.service() as api:
        until(lambda: api.is_ready() and total(api) == len(DEAD), what="the next service has collected the others")
        check_documents(latest_ten(fresh_mongodb), TEST)
        check_all_dead(api, shop, incident)
        assert firing(alertmanager) == [incident]
        check_all_go_back(api, shop)
        assert caller.next_call()["status"] == "resolved"
        assert firing(alertmanager) == []
        check_at_the_end(api, shop, incident)
    check_collection(fresh_mongodb)


def check_call(api: Api, shop: TicketShop, call: Mapping[str, Any]) -> str:
    """Somebody is called about an incident, and shown the way to it; its id."""
    incident = str(call["labels"]["incident"])

    assert call["status"] == "firing"
    assert call["labels"] == {
        "alertname": "RedriveIncident",
        "incident": incident,
        "error_type": "first.NoRunner",
        "queue": shop.queue,
        "severity": "critical",
    }
    assert call["generatorURL"] == call["annotations"]["link"] == f"{DESK}/incidents/{incident}"
    assert api.client.get(f"/incidents/{incident}").status_code == 200
    return incident


def firing(alertmanager: Alertmanager) -> list[str]:
    return [alert["labels"]["incident"] for alert in alertmanager.firing()]


def latest_ten(server: MongoServer) -> list[dict[str, Any]]:
    """`db.execution_tickets_dlq.find().sort({processed_at: -1}).limit(10)`."""
    with client(server.url) as connected:
        return [*connected[DATABASE][COLLECTION].find().sort({"processed_at": -1}).limit(10)]


def check_documents(found: list[dict[str, Any]], wanted: Tickets) -> None:
    """Each ticket is there once, with its own fields, and says how it died."""
    times = [document["processed_at"] for document in found]
    told = {
        "error_type": "first.NoRunner",
        "error_code": "no_runner",
        "original_error": "no runner for this ticket",
        "reason": "attempts_exhausted",
        "retry_count": 3,
    }

    assert Counter(document["ticket_id"] for document in found) == dict.fromkeys(wanted, 1)
    for document in found:
        assert document.items() >= wanted[document["ticket_id"]].items()
        assert document["dlq_metadata"].items() >= told.items()
    assert times == sorted(times, reverse=True)
    assert {type(at) for at in times} == {datetime}


def check_all_dead(api: Api, shop: TicketShop, incident_id: str) -> None:
    """Nothing was lost with the worker or the service, nothing is there twice, and nothing has happened twice."""
    (incident,) = api.get("/api/v1/incidents")

    assert states(api) == {"open": len(DEAD)}
    assert (incident["incident_id"], incident["open"], incident["total"]) == (incident_id, len(DEAD), len(DEAD))
    assert found_in(shop.dlq, shop) == dict.fromkeys(DEAD, 1)
    assert shop.tickets("attempt 1") == shop.tickets("attempt 3") == dict.fromkeys(DEAD, 1)
    assert shop.tickets("attempt 2") == dict.fromkeys(DEPLOY, 1) | dict.fromkeys(TEST, 2)


def found_in(topic: str, shop: TicketShop) -> Counter[str]:
    """How often each ticket is there."""
    return Counter(json.loads(value or b"")["ticket_id"] for _, value in values_in(shop.broker, topic))


def check_all_go_back(api: Api, shop: TicketShop) -> None:
    with shop.worker("mended"):
        redrive_id = begin(api, filter={"queue": shop.queue}, canary=[1, 5])
        until(lambda: progress(api, redrive_id)["state"] == "done", what="the redrive is done")
    done = progress(api, redrive_id)

    assert done["verdict"] == "Sent 1, it succeeded on version mended; sent 5, then 14: 20 resolved, 0 unconfirmed"
    assert (done["to"], done["progress"]) == ("lane", [{"succeeded": 1}, {"succeeded": 5}, {"succeeded": 14}])


def check_at_the_end(api: Api, shop: TicketShop, incident_id: str) -> None:
    """Every ticket was done once, those that had died by way of the lane: the topic is as its producer left it."""
    assert states(api) == {"resolved": len(DEAD)}
    assert shop.tickets("done") == dict.fromkeys(BUILD, 1)
    assert shop.tickets("done", generation=1) == dict.fromkeys(DEAD, 1)
    assert found_in(shop.queue, shop) == dict.fromkeys({**BUILD, **DEAD}, 1)
    assert api.get(f"/api/v1/incidents/{incident_id}")["state"] == "resolved"
    assert api.get("/api/v1/audit/verify")["holds"] is True


def check_collection(server: MongoServer) -> None:
    """Nothing is older than ninety days now, everything is a quarter of a year later."""
    now = datetime.now(UTC)
    with client(server.url) as connected:
        letters = connected[DATABASE][COLLECTION]
        resolved = letters.count_documents({"redrive.state": "resolved"})
        removed = [
            letters.delete_many({"processed_at": {"$lt": at - QUARTER}}).deleted_count for at in (now, now + QUARTER)
        ]

    assert (resolved, removed) == (len(DEAD), [0, len(DEAD)])
