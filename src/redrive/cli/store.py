"""`redrive store`: the store itself."""

from cyclopts import App

from redrive.cli.desk import STORE, AtStore
from redrive.cli.output import tell
from redrive.core.ports.store import Recountable

store = App(name="store", help="Look after the store itself.")


@store.command
async def recount(*, at: AtStore = STORE) -> None:
    """Count every letter again, and mend the numbers beside them: for a MongoDB in which letters were removed by hand.

    The other stores count in the transaction that changes a letter: there is nothing to mend.
    """
    from redrive.wiring import open_existing_store

    opened = open_existing_store(at.store_url)
    try:
        if not isinstance(opened, Recountable):
            tell({"letters": None, "mended": 0}, "nothing to mend: this store counts as it changes", as_json=at.json)
            return
        found = await opened.recount()
    finally:
        await opened.aclose()
    said = f"counted {found.letters:,} letters, mended {found.mended:,} numbers"
    tell({"letters": found.letters, "mended": found.mended}, said, as_json=at.json)
