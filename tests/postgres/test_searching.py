"""How the server looks for a text: its index on three characters depends on what is looked for."""

from sqlalchemy import Connection, text

from redrive.core.query import Query
from redrive.testing.conformance.store.bench import letter
from tests.postgres.conftest import OpenStore


async def test_every_search_is_planned_for_its_own_text(postgres_url: str, open_store: OpenStore) -> None:
    def plans(connection: Connection) -> tuple[int, int]:
        counted = "SELECT sum(custom_plans), sum(generic_plans) FROM pg_prepared_statements WHERE statement LIKE :like"
        custom, generic = connection.execute(text(counted), {"like": "%letter_text.text LIKE%"}).one()
        return int(custom), int(generic)

    store = open_store(postgres_url)
    await store.collect([letter("l1")])
    for number in range(10):  # after five, a server takes one plan for all unless told otherwise
        await store.find(Query(text=f"text {number}"))

    assert await store._database.read(plans) == (10, 0)  # noqa: SLF001 - plans are known to their connection only


async def test_a_text_is_found_while_it_waits_and_once_it_is_indexed(postgres_url: str, open_store: OpenStore) -> None:
    def places(connection: Connection) -> tuple[int, int]:
        waiting = connection.execute(text("SELECT count(*) FROM letter_text")).scalar_one()
        return waiting, connection.execute(text("SELECT count(*) FROM letter_index")).scalar_one()

    store = open_store(postgres_url)
    await store.collect([letter("l1", error_message="a rare needle")])
    where, found = [await store._database.read(places)], []  # noqa: SLF001 - nobody else knows where texts are
    found.append(await store.count(Query(text="needle")))
    while await store.tend():
        pass
    where.append(await store._database.read(places))  # noqa: SLF001
    found.append(await store.count(Query(text="needle")))

    assert where == [(1, 0), (0, 1)]
    assert [one.number for one in found] == [1, 1]
