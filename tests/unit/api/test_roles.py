"""Every role at every door: the routes of the OpenAPI document against a table of this test's own."""

import pytest
from starlette.routing import Route

from redrive.api.app import ROUTERS
from redrive.api.routes import root
from redrive.core.access import Role
from tests.unit.api.stage import Stage

VIEWER, OPERATOR, ADMIN = Role.VIEWER, Role.OPERATOR, Role.ADMIN
LEAST = {
    "GET /healthz": None,
    "GET /readyz": None,
    "GET /metrics": VIEWER,
    "GET /api/v1/analytics": VIEWER,
    "GET /api/v1/audit": VIEWER,
    "GET /api/v1/audit/verify": VIEWER,
    "GET /api/v1/dlq/messages": VIEWER,
    "DELETE /api/v1/dlq/messages": ADMIN,
    "GET /api/v1/dlq/messages/{message_id}": VIEWER,
    "DELETE /api/v1/dlq/messages/{message_id}": OPERATOR,
    "GET /api/v1/dlq/messages/{message_id}/payload": OPERATOR,
    "POST /api/v1/dlq/messages/{message_id}/retry": OPERATOR,
    "GET /api/v1/dlq/stats": VIEWER,
    "GET /api/v1/events": VIEWER,
    "GET /api/v1/export": OPERATOR,
    "POST /api/v1/import": ADMIN,
    "GET /api/v1/incidents": VIEWER,
    "GET /api/v1/incidents/{incident_id}": VIEWER,
    "POST /api/v1/incidents/{incident_id}/assign": OPERATOR,
    "POST /api/v1/incidents/{incident_id}/mute": OPERATOR,
    "POST /api/v1/incidents/{incident_id}/note": OPERATOR,
    "POST /api/v1/incidents/{incident_id}/reopen": OPERATOR,
    "POST /api/v1/incidents/{incident_id}/resolve": OPERATOR,
    "GET /api/v1/letters": VIEWER,
    "POST /api/v1/letters/discard": OPERATOR,
    "POST /api/v1/letters/purge": ADMIN,
    "GET /api/v1/letters/{letter_id}": VIEWER,
    "POST /api/v1/letters/{letter_id}/edit": OPERATOR,
    "POST /api/v1/letters/{letter_id}/note": OPERATOR,
    "POST /api/v1/letters/{letter_id}/outcome": OPERATOR,
    "GET /api/v1/queues": VIEWER,
    "POST /api/v1/queues/pause": OPERATOR,
    "POST /api/v1/queues/release": OPERATOR,
    "POST /api/v1/queues/resume": OPERATOR,
    "GET /api/v1/redrives": VIEWER,
    "POST /api/v1/redrives": OPERATOR,
    "GET /api/v1/redrives/{redrive_id}": VIEWER,
    "POST /api/v1/redrives/{redrive_id}/cancel": OPERATOR,
    "POST /api/v1/redrives/{redrive_id}/pause": OPERATOR,
    "POST /api/v1/redrives/{redrive_id}/resume": OPERATOR,
    "POST /api/v1/alerts/test": ADMIN,
    "GET /api/v1/tokens": ADMIN,
    "POST /api/v1/tokens": ADMIN,
    "POST /api/v1/tokens/{token_id}/revoke": ADMIN,
}
ENDLESS = "GET /api/v1/events"


@pytest.mark.parametrize("role", [None, *Role])
async def test_a_role_opens_the_doors_that_the_table_says_and_no_other(role: Role | None) -> None:
    async with Stage(needs_token=True) as stage:
        headers = {} if role is None else await stage.token(role)
        document = (await stage.http.get("http://127.0.0.1:8800/openapi.json")).json()
        doors = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
        opened = {}
        for door in doors:
            if door == ENDLESS and role is not None:
                opened[door] = True  # a viewer's stream has tests of its own: it does not end here
                continue
            method, path = door.replace("{", "").replace("}", "").split(" ")
            answer = await stage.http.request(method, f"http://127.0.0.1:8800{path}", headers=headers)
            assert answer.status_code < 500, door
            assert answer.status_code != (403 if role is None else 401), door
            opened[door] = answer.status_code not in (401, 403)

        assert opened == {door: _may(role, least) for door, least in LEAST.items()}


def test_no_door_is_hidden_from_the_document_but_the_page_about_it() -> None:
    routes = [route for router in (root.router, *ROUTERS) for route in router.routes]

    assert [route.path for route in routes if isinstance(route, Route) and not route.include_in_schema] == ["/docs"]


def _may(role: Role | None, least: Role | None) -> bool:
    ladder = [VIEWER, OPERATOR, ADMIN]
    return least is None or (role is not None and ladder.index(role) >= ladder.index(least))
