"""Charts as SVG, drawn on the server: each bar is a link with its number, and the table behind it has them all."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup, escape

WIDTH, HEIGHT = 960, 160
_GAP = 0.2  # of a bar's place
_SPARK_WIDTH, _SPARK_HEIGHT = 96, 24


class Bar(NamedTuple):
    """One bar: when, how many, and the page that has them."""

    at: datetime
    value: int
    url: str = ""


def bars(found: Sequence[Bar], label: str) -> Markup:
    """A chart of many bars. `label` says what is counted."""
    most = max((bar.value for bar in found), default=0) or 1
    step = WIDTH / max(len(found), 1)
    width = step * (1 - _GAP)
    drawn = "".join(_bar(bar, x=place * step, width=width, most=most) for place, bar in enumerate(found))
    # An image has nothing in it that can be followed; a group has.
    role = "group" if any(bar.url and bar.value for bar in found) else "img"
    return Markup(
        '<svg class="bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="{}" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, role, label, Markup(drawn))  # noqa: S704 - escaped bar by bar


def spark(values: Sequence[int], label: str) -> Markup:
    """A small one without links, for a row of a table."""
    most = max(values, default=0) or 1
    step = _SPARK_WIDTH / max(len(values), 1)
    # One path for all of them: a page has many of these.
    width, floor = step * (1 - _GAP), _SPARK_HEIGHT
    drawn = "".join(
        f"M{place * step:.1f} {floor}v-{max(floor * value / most, 1):.1f}h{width:.1f}V{floor}z"
        for place, value in enumerate(values)
        if value
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><path class="bar" d="{}"/></svg>'
    ).format(_SPARK_WIDTH, _SPARK_HEIGHT, label, drawn)


def shares(parts: Mapping[str, int], label: str) -> Markup:
    """A whole and its parts, side by side; the numbers are for the table beside it."""
    whole = sum(parts.values()) or 1
    drawn, x = Markup(""), 0.0
    for name, value in parts.items():
        width = WIDTH * value / whole
        if value:
            drawn += Markup('<rect data-part="{}" x="{:.1f}" y="0" width="{:.1f}" height="12"/>').format(name, x, width)
        x += width
    said = ", ".join(f"{value:,} {name}" for name, value in parts.items() if value) or "nothing"
    return Markup(
        '<svg class="shares" viewBox="0 0 {} 12" preserveAspectRatio="none" role="img" aria-label="{}: {}">{}</svg>'
    ).format(WIDTH, label, said, drawn)


def _bar(bar: Bar, *, x: float, width: float, most: int) -> str:
    # Escaped by hand where it is not a number of ours: a page has hundreds of these, and formatting Markup is slow.
    title = f"{bar.value:,} · {bar.at:%a %d %b %H:%M} UTC"
    height = max(HEIGHT * bar.value / most, 1.0) if bar.value else 0.0
    # The whole height is the link, so that a small bar can be hit.
    inside = (
        f'<title>{title}</title><rect class="room" x="{x:.1f}" y="0" width="{width:.1f}" height="{HEIGHT}"/>'
        f'<rect class="bar" x="{x:.1f}" y="{HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )
    if not bar.url or not bar.value:
        return f"<g>{inside}</g>"
    return f'<a href="{escape(bar.url)}" aria-label="{title}">{inside}</a>'
