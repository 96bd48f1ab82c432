"""`redrive letters`: dead letters that were collected: look at them, decide about them, send them back."""

from typing import Annotated

from cyclopts import App, Parameter

from redrive.cli.desk import STORE, AtStore, letter_named, letters_named, open_desk
from redrive.cli.filters import EVERY, UNSURE, Choice, Filter, as_length, refuse_confusion
from redrive.cli.output import Exit, complain, show, tell
from redrive.cli.sheet import Part, tell_sheet
from redrive.core.errors import ConfigError
from redrive.core.life import LetterState
from redrive.core.ports.store import LetterRow, Stats
from redrive.core.query import Query
from redrive.triage.desk import Desk

letters = App(name="letters", help="Look at collected dead letters, decide about them, send them back.")
letters.command("redrive.cli.letter_tryout:try_letter", name="try", help="Run the current handler on a letter, here.")
letters.command("redrive.cli.letter_files:edit", name="edit", help="Change what will be sent back; the original stays.")
letters.command(
    "redrive.cli.letter_redrive:redrive", name="redrive", help="Send letters back and hear what becomes of them."
)
letters.command(
    "redrive.cli.letter_files:export", name="export", help="Write letters as JSON, or one as a pytest test."
)
letters.command("redrive.cli.letter_files:import_letters", name="import", help="Take in letters that were exported.")
letters.command(
    "redrive.cli.letter_files:verify", name="verify", help="Compare a letter's payload with a file by hash."
)

LetterId = Annotated[str, Parameter(help="A letter's id, or as much of its beginning as names only one.")]
PAGE = 200


@letters.default
@letters.command(name="list")
async def list_letters(
    *,
    chosen: Filter = EVERY,
    count: Annotated[int, Parameter(help="How many, the latest first; 50 unless told.")] = 50,
    after: Annotated[str | None, Parameter(help="Go on behind the last page, as it said.")] = None,
    at: AtStore = STORE,
) -> None:
    """Show letters, those that came last first: the open ones, unless --state says others."""
    from redrive.cli.letter_view import COLUMNS, fact_of

    if count < 1:
        raise ConfigError(f"--count: expected at least 1, got {count}")
    async with open_desk(at) as desk:
        query = chosen.query(now=desk.clock.now(), state=LetterState.OPEN)
        rows, after = await _found(desk, query, count=count, after=after)
    noted = any(row.note for row in rows)
    state = f"{query.state} " if query.state else ""
    empty = f"no {state}letters match" if chosen != EVERY else f"no {state}letters"
    columns = COLUMNS if noted else COLUMNS[:-1]
    show(map(fact_of, rows), columns, as_json=at.json, empty=empty)
    if after is not None:
        complain([f"there are more: --after {after}"])


@letters.command(name="show")
async def show_letter(letter_id: LetterId, /, *, at: AtStore = STORE) -> None:
    """Show one letter whole: what happened, where, its attempts, its payload, and what was done about it."""
    from redrive.cli.letter_view import head_of, parts_of, whole_fact
    from redrive.triage import letters as verbs

    async with open_desk(at) as desk:
        stored = await verbs.show(desk, await letter_named(desk, letter_id))
        now = desk.clock.now()
    fact = whole_fact(stored) if at.json else {}
    tell_sheet(fact, head_of(stored), parts_of(stored, now=now), as_json=at.json)


@letters.command
async def stats(
    *, queue: Annotated[str | None, Parameter(help="Only this queue.")] = None, at: AtStore = STORE
) -> None:
    """Count letters: by state, reason, error and queue, exactly."""
    from redrive.triage import letters as verbs

    async with open_desk(at) as desk:
        found = await verbs.stats(desk, queue)
    where = f" of {queue}" if queue else ""
    fact = {name: getattr(found, name) for name in Stats.__slots__}
    tell_sheet(fact, f"{found.total:,} letters{where}", _counts(found), as_json=at.json)


