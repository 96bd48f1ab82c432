import json

from benchmarks.load import FAILS, bodies, marked


def test_bodies_are_200_bytes_of_json_with_their_number() -> None:
    made = list(bodies(95, 10))

    assert {len(body) for body in made} == {200}
    assert [json.loads(body)["number"] for body in made] == list(range(95, 105))


def test_every_tenth_message_is_marked_to_fail_and_the_first_can_be_spared() -> None:
    assert [FAILS in body for body in bodies(0, 21)].count(True) == marked(21) == 3
    assert [FAILS in body for body in bodies(0, 21, spared=10)].count(True) == marked(21, spared=10) == 2
    assert marked(1000, spared=100) == 90
