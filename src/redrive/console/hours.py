"""Hours as bars: an incident may last an hour or years, and a chart has room for a hundred bars."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

FEWEST, MOST = 24, 96
_HOUR = timedelta(hours=1)
_STEPS = (_HOUR, timedelta(hours=6), timedelta(days=1), timedelta(days=7), timedelta(days=30))
_EPOCH = datetime(1970, 1, 5, tzinfo=UTC)  # a Monday, so that weeks begin with one


class Span(NamedTuple):
    """So many deaths from an instant on, until the next span."""

    at: datetime
    deaths: int


class Course(NamedTuple):
    """How something went: spans of one length, oldest first, gaps filled. `earlier` are the deaths before the first."""

    step: timedelta
    spans: Sequence[Span]
    earlier: int = 0


def course_of(hours: Sequence[tuple[datetime, int]], *, now: datetime) -> Course:
    """The course of deaths by hour, in the shortest spans that fit into a chart; the present one is the last.

    Clocks differ: deaths that say they are still to come are counted as if they were now.
    """
    first = min([now, *(at for at, _ in hours)])
    step = next((one for one in _STEPS if (now - first) / one < MOST - 1), _STEPS[-1])
    last = _begin(now, step)
    number = min(max((last - _begin(first, step)) // step + 1, FEWEST), MOST)
    counts = Counter[datetime]()
    for at, deaths in hours:
        counts[_begin(min(at, now), step)] += deaths
    spans = [Span(at, counts[at]) for at in (last - step * back for back in reversed(range(number)))]
    return Course(step, spans, counts.total() - sum(span.deaths for span in spans))


def _begin(at: datetime, step: timedelta) -> datetime:
    return at - (at - _EPOCH) % step