@letters.command
async def note(letter_id: LetterId, text: str, /, *, at: AtStore = STORE) -> None:
    """Put a note on a letter, for the next person who looks at it."""
    from redrive.triage import letters as verbs

    async with open_desk(at) as desk:
        letter_id = await letter_named(desk, letter_id)
        await verbs.note(desk, letter_id, text)
    tell({"letter_id": letter_id, "note": text}, f"noted on {letter_id}", as_json=at.json)


@letters.command
async def discard(
    *letter_ids: LetterId,
    chosen: Filter = EVERY,
    choice: Choice = UNSURE,
    why: Annotated[str, Parameter(help="What the audit should say.")] = "",
    at: AtStore = STORE,
) -> Exit:
    """Decide that letters are not needed: they stay in the store, and nobody has to look at them any more."""
    from redrive.cli.bulk import preview_of, show_progress, words_of
    from redrive.triage import letters as verbs
    from redrive.triage.selection import Wanted, select

    refuse_confusion(letter_ids, chosen, choice)
    async with open_desk(at) as desk:
        wanted = Wanted(
            query=chosen.query(now=desk.clock.now()),
            letter_ids=await letters_named(desk, letter_ids),
            everything=choice.everything or chosen.state == "all",
            states=(LetterState.OPEN, LetterState.PARKED),
        )
        selection = await select(desk, wanted)
        if not (choice.yes or letter_ids):
            preview_of(selection.preview(), "discard", as_json=at.json)
            return Exit.OK
        with show_progress("discarding", total=len(selection.rows)) as advance:
            done = await verbs.discard(desk, selection, why=why, advance=advance)
    left = f"; {done.changed} had changed and were left alone" if done.changed else ""
    tell(done._asdict(), f"discarded {words_of(done.discarded)}{left}", as_json=at.json)
    return Exit.NO if done.changed else Exit.OK


@letters.command
async def purge(
    *,
    older_than: Annotated[str, Parameter(help="Failed longer ago than this, such as 90d.")],
    chosen: Filter = EVERY,
    yes: Annotated[bool, Parameter(help="Do it; without, it is only shown.")] = False,
    at: AtStore = STORE,
) -> None:
    """Remove old letters from the store for good; those that are out are kept. Tombstones stay."""
    from redrive.cli.bulk import count_of, show_progress, words_of
    from redrive.triage import letters as verbs

    length = as_length("--older-than", older_than)
    async with open_desk(at) as desk:
        query = chosen.query(now=desk.clock.now())
        found = await verbs.purge_preview(desk, query, older_than=length)
        if yes:
            with show_progress("purging", total=found.count.number) as advance:
                found = await verbs.purge(desk, query, older_than=length, advance=advance)
    fact = {"dry_run": not yes, "letters": found.count.number, "capped": found.count.capped, "before": found.before}
    text = (
        f"purged {words_of(found.count.number)}"
        if yes
        else f"would purge {count_of(found.count)} letters; add --yes to do it"
    )
    tell({**fact, "selection": found.words}, text, as_json=at.json)


async def _found(desk: Desk, query: Query, *, count: int, after: str | None) -> tuple[list[LetterRow], str | None]:
    """So many rows, over pages that may be short: a store looks for a bounded time only."""
    from redrive.triage import letters as verbs

    rows: list[LetterRow] = []
    while True:
        try:
            page = await verbs.find(desk, query, limit=min(count - len(rows), PAGE), after=after)
        except ValueError as error:
            raise ConfigError(f"--after: {error}") from error
        rows += page.rows
        after = page.after
        if after is None or len(rows) >= count:
            return rows, after


def _counts(found: Stats) -> list[Part]:
    groups = {
        "by state": found.by_state,
        "by reason": found.by_reason,
        "by error": found.by_error_type,
        "by queue": found.by_queue,
    }
    ends = [("oldest", found.oldest_at), ("newest", found.newest_at)]
    parts = []
    for title, counts in groups.items():
        largest = sorted(((name, number) for name, number in counts.items() if number), key=lambda item: -item[1])
        width = max((len(f"{number:,}") for _, number in largest), default=0)
        parts.append(Part(title, [(name, f"{number:>{width},}") for name, number in largest]))
    return [*parts, Part("failed", [(name, f"{at:%Y-%m-%d %H:%M:%S}Z") for name, at in ends if at])]
