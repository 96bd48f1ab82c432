"""How the demo looks: one picture of where every message is, drawn for a terminal or said in a line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

STATES = ("done", "waiting", "scheduled", "in flight", "dead")
STYLES = {"done": "green", "waiting": "blue", "scheduled": "yellow", "in flight": "cyan", "dead": "red"}
BAR = 72
BESIDE_NEWS = 24  # lines of everything else
TOLD_FROM = 98  # columns from which on there is room for the stories


@dataclass(frozen=True, slots=True)
class Count:
    """Where the messages of a queue are. `published` is the producer's own count, `done` that of the receipts."""

    published: int = 0
    done: int = 0
    waiting: int = 0
    in_flight: int = 0
    scheduled: int = 0
    dead: int = 0

    def of(self, state: str) -> int:
        """The count of one of `STATES`."""
        found: int = getattr(self, state.replace(" ", "_"))
        return found

    @property
    def placed(self) -> int:
        """How many were found in some place; all of them, if none is lost and none is doubled."""
        return sum(self.of(state) for state in STATES)

    def __add__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class News(NamedTuple):
    """One line about what happened last."""

    at: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that is shown at one moment."""

    elapsed: float
    seconds: float
    counts: Mapping[str, Count]
    stories: Mapping[str, str]
    letters: Mapping[tuple[str, str], int] = field(default_factory=dict)
    news: Sequence[News] = ()
    next_due: float | None = None
    deaths: int = 0

    @property
    def total(self) -> Count:
        """All queues together."""
        return sum(self.counts.values(), Count())


def line(picture: Picture) -> str:
    """The picture in one line, for a log or a pipe."""
    total = picture.total
    states = "  ".join(f"{state} {total.of(state)}" for state in STATES)
    return f"{picture.elapsed:5.1f} s  published {total.published}  {states}  worker deaths {picture.deaths}"


def account(total: Count) -> str:
    """The sum that must be true at the end."""
    places = " + ".join(f"{state} {total.of(state)}" for state in STATES)
    return f"published {total.published} {'=' if total.published == total.placed else '≠'} {places}"


def draw(picture: Picture, *, width: int, height: int) -> RenderableType:
    """The live view."""
    head = Text.assemble(
        ("redrive demo", "bold"),
        (f"   {min(picture.elapsed, picture.seconds):.0f} of {picture.seconds:.0f} s", "bold"),
        ("   a queue in an SQLite file, two worker processes; Ctrl-C ends it", "dim"),
    )
    room = max(0, height - BESIDE_NEWS)
    return _page(
        head,
        _overview(picture),
        _queues(picture, told=width >= TOLD_FROM),
        _letters(picture.letters),
        _news(picture.news[-room:] if room else ()),
    )


def draw_end(picture: Picture, *, width: int) -> RenderableType:
    """What is left on the terminal afterwards, the sum last."""
    total = picture.total
    right = total.published == total.placed
    verdict = "every message is accounted for" if right else "the sum is wrong: this is a bug in Redrive"
    deaths = f"{picture.deaths} worker process{'es' * (picture.deaths != 1)} died on the way and started anew"
    return _page(
        Text.assemble(("redrive demo", "bold"), (f"   after {picture.elapsed:.0f} s", "dim")),
        _overview(picture),
        _queues(picture, told=width >= TOLD_FROM),
        _letters(picture.letters),
        Text(deaths, style="dim"),
        Text.assemble(
            account(total) + "\n", (f"{'✓' if right else '✗'} {verdict}", "bold green" if right else "bold red")
        ),
    )


def _page(*parts: RenderableType | None) -> RenderableType:
    return Group(*(Padding(part, (1, 0, 0, 2)) for part in parts if part is not None))


def _overview(picture: Picture) -> Text:
    total = picture.total
    legend = _bar(total).append("\n")
    for state in STATES:
        legend.append("● ", style=STYLES[state]).append(f"{state} ").append(f"{total.of(state)}   ", style="bold")
    if picture.next_due is not None:
        legend.append(f"next retry in {max(picture.next_due, 0):.1f} s", style="dim")
    return legend


def _bar(total: Count) -> Text:
    placed = total.placed
    if not placed:
        return Text("░" * BAR, style="dim")
    cells = {state: max(1, round(BAR * total.of(state) / placed)) for state in STATES if total.of(state)}
    longest = max(cells, key=cells.__getitem__)
    cells[longest] += BAR - sum(cells.values())  # what is there is seen, however little
    return Text.assemble(*(("█" * width, STYLES[state]) for state, width in cells.items()))


def _queues(picture: Picture, *, told: bool) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("queue")
    if told:
        table.add_column("what happens there", style="dim")
    for title in ("published", *STATES):
        table.add_column(title, justify="right")
    for queue, count in picture.counts.items():
        table.add_row(queue, *([picture.stories[queue]] if told else []), *_numbers(count))
    table.add_row(Text("total", style="bold"), *([""] if told else []), *_numbers(picture.total, bold=True))
    return table


def _numbers(count: Count, *, bold: bool = False) -> Iterable[Text]:
    yield Text(str(count.published), style="bold" if bold else "")
    for state in STATES:
        number = count.of(state)
        style = STYLES[state] if number else "dim"
        yield Text(str(number), style=f"bold {style}" if bold else style)


def _letters(letters: Mapping[tuple[str, str], int]) -> RenderableType | None:
    if not letters:
        return None
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("dead letters by error")
    table.add_column("reason", style="dim")
    table.add_column("", justify="right")
    table.add_column("")
    most = max(letters.values())
    for (error_type, reason), number in sorted(letters.items(), key=lambda item: -item[1]):
        table.add_row(error_type, reason, str(number), Text("█" * max(1, 30 * number // most), style="red"))
    return table


def _news(news: Sequence[News]) -> RenderableType | None:
    if not news:
        return None
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("last events", style="dim")
    table.add_column("", width=10)
    table.add_column("", overflow="ellipsis", no_wrap=True)
    for at, where, text in news:
        table.add_row(at, where, text)
    return table


def fact(picture: Picture) -> dict[str, Any]:
    """The end as one JSON line."""
    total = picture.total
    return {
        "published": total.published,
        **{state.replace(" ", "_"): total.of(state) for state in STATES},
        "adds_up": total.published == total.placed,
        "worker_deaths": picture.deaths,
        "letters": {error_type: number for (error_type, _), number in picture.letters.items()},
    }
