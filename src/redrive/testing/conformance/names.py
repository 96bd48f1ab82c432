"""Names: hostile ones are refused before anything is touched."""

from dataclasses import replace

import pytest

from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.core.ports import Options
from redrive.testing.conformance.bench import GROUP, Bench, new_owner
from redrive.testing.conformance.suite import Suite

HOSTILE = [
    pytest.param("", id="empty"),
    pytest.param(" ", id="a space"),
    pytest.param("two words", id="two words"),
    pytest.param("line\nbreak", id="a line break"),
    pytest.param("trailing\n", id="a line break at the end"),
    pytest.param("nul\x00", id="NUL"),
    pytest.param("../../etc", id="a path upwards"),
    pytest.param("~retry", id="a reserved prefix"),
    pytest.param("wild*", id="a wildcard"),
    pytest.param("'; DROP TABLE messages; --", id="SQL"),
    pytest.param("\ud800", id="a lone surrogate"),
    pytest.param("x" * 1025, id="too long"),
]


class Names(Suite):
    """The names of queues and groups, wherever they are given."""

    @pytest.mark.parametrize("name", HOSTILE)
    async def test_a_hostile_queue_name_is_a_config_error(self, bench: Bench, name: str) -> None:
        (letter,) = await bench.given_up(b"1")
        before = sorted(await bench.broker.queues())
        with pytest.raises(ConfigError):
            await bench.broker.publish(name, [Message("", name, b"1")])
        with pytest.raises(ConfigError):
            await bench.broker.subscribe(name, group=GROUP, options=Options(owner=new_owner()))
        with pytest.raises(ConfigError):
            await bench.broker.send_back([replace(bench.send_back(letter), queue=name)])
        with pytest.raises(ConfigError):
            bench.broker.dead_letters(name)

        assert sorted(await bench.broker.queues()) == before

    @pytest.mark.parametrize("name", HOSTILE)
    async def test_a_hostile_group_name_is_a_config_error(self, bench: Bench, name: str) -> None:
        (letter,) = await bench.given_up(b"1")
        with pytest.raises(ConfigError):
            await bench.broker.subscribe(bench.queue, group=name, options=Options(owner=new_owner()))
        with pytest.raises(ConfigError):
            await bench.broker.send_back([bench.send_back(letter, group=name)])

        assert [group for queue, group in await bench.broker.queues() if queue == bench.queue] == [GROUP]

    async def test_both_mistakes_are_reported_at_once(self, bench: Bench) -> None:
        with pytest.raises(ConfigError) as caught:
            await bench.broker.subscribe("two words", group="~retry", options=Options(owner=new_owner()))

        assert len(caught.value.mistakes) == 2

    @pytest.mark.parametrize("suffix", ["", ".eu", "_v2", "-3"])
    async def test_ordinary_names_are_welcome(self, bench: Bench, suffix: str) -> None:
        name = f"{bench.queue}{suffix}"
        worker = await bench.worker(queue=name, group=f"shop{suffix}")
        await bench.publish(b"1", queue=name)

        assert (await bench.take_one(worker)).message.queue == name
