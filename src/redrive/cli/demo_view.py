"""How the demo looks: one picture of where every message is, drawn for a terminal or said in a line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

STATES = ("done", "waiting", "scheduled", "in flight", "dead", "discarded", "purged")
STYLES = dict(zip(STATES, ("green", "blue", "yellow", "cyan", "red", "magenta", "magenta"), strict=True))
BY_HAND = ("purged",)  # what only a person does
BAR = 72
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
    discarded: int = 0
    purged: int = 0

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


class Line(NamedTuple):
    """One line of the story: what has been done about dead letters, or is being done."""

    text: str
    done: bool = False


class Trouble(NamedTuple):
    """An incident as the demo shows it."""

    error_type: str
    queue: str
    total: int
    open: int


class News(NamedTuple):
    """One line about what happened last."""

    at: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that is shown at one moment."""

    elapsed: float
    seconds: float | None
    counts: Mapping[str, Count]
    stories: Mapping[str, str]
    incidents: Sequence[Trouble] = ()
    story: Sequence[Line] = ()
    is_told: bool = False
    news: Sequence[News] = ()
    next_due: float | None = None
    deaths: int = 0
    purged: int = 0
    url: str = ""

    @property
    def total(self) -> Count:
        """All queues together."""
        return sum(self.counts.values(), Count(purged=self.purged))


def line(picture: Picture) -> str:
    """The picture in one line, for a log or a pipe."""
    total = picture.total
    states = "  ".join(f"{state} {total.of(state)}" for state in _shown(total))
    return f"{picture.elapsed:5.1f} s  published {total.published}  {states}  worker deaths {picture.deaths}"


def account(total: Count) -> str:
    """The sum that must be true at the end."""
    states = [state for state in STATES if state not in BY_HAND or total.of(state)]
    places = " + ".join(f"{state} {total.of(state)}" for state in states)
    return f"published {total.published} {'=' if total.published == total.placed else '≠'} {places}"


def draw(picture: Picture, *, width: int, height: int) -> RenderableType:
    """The live view."""
    head = Text.assemble(
        ("redrive demo", "bold"),
        (f"   {_time(picture)}", "bold"),
        (f"   {picture.url}" if picture.url else "", "bold underline"),
        ("   Ctrl-C ends it", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    always = (head, _overview(picture), _queues(picture, told=width >= TOLD_FROM))
    room = height - _ALWAYS - len(picture.counts)
    return _page(*always, *_what_fits(picture, width=width, room=room))


def _time(picture: Picture) -> str:
    if picture.seconds is None:
        return f"{picture.elapsed:.0f} s"
    return f"{min(picture.elapsed, picture.seconds):.0f} of {picture.seconds:.0f} s"


def _what_fits(picture: Picture, *, width: int, room: int) -> Iterable[RenderableType | None]:
    """What is told beside the numbers, the story first: as much as there is room for."""
    for lines, part in (
        (_story_height(picture, width=width), _story(picture)),
        (len(picture.incidents) + _ROWS_BESIDE, _incidents(picture.incidents)),
    ):
        if part is not None and lines <= room:
            room -= lines
            yield part
    if room > _ROWS_BESIDE:
        yield _news(picture.news[_ROWS_BESIDE - room :])


def draw_end(picture: Picture, *, width: int) -> RenderableType:
    """What is left on the terminal afterwards, the sum last."""
    total = picture.total
    right = total.published == total.placed
    verdict = (
        "every message is accounted for"
        if right
        else "the sum is wrong: a bug in Redrive, or letters were imported by hand"
    )
    deaths = f"{picture.deaths} worker process{'es' * (picture.deaths != 1)} died on the way and started anew"
    return _page(
        Text.assemble(("redrive demo", "bold"), (f"   after {picture.elapsed:.0f} s", "dim")),
        _overview(picture),
        _queues(picture, told=width >= TOLD_FROM),
        _incidents(picture.incidents),
        _story(picture, ended=True),
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
    for state in _shown(total):
        legend.append("● ", style=STYLES[state]).append(f"{state} ").append(f"{total.of(state)}   ", style="bold")
    if picture.next_due is not None:
        legend.append(f"next retry in {max(picture.next_due, 0):.1f} s", style="dim")
    legend.no_wrap, legend.overflow = True, "ellipsis"
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
    states = _shown(picture.total)
    for title in ("published", *states):
        table.add_column(title, justify="right")
    for queue, count in picture.counts.items():
        table.add_row(queue, *([picture.stories[queue]] if told else []), *_numbers(count, states))
    table.add_row(Text("total", style="bold"), *([""] if told else []), *_numbers(picture.total, states, bold=True))
    return table


def _shown(total: Count) -> Sequence[str]:
    """The states that have a place of their own: nothing is said of what nobody has discarded."""
    return [state for state in STATES if state not in ("discarded", *BY_HAND) or total.of(state)]


def _numbers(count: Count, states: Sequence[str], *, bold: bool = False) -> Iterable[Text]:
    yield Text(str(count.published), style="bold" if bold else "")
    for state in states:
        number = count.of(state)
        style = STYLES[state] if number else "dim"
        yield Text(str(number), style=f"bold {style}" if bold else style)


def _incidents(incidents: Sequence[Trouble]) -> RenderableType | None:
    if not incidents:
        return None
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("incident", "queue"):
        table.add_column(title)
    for title in ("letters", "open"):
        table.add_column(title, justify="right")
    table.add_column("")
    most = max(one.total for one in incidents)
    for one in sorted(incidents, key=lambda one: -one.total):
        bar = _cells(one.total, of=most)
        red = _cells(one.open, of=most)
        shown = Text.assemble(("█" * red, "red"), ("█" * (bar - red), "green"))
        table.add_row(
            one.error_type, one.queue, str(one.total), Text(str(one.open), style="red" if one.open else "green"), shown
        )
    return table


def _cells(number: int, *, of: int) -> int:
    return max(1, 30 * number // of) if number else 0


def _story(picture: Picture, *, ended: bool = False) -> RenderableType | None:
    if not picture.story and not ended:
        return None
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("the way back", overflow="fold")
    for text, done in picture.story:
        table.add_row(Text("✓" if done else "…", style="green" if done else "yellow"), text)
    if ended and not picture.is_told:
        table.add_row("", Text("there was no time for more; half a minute tells it all", style="dim"))
    return table


def _story_height(picture: Picture, *, width: int) -> int:
    return _ROWS_BESIDE + sum(len(wrap(text, max(width - _BESIDE_STORY, 1))) for text, _ in picture.story)


_ALWAYS = 8  # lines of the head, the overview, and the heading and total of the queues, each behind an empty one
_ROWS_BESIDE = 2  # an empty line and a heading
_BESIDE_STORY = 6  # columns


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
        "letters": {one.error_type: one.total for one in picture.incidents},
        "story": [text for text, done in picture.story if done],
    }
