"""Memos: what a process leaves to whoever does its work next."""

from datetime import datetime

from sqlalchemy import Connection, or_, select, update

from redrive.stores.sql.tables import memo
from redrive.stores.sql.upsert import insert


def take(connection: Connection, name: str, *, owner: str, now: datetime, until: datetime) -> bytes | None:
    """Have a memo in hand until then; what stands in it."""
    first = insert(memo).values(name=name, owner=owner, owned_until=until, body=b"")
    connection.execute(first.on_conflict_do_nothing())
    free = or_(memo.c.owner == owner, memo.c.owned_until <= now)
    taken = update(memo).where(memo.c.name == name, free).values(owner=owner, owned_until=until)
    if not connection.execute(taken).rowcount:
        return None
    body: bytes = connection.execute(select(memo.c.body).where(memo.c.name == name)).scalar_one()
    return bytes(body)


def write(connection: Connection, name: str, body: bytes, *, owner: str) -> bool:
    """Write this in a memo that is in hand."""
    mine = update(memo).where(memo.c.name == name, memo.c.owner == owner).values(body=body)
    return connection.execute(mine).rowcount == 1
