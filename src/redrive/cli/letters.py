"""`redrive letters`: dead letters that were collected: look at them, decide about them, send them back."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import App, Parameter

from redrive.cli.anywhere import STORE, Anywhere, letter_named, letters_named, open_clerk, rows_of
from redrive.cli.clerk import Clerk
from redrive.cli.filters import EVERY, UNSURE, Choice, Filter, as_length, refuse_confusion
from redrive.cli.output import Exit, complain, show, tell
from redrive.cli.sheet import Part, tell_sheet
from redrive.core.life import LetterState
from redrive.core.stored import Stats

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


@letters.default
@letters.command(name="list")
async def list_letters(
    *,
    chosen: Filter = EVERY,
    count: Annotated[int, Parameter(help="How many, the latest first; 50 unless told.")] = 50,
    after: Annotated[str | None, Parameter(help="Go on behind the last page, as it said.")] = None,
    at: Anywhere = STORE,
) -> None:
    """Show letters, those that came last first: the open ones, unless --state says others."""
    from redrive.cli.letter_view import COLUMNS, fact_of

    query = chosen.query(now=datetime.now(UTC), states=(LetterState.OPEN,))
    async with open_clerk(at) as clerk:
        page = await rows_of(
            lambda limit, after: clerk.letters.find(query, limit=limit, after=after), count=count, after=after
        )
    noted = any(row.note for row in page.rows)
    state = f"{' or '.join(query.states)} " if query.states else ""
    empty = f"no {state}letters match" if chosen != EVERY else f"no {state}letters"
    columns = COLUMNS if noted else COLUMNS[:-1]
    show(map(fact_of, page.rows), columns, as_json=at.json, empty=empty)
    if page.after is not None:
        complain([f"there are more: --after {page.after}"])


@letters.command(name="show")
async def show_letter(
    letter_id: LetterId,
    /,
    *,
    reveal: Annotated[
        bool, Parameter(help="Unmasked, which goes on record; a store of your own is always shown so.")
    ] = False,
    at: Anywhere = STORE,
) -> None:
    """Show one letter whole: what happened, where, its attempts, its payload, and what was done about it."""
    from redrive.cli.letter_view import head_of, parts_of, whole_fact

    async with open_clerk(at) as clerk:
        seen = await clerk.letters.show(await letter_named(clerk.letters, letter_id), reveal=reveal)
    fact = whole_fact(seen) if at.json else {}
    tell_sheet(fact, head_of(seen), parts_of(seen, now=datetime.now(UTC)), as_json=at.json)


@letters.command
async def stats(
    *, queue: Annotated[str | None, Parameter(help="Only this queue.")] = None, at: Anywhere = STORE
) -> None:
    """Count letters: by state, reason, error and queue, exactly."""
    async with open_clerk(at) as clerk:
        found = await clerk.letters.stats(queue)
    where = f" of {queue}" if queue else ""
    fact = {name: getattr(found, name) for name in Stats.__slots__}
    tell_sheet(fact, f"{found.total:,} letters{where}", _counts(found), as_json=at.json)


@letters.command
async def note(letter_id: LetterId, text: str, /, *, at: Anywhere = STORE) -> None:
    """Put a note on a letter, for the next person who looks at it."""
    async with open_clerk(at) as clerk:
        letter_id = await letter_named(clerk.letters, letter_id)
        await clerk.letters.note(letter_id, text)
    tell({"letter_id": letter_id, "note": text}, f"noted on {letter_id}", as_json=at.json)


@letters.command
async def discard(
    *letter_ids: LetterId,
    chosen: Filter = EVERY,
    choice: Choice = UNSURE,
    why: Annotated[str, Parameter(help="What the audit should say.")] = "",
    at: Anywhere = STORE,
) -> Exit:
    """Decide that letters are not needed: they stay in the store, and nobody has to look at them any more."""
    from redrive.cli.bulk import preview_of, words_of
    from redrive.triage.selection import Wanted

    refuse_confusion(letter_ids, chosen, choice)
    async with open_clerk(at) as clerk:
        wanted = Wanted(
            query=chosen.query(now=datetime.now(UTC)),
            letter_ids=await letters_named(clerk.letters, letter_ids),
            everything=choice.everything or chosen.any_state,
            states=(LetterState.OPEN, LetterState.PARKED),
        )
        if not (choice.yes or letter_ids):
            preview_of(await clerk.letters.preview(wanted), "discard", as_json=at.json)
            return Exit.OK
        done = await clerk.letters.discard(wanted, why=why)
        already = await _discarded(clerk, wanted.letter_ids) - done.discarded if done.changed and letter_ids else 0
    left = f"; {already} discarded already" if already else ""
    if done.changed > already:
        left += f"; {done.changed - already} had changed and were left alone"
    tell(done._asdict(), f"discarded {words_of(done.discarded)}{left}", as_json=at.json)
    return Exit.NO if done.changed else Exit.OK


async def _discarded(clerk: Clerk, letter_ids: Sequence[str]) -> int:
    """How many of these are discarded by now."""
    states = [(await clerk.letters.show(one, reveal=False)).stored.life.state for one in letter_ids]
    return states.count(LetterState.DISCARDED)


@letters.command
async def purge(
    *,
    older_than: Annotated[str, Parameter(help="Failed longer ago than this, such as 90d.")],
    chosen: Filter = EVERY,
    yes: Annotated[bool, Parameter(help="Do it; without, it is only shown.")] = False,
    at: Anywhere = STORE,
) -> None:
    """Remove old letters from the store for good; those that are out are kept. Tombstones stay."""
    from redrive.cli.bulk import count_of, words_of

    length = as_length("--older-than", older_than)
    query = chosen.query(now=datetime.now(UTC))
    async with open_clerk(at) as clerk:
        found = await clerk.letters.purge(query, older_than=length, dry_run=not yes)
    fact = {"dry_run": not yes, "letters": found.count.number, "capped": found.count.capped, "before": found.before}
    text = (
        f"purged {words_of(found.count.number)}"
        if yes
        else f"would purge {count_of(found.count)} letters; add --yes to do it"
    )
    tell({**fact, "selection": found.words}, text, as_json=at.json)


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
