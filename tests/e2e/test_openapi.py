"""The live service, asked by a machine that has read its OpenAPI document: what it allows, and what it forbids.

Every operation in every phase: examples, borders of each parameter, random input, chains of calls. An answer must be
one that the document knows, never a 5xx but an honest 503, and what the document forbids must be refused.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.charging import post, states, total
from tests.e2e.serving import Api, Shop, die, until

LETTERS = 40
SEED = 20260131

# What the document cannot say, and is a 400 for that reason: why, and of which operations.
BAD_REQUESTS = {
    "a cursor comes from an earlier page": (
        *("GET /api/v1/audit", "GET /api/v1/dlq/messages", "GET /api/v1/incidents"),
        *("GET /api/v1/letters", "GET /api/v1/redrives"),
    ),
    "without a filter, all of them must be asked for": ("DELETE /api/v1/dlq/messages", "GET /api/v1/export"),
    "a time begins before it ends, and is not too long": ("GET /api/v1/analytics",),
    "letters, or a body, are named in one way": (
        *("POST /api/v1/letters/discard", "POST /api/v1/letters/{letter_id}/edit", "POST /api/v1/redrives"),
    ),
    "a duration is a text, or more than zero": (
        *("POST /api/v1/incidents/{incident_id}/mute", "POST /api/v1/letters/purge", "POST /api/v1/tokens"),
    ),
}

# One worker: until 3.11.8, two threads of CPython that parse at once are told of a recursion that is not there.
CONFIGURATION = """
seed = {seed}
color = false
continue-on-failure = true
request-timeout = 30
workers = 1

[generation]
max-examples = {examples}
database = "none"

[phases.stateful.generation]
max-examples = {chains}

[dictionaries]
letters = {{ values = {letters} }}
incidents = {{ values = {incidents} }}
redrives = {{ values = {redrives} }}

[parameters]
"path.letter_id" = {{ dictionary = "letters", probability = 0.7 }}
"path.message_id" = {{ dictionary = "letters", probability = 0.7 }}
"path.incident_id" = {{ dictionary = "incidents", probability = 0.7 }}
"path.redrive_id" = {{ dictionary = "redrives", probability = 0.7 }}

[[operations]]  # a stream that goes on for ten minutes: tests of its own listen to it
include-path = "/api/v1/events"
enabled = false

[[operations]]  # it would find the token that it asks with, and revoke it
include-path = "/api/v1/tokens/{{token_id}}/revoke"
enabled = false
"""
MAY_BE_BAD = """
[[operations]]  # {why}
include-name = {names}
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]
"""


# What is random may hit upon a value that no document can forbid. Whether valid input is accepted is asked by examples
# and at the borders, which are drawn before a store is asked: once is enough.
RANDOM = {"Fuzzing", "Stateful"}
ROUNDS = {"sqlite": [{"Examples", "Coverage"}, RANDOM], "postgres": [{"Examples", *RANDOM}]}


@pytest.mark.parametrize("store", ROUNDS)
def test_the_service_does_what_its_document_says(
    tmp_path: Path, request: pytest.FixtureRequest, empty_redis: str, store: str
) -> None:
    url = request.getfixturevalue("empty_postgres") if store == "postgres" else "sqlite:///letters.db"
    shop = Shop(tmp_path, REDRIVE_STORE=url, REDRIVE_SERVICE_RATE_LIMIT="100000", REDRIVE_LOG_LEVEL="error")
    for number in range(LETTERS):
        die(empty_redis, f'{{"order": {number}}}')
    (issued,) = shop.facts("tokens", "issue", "kim", "--role", "admin")
    with shop.service("--broker", empty_redis, "--queue", "orders") as api:
        api.client.headers["Authorization"] = f"Bearer {issued['secret']}"
        until(lambda: total(api) == LETTERS, what="the letters are collected")
        _configure(tmp_path, examples=4, chains=20, **_known(api))

        for phases in ROUNDS[store]:
            words = ["--phases", ",".join(phases).lower()]
            if phases >= RANDOM:
                words += ["--exclude-checks", "positive_data_acceptance"]
            asked = _ask(shop, f"{api.client.base_url}/openapi.json", *words, secret=issued["secret"])
            assert asked.returncode == 0, asked.stdout[-20_000:] + asked.stderr
            assert _phases(asked.stdout) == phases
        assert api.get("/healthz") == {"status": "ok"}
        assert api.get("/api/v1/audit/verify")["holds"] is True


def _ask(shop: Shop, document: str, *words: str, secret: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "schemathesis.cli", "run", document, *words]
    return subprocess.run(
        [*command, "--header", f"Authorization: Bearer {secret}"],
        cwd=shop.folder,
        env=shop.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def _known(api: Api) -> dict[str, list[str]]:
    """Ids of what there is. Half of the letters are out: they are there even after a purge of all."""
    letters = [letter["message_id"] for letter in api.letters()]
    out = post(api, "/api/v1/redrives", letter_ids=letters[::2], dry_run=False)
    until(lambda: states(api).get("redriving") == LETTERS // 2, what="half of them are sent")
    incidents = [incident["incident_id"] for incident in api.get("/api/v1/incidents")]
    return {"letters": letters, "incidents": incidents, "redrives": [out["redrive_id"]]}


def _configure(folder: Path, **values: object) -> None:
    written = [CONFIGURATION.format(seed=SEED, **values)]
    written += [MAY_BE_BAD.format(why=why, names=[*names]) for why, names in BAD_REQUESTS.items()]
    (folder / "schemathesis.toml").write_text("\n".join(written), "utf-8")


def _phases(said: str) -> set[str]:
    """Those that were gone through without a finding."""
    summary = said.partition("Test Phases:")[2].partition("\n\n")[0]
    return {*re.findall(r"✅ (\w+)", summary)}
