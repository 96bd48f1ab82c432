"""What programs ask of the API and people of the console, each time about another letter."""

import html
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from benchmarks.store.load import letters
from benchmarks.store.reading import REDRIVE_ID
from redrive.core.letter import DeadLetter


class Read(NamedTuple):
    """A path that asks about a letter, and whether an answer is about it."""

    path: Callable[[DeadLetter], str]
    fits: Callable[[bytes, DeadLetter], bool]


def _json(path: Callable[[DeadLetter], str], fits: Callable[[Any, DeadLetter], bool]) -> Read:
    return Read(lambda letter: f"/api/v1/dlq/{path(letter)}", lambda body, letter: fits(json.loads(body), letter))


def _messages(**filters: str | None) -> str:
    return f"messages?{urlencode(filters)}"


def _page(path: Callable[[DeadLetter], str], text: Callable[[DeadLetter], str]) -> Read:
    return Read(path, lambda body, letter: html.escape(text(letter)).encode() in body)


def _text(letter: DeadLetter) -> str:
    return f'"order": {letter.original_message_id},'


def _hour(letter: DeadLetter) -> str:
    begins = letter.failed_at.replace(minute=0, second=0, microsecond=0)
    return urlencode({"from": f"{begins:{_WRITTEN}}", "to": f"{begins + timedelta(hours=1):{_WRITTEN}}"})


def _ticked(letter: DeadLetter) -> str:
    """This letter and those before it, as many as are on a page."""
    last = int(letter.original_message_id)
    first = max(last + 1 - _ON_A_PAGE, 0)
    return urlencode([("letter_id", one.letter_id) for one in letters(first, last + 1 - first, of=last + 1)])


_ON_A_PAGE = 50
_WRITTEN = "%Y-%m-%dT%H:%M:%SZ"

READS: Mapping[str, Read] = {
    "list of a queue": _json(
        lambda letter: _messages(queue=letter.queue),
        lambda found, letter: {one["queue"] for one in found} == {letter.queue},
    ),
    "list by error type and user": _json(
        lambda letter: _messages(error_type=letter.error_type, user_id=letter.user_id),
        lambda found, letter: letter.letter_id in {one["message_id"] for one in found},
    ),
    "one letter": _json(
        lambda letter: f"messages/{letter.letter_id}",
        lambda found, letter: bool(found["original_message_id"] == letter.original_message_id),
    ),
    "stats of a queue": _json(
        lambda letter: f"stats?{urlencode({'queue': letter.queue})}",
        lambda found, letter: letter.error_type in found["by_error_type"],
    ),
    "search for a text in one payload": _json(
        lambda letter: _messages(q=_text(letter)),
        lambda found, letter: [one["message_id"] for one in found] == [letter.letter_id],
    ),
}
"""The five, by name. A list is the newest 50 letters that are open or parked, with their payloads, masked."""

PAGES: Mapping[str, Read] = {
    "overview": _page(lambda _: "/", lambda _: "Queues"),
    "incidents": _page(lambda _: "/incidents", lambda _: "Incidents"),
    "one incident": _page(lambda letter: f"/incidents/{letter.fingerprint}", lambda letter: letter.error_type),
    "letters": _page(lambda _: "/letters", lambda _: "was refused"),
    "letters of a queue and an error type": _page(
        lambda letter: f"/letters?{urlencode({'queue': letter.queue, 'error_type': letter.error_type})}",
        lambda letter: letter.error_type,
    ),
    "letters with a text": _page(
        lambda letter: f"/letters?{urlencode({'q': letter.letter_id})}", lambda letter: letter.letter_id
    ),
    "letters of an hour": _page(lambda letter: f"/letters?{_hour(letter)}", lambda _: "was refused"),
    "letters of a tenant": _page(
        lambda letter: f"/letters?{urlencode({'tenant_id': letter.tenant_id})}", lambda letter: str(letter.tenant_id)
    ),
    "one letter": _page(lambda letter: f"/letters/{letter.letter_id}", lambda letter: letter.original_message_id),
    "redrives": _page(lambda _: "/redrives", lambda _: "Redrives"),
    "one redrive": _page(lambda _: f"/redrives/{REDRIVE_ID}", lambda _: REDRIVE_ID),
    "audit": _page(lambda _: "/audit", lambda _: "Audit"),
    "settings": _page(lambda _: "/settings", lambda _: "Settings"),
    "preview: purge": _page(lambda _: "/settings/purge?older_than=1d&state=resolved", lambda _: "would go"),
    "preview: redrive 50 letters": _page(
        lambda letter: f"/redrives/new?{_ticked(letter)}", lambda letter: letter.queue
    ),
    "preview: redrive a letter": _page(
        lambda letter: f"/redrives/new?letter_id={letter.letter_id}", lambda letter: letter.queue
    ),
    "preview: redrive what a filter finds": _page(
        lambda letter: f"/redrives/new?{urlencode({'error_type': letter.error_type, 'user_id': letter.user_id})}",
        lambda letter: letter.queue,
    ),
    "preview: redrive an incident": _page(
        lambda letter: f"/redrives/new?fingerprint={letter.fingerprint}", lambda letter: letter.queue
    ),
    "preview: discard an incident": _page(
        lambda letter: f"/discard?fingerprint={letter.fingerprint}", lambda letter: letter.queue
    ),
}
"""The console, by page. What previews an incident freezes all of its letters."""

QUESTIONS: Mapping[str, Mapping[str, Read]] = {"reads": READS, "pages": PAGES}
