"""From a dead letter to a message in somebody's chat, through services that are processes of their own, and back."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.serving import Api, Shop, die
from tests.servers.webhook import Answer, Chat, Post, chat


def states(post: Post) -> list[tuple[str, str]]:
    """The rule and the state of each alert in a message."""
    facts = [{one["title"]: one["value"] for one in alert["fields"]} for alert in post.body["attachments"]]
    return [(one["rule"], one["state"]) for one in facts]


def shop_of(folder: Path, redis: str, there: Chat, **env: str) -> Shop:
    told = {"REDRIVE_ALERTS_WEBHOOK": there.url, "REDRIVE_ALERTS_ALLOW_PRIVATE": "true"}
    return Shop(folder, REDRIVE_BROKER=redis, **told, **env)


def end(api: Api) -> None:
    """Decide that no letter is needed."""
    for letter in api.letters():
        assert api.client.delete(f"/api/v1/dlq/messages/{letter['message_id']}").status_code < 300


def test_an_incident_is_told_once_over_a_restart_and_its_end_by_another_process(
    tmp_path: Path, empty_redis: str
) -> None:
    with chat(Answer(503)) as there:
        shop = shop_of(tmp_path, empty_redis, there, REDRIVE_LOG_LEVEL="debug")
        with shop.service("--queue", "orders"):
            die(empty_redis, "1")
            first = there.next_post()
        with shop.service("--queue", "orders") as api:
            end(api)
            last = there.next_post()
        shown = shop.run("config", "show")

    assert (states(first), states(last)) == ([("new_incident", "firing")], [("new_incident", "resolved")])
    assert there.tries == 3
    assert "s3cret" not in shown
    assert f"http://127.0.0.1:{there.port}/***" in shown


def test_two_services_over_one_store_tell_once_and_the_one_that_is_left_goes_on(
    tmp_path: Path, empty_redis: str
) -> None:
    with chat() as there:
        shop = shop_of(tmp_path, empty_redis, there)
        with shop.service("--no-collect", "--no-redrive") as left:
            with shop.service("--queue", "orders"):
                die(empty_redis, "1")
                first = there.next_post()
            end(left)
            last = there.next_post()

    assert [states(first), states(last)] == [[("new_incident", "firing")], [("new_incident", "resolved")]]
    assert there.tries == 2


def test_a_test_alert_is_sent_by_the_command_line_and_by_a_service_and_both_are_on_record(
    tmp_path: Path, empty_redis: str
) -> None:
    with chat(Answer(404, b"no_service")) as there:
        shop = shop_of(tmp_path, empty_redis, there)
        assert shop.run("alerts", "test", "--json", status=1) == ""
        (taken,) = shop.facts("alerts", "test")
        (post,) = there.posts()
        with shop.service("--queue", "orders") as api:
            url = str(api.client.base_url)
            (asked,) = [json.loads(line) for line in shop.run("alerts", "test", "--url", url, "--json").splitlines()]
            from_service = there.posts()
        records: list[dict[str, Any]] = shop.facts("audit", "list")

    assert (taken["notifier"], taken["taken"], taken["why"]) == ("webhook", True, "")
    assert asked == taken
    assert states(post) == states(from_service[0]) == [("test", "firing")]
    assert [one["verb"] for one in records] == ["alerts.test"] * 3
    assert [*records[-1]["detail"]["notifiers"].values()] == ["127.0.0.1 answered 404: no_service"]
    assert "s3cret" not in json.dumps(records)
