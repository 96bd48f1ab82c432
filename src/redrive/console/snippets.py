"""What a person takes along from a letter: commands and a test, ready to run."""

import json
import shlex
from dataclasses import dataclass
from urllib.parse import quote

from redrive.console.clip import weight
from redrive.core.errors import DeadLetterError
from redrive.core.printable import printable
from redrive.core.stored import StoredLetter
from redrive.triage.export import app_of, pytest_file

LARGEST_TEST = 12 * 1024
_UNKNOWN_APP = "your_module:app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippets:
    """Texts to copy. To look at a letter and to send it back stand apart: who pastes one must not do the other.

    `test` is a test, or the command that writes one; empty where there can be none.
    """

    curl: str
    cli: str
    send_curl: str
    send_cli: str
    test: str
    test_note: str


def snippets_of(shown: StoredLetter, *, service: str, needs_token: bool, is_hidden: bool) -> Snippets:
    """The snippets of a letter. `service` is where the API is; with `is_hidden`, parts of the letter are masked."""
    letter_id = shown.letter.letter_id
    app = app_of(shown.letter.handler) or _UNKNOWN_APP
    test, note = _test(shown, app, service=service, is_hidden=is_hidden)
    token = ' -H "Authorization: Bearer $REDRIVE_TOKEN"' if needs_token else ""
    order = quoted(json.dumps({"letter_ids": [letter_id], "dry_run": False}))
    look, send = quoted(f"{service}/api/v1/letters/{quote(letter_id, safe='')}"), quoted(f"{service}/api/v1/redrives")
    name, at = quoted(letter_id), f"--url {quoted(service)}"
    return Snippets(
        curl=f"curl -sS{token} {look}",
        cli=f"redrive letters show {name} {at}\nredrive letters try {name} {app} {at}  # runs the handler here",
        send_curl=(f"curl -sS{token} -H 'Content-Type: application/json' \\\n  -d {order} {send}"),
        send_cli=f"redrive letters redrive {name} {at} --yes",
        test=test,
        test_note=note,
    )


def _test(shown: StoredLetter, app: str, *, service: str, is_hidden: bool) -> tuple[str, str]:
    name = quoted(shown.letter.letter_id)
    command = f"redrive letters export {name} --pytest --app {app} --url {quoted(service)} > test_letter.py"
    if is_hidden:
        return command, "Parts of this letter are masked. This command writes the test; revealed, it stands here."
    try:
        text = pytest_file(shown, app)
    except DeadLetterError:
        return "", "No copy of the message was kept: there is nothing to run a test on."
    if weight(text) > LARGEST_TEST:
        return command, "The message is too large to stand here as a test. This command writes it."
    guessed = app != _UNKNOWN_APP
    said = f"The app is taken to be {app}." if guessed else "Put in where your app is."
    return text, f"Save it as test_letter.py and run pytest. {said}"


def quoted(text: str) -> str:
    """A word for a shell. What cannot be typed there is escaped, so that nothing hides in what is copied."""
    return shlex.quote(printable(text))
