"""Secrets planted in every input: none is in a log, in what a viewer sees, or in the store but in the original."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.e2e.charging import post, total
from tests.e2e.serving import Api, Shop, until
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer

APP = """
import os
import redrive

app = redrive.App(os.environ["SHOP_BROKER"], name="shop", grace=5)


@app.consumer("orders", retry=[0.01], breaker=None, stack=True, context=["password", "customer"])
async def charge(order: dict[str, str], message: redrive.Message) -> None:
    password = order["password"]
    headers = dict(message.headers)
    try:
        raise KeyError(f"no session at https://kim:{password}@bank.example/login?api_key={password}")
    except KeyError as error:
        raise ValueError(f"refused: password={password}, {headers['Authorization'].decode()}") from error
"""

# What is the original: a letter keeps it whole, or nothing could be sent back.
ORIGINAL = {
    "payload": "canaryPayload7Xq2",
    "header": "canaryHeader8Wb3",
    "edit": "canaryEdit9Vc4",
}
# What has no business anywhere.
ELSEWHERE = {
    "redis": "canaryRedis1Ad5",
    "away": "canaryAway2Be6",
    "postgres": "canaryPostgres3Cf7",
    "token": "rdt_canaryToken4Dg8xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "mistake": "canaryMistake5Eh9",
}
KEPT_IN = {"letter_body", "letter_text", "letter_edit"}
SEARCHED = {"letter_index": "letter_text"}  # texts move there when there is time


def test_planted_secrets_are_found_nowhere(
    tmp_path: Path, empty_postgres: str, capfd: pytest.CaptureFixture[str]
) -> None:
    store = _with_password(empty_postgres, ELSEWHERE["postgres"])
    with RedisServer(tmp_path / "redis", {"requirepass": ELSEWHERE["redis"]}) as redis:
        shop = Shop(tmp_path, SHOP_BROKER=redis.url, REDRIVE_STORE=store, REDRIVE_LOG_LEVEL="debug")
        (tmp_path / "first.py").write_text(APP, "utf-8")
        (tmp_path / "redrive.toml").write_text(_settings(redis.url), "utf-8")
        said = [shop.run("config", "show"), shop.run("doctor", "--broker", "here", status=1)]
        secrets = {
            role: shop.facts("tokens", "issue", role, "--role", role)[0]["secret"] for role in ("viewer", "operator")
        }
        with shop.service() as api:
            _use(api, secrets["operator"])
            with shop.process("worker", "first:app"):
                shop.run(
                    *("publish", "orders", json.dumps({"customer": "c-1", "password": ORIGINAL["payload"]})),
                    *("--broker", "here", "--header", f"Authorization=Bearer {ORIGINAL['header']}"),
                )
                until(lambda: total(api) == 1, what="the letter is collected")
            (letter,) = api.letters()
            _make_mistakes(api, letter["message_id"])
            _use(api, secrets["viewer"])
            said += _everything(api, letter["message_id"])
        rows = _rows(empty_postgres)

    captured = capfd.readouterr()
    logs = captured.out + captured.err
    every = {**ORIGINAL, **ELSEWHERE, **secrets}
    assert "dead letter" in logs
    assert _found(every, logs) == set()
    assert _found(every, *said) == set()
    assert _found({**ELSEWHERE, **secrets}, *rows.values()) == set()
    kept = {SEARCHED.get(table, table) for table, text in rows.items() if _found(ORIGINAL, text)}
    assert kept == KEPT_IN


def _make_mistakes(api: Api, letter_id: str) -> None:
    """Requests with secrets in them: one that is right, and some that are refused."""
    post(api, f"/api/v1/letters/{letter_id}/edit", json={"password": ORIGINAL["edit"]})
    mistake = {"password": ELSEWHERE["mistake"]}
    assert api.client.post(f"/api/v1/letters/{letter_id}/edit", json=mistake).status_code == 422
    assert api.client.post("/api/v1/redrives", content=json.dumps(mistake)[:-1]).status_code == 422
    assert api.client.get("/api/v1/letters", params=mistake).status_code == 422
    bearer = {"Authorization": f"Bearer {ELSEWHERE['token']}"}
    assert api.client.get("/api/v1/letters", headers=bearer).status_code == 401


def _everything(api: Api, letter_id: str) -> Iterator[str]:
    """What a viewer is answered at every door that can be looked through, streams aside."""
    (incident,) = api.get("/api/v1/incidents")
    ids = {
        "letter_id": letter_id,
        "message_id": letter_id,
        "incident_id": incident["incident_id"],
        "redrive_id": "none",
    }
    paths = [path for path, methods in api.get("/openapi.json")["paths"].items() if "get" in methods]
    for path in {*paths, "/docs", "/openapi.json"} - {"/api/v1/events"}:
        answer = api.client.get(path.format(**ids))
        assert answer.status_code in (200, 403, 404, 503), path
        yield answer.text
    for view in ("text", "json", "hex"):
        yield api.client.get(f"/api/v1/dlq/messages/{letter_id}", params={"view": view}).text


def _use(api: Api, secret: str) -> None:
    api.client.headers["Authorization"] = f"Bearer {secret}"


def _settings(url: str) -> str:
    away = f"redis://:{ELSEWHERE['away']}@127.0.0.1:{free_port()}"
    return f'[brokers.here]\nurl = "{url}"\nqueues = ["orders"]\n[brokers.away]\nurl = "{away}"\n'


def _with_password(url: str, password: str) -> str:
    """The same database; the server asks for no password, and any is right."""
    place = urlsplit(url)
    return place._replace(netloc=place.netloc.replace("@", f":{password}@")).geturl()


def _rows(url: str) -> dict[str, str]:
    """Everything in the store, by table."""

    async def read() -> dict[str, str]:
        connection: Any = await asyncpg.connect(url)
        try:
            tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            names = [row["tablename"] for row in tables]
            return {name: _text(await connection.fetch(f'SELECT * FROM "{name}"')) for name in names}  # noqa: S608
        finally:
            await connection.close()

    return asyncio.run(read())


def _text(rows: list[Any]) -> str:
    return "\n".join(repr(tuple(row)) for row in rows)


def _found(secrets: dict[str, str], *texts: str) -> set[str]:
    """Which of them are in these texts, in whatever case, or in hexadecimal."""
    all_of_it = "\n".join(texts).lower()
    return {name for name, one in secrets.items() if one.lower() in all_of_it or one.encode().hex() in all_of_it}
