"""A broker's own life: what it says about itself, and how it ends."""

from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite, needs


class Lifecycle(Suite):
    """`Broker.diagnose` and `Broker.aclose`."""

    async def test_a_broker_has_a_name(self, bench: Bench) -> None:
        assert bench.broker.name

    async def test_the_doctor_says_what_it_found_and_what_to_do(self, bench: Bench) -> None:
        findings = await bench.broker.diagnose()

        assert findings
        assert [finding for finding in findings if not finding.check or not finding.found] == []
        assert [finding for finding in findings if finding.level != "ok" and not finding.advice] == []

    async def test_the_doctor_warns_where_nothing_outlives_the_process(self, bench: Bench) -> None:
        needs(not bench.capabilities.durable, "durable=True")

        assert {finding.level for finding in await bench.broker.diagnose()} & {"warn", "fail"}

    async def test_closing_twice_is_closing_once(self, bench: Bench) -> None:
        broker = await bench.under_test.reopen()
        await broker.aclose()
        await broker.aclose()

    async def test_closing_one_broker_does_not_close_another(self, bench: Bench) -> None:
        await (await bench.under_test.reopen()).aclose()
        await bench.publish(b"1")

        assert (await bench.take_one(await bench.worker())).message.body == b"1"
