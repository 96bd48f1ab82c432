from datetime import timedelta
from itertools import permutations

from redrive.core.incident import Incident, incidents_of
from tests.unit.core.letters import AT, a_letter

LETTERS = [
    a_letter(letter_id="1", fingerprint="a", queue="orders", failed_at=AT),
    a_letter(letter_id="2", fingerprint="a", queue="billing", failed_at=AT + timedelta(hours=2)),
    a_letter(letter_id="3", fingerprint="b", failed_at=AT),
    a_letter(letter_id="4", fingerprint="c", failed_at=AT + timedelta(hours=1)),
]


def test_letters_with_one_fingerprint_are_one_incident() -> None:
    assert incidents_of(LETTERS)[0] == Incident(
        fingerprint="a",
        count=2,
        first_at=AT,
        last_at=AT + timedelta(hours=2),
        queues=("billing", "orders"),
        sample=LETTERS[1],
    )


def test_the_largest_incident_comes_first_then_the_latest_in_whatever_order_letters_come() -> None:
    for letters in permutations(LETTERS):
        assert [incident.fingerprint for incident in incidents_of(letters)] == ["a", "c", "b"]


def test_no_letters_make_no_incident() -> None:
    assert incidents_of([]) == []
