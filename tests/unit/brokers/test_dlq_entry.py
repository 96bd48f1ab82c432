from typing import Any

import pytest

from redrive.brokers.dlq_entry import as_send_back, letter_in
from redrive.core.errors import ConfigError, DeadLetterError
from redrive.core.message import Message
from redrive.core.redrive import SendBack
from redrive.core.wire import to_fields
from tests.unit.core.letters import AT, a_letter


def test_an_entry_becomes_what_sends_its_letter_back_in_the_next_generation() -> None:
    letter = a_letter(generation=2, headers=(("raw", b"\xff"),), key=b"k", original_message_id="m1")
    entry = Message("e1", "orders.dlq", letter.payload or b"", to_fields(letter), letter.key, AT)

    found = letter_in(entry, queue="orders", broker="sqlite")

    assert found == letter
    assert as_send_back(found) == SendBack(
        letter_id=letter.letter_id,
        generation=3,
        queue="orders",
        body=b'{"order": 1}',
        headers=(("raw", b"\xff"),),
        key=b"k",
        group="shop",
        origin="m1",
    )


def test_a_foreign_entry_goes_to_the_queue_itself_and_failed_when_it_was_written() -> None:
    letter = letter_in(Message("e1", "orders.dlq", b"1", published_at=AT), queue="orders", broker="sqlite")

    assert (letter.failed_at, letter.broker) == (AT, "sqlite")
    assert (as_send_back(letter).queue, as_send_back(letter).group) == ("orders", None)


def test_a_letter_without_a_payload_cannot_be_sent_back() -> None:
    with pytest.raises(DeadLetterError, match="keeps no payload"):
        as_send_back(a_letter(None))


@pytest.mark.parametrize("changes", [{"queue": "../../etc"}, {"group": "two words"}])
def test_a_letter_with_a_hostile_name_is_not_sent_back(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        as_send_back(a_letter(**changes))
