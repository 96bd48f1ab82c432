from redrive.brokers.redis import settling
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.worker import runner


def test_fields_that_are_read_by_place_stand_there() -> None:
    assert Delivery._fields[runner.MESSAGE] == "message"
    assert Delivery._fields[runner.CRASHES] == "crashes"
    assert Delivery._fields[runner.LETTER_ID] == "letter_id"
    assert Message._fields[runner.EXPIRES_AT] == "expires_at"
    assert Delivery._fields[settling.TOKEN] == "token"
