"""JSON as a tree that opens and closes without a script. Everything in it is escaped."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from redrive.console.clip import line
from redrive.core.printable import printable

DEEPEST = 40
LONGEST = 600  # bytes of one text
_OPENED = 3  # levels that are open at first
_NOTE = 80  # bytes that the end of a branch may need


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it is written, also where a name stands twice."""


class Written(str):
    """A number as it is written: not one digit is lost."""

    __slots__ = ()


def parsed(payload: bytes) -> Any:
    """JSON for a tree. Raises `ValueError` for what is none, or is nested too deeply."""
    try:
        return json.loads(
            payload.decode(), object_pairs_hook=Pairs, parse_int=Written, parse_float=Written, parse_constant=Written
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def tree(value: Any, *, room: int) -> tuple[Markup, bool]:
    """The tree, in about `room` bytes, and whether something of it had to be left out."""
    drawn = _Tree(room)
    drawn.draw(value, name=Markup(""), depth=0)
    return Markup('<ul class="tree">{}</ul>').format(Markup("").join(drawn.parts)), drawn.is_cut


class _Tree:
    def __init__(self, room: int) -> None:
        self.parts: list[Markup] = []
        self.is_cut = False
        self._room = room

    def draw(self, value: Any, *, name: Markup, depth: int) -> None:
        inside = _inside(value)
        if inside is None:
            self._put(Markup("<li>{}{}</li>").format(name, _leaf(value)))
            return
        shape = Markup('<span class="muted">{}</span>').format(_shape(value))
        if not inside or depth == DEEPEST:
            self.is_cut |= bool(inside)
            deeper = Markup(' <span class="muted">… deeper</span>') if inside else ""
            self._put(Markup("<li>{}{}{}</li>").format(name, shape, deeper))
            return
        opened = Markup(" open") if depth < _OPENED else ""
        self._put(Markup("<li><details{}><summary>{}{}</summary><ul>").format(opened, name, shape))
        for number, (label, item) in enumerate(inside):
            if self._room < _NOTE:
                self.is_cut = True
                self._put(Markup('<li class="muted">… {} more</li>').format(f"{len(inside) - number:,}"))
                break
            self.draw(item, name=_named(label), depth=depth + 1)
        self._put(Markup("</ul></details></li>"))

    def _put(self, part: Markup) -> None:
        self.parts.append(part)
        self._room -= len(part.encode("utf-8", "replace"))


def _inside(value: Any) -> list[tuple[str | int, Any]] | None:
    """What a value is made of; None for one that is made of nothing else."""
    if isinstance(value, Pairs):
        return [*value]
    if isinstance(value, Mapping):
        return [*value.items()]
    return [*enumerate(value)] if isinstance(value, list | tuple) else None


def _shape(value: Any) -> str:
    number = f"{len(value):,}"
    return f"[{number}]" if isinstance(value, list | tuple) and not isinstance(value, Pairs) else f"{{{number}}}"


def _named(label: str | int) -> Markup:
    return Markup('<span class="name">{}</span>: ').format(label if isinstance(label, int) else line(str(label), 200))


def _leaf(value: Any) -> Markup:
    if isinstance(value, str) and not isinstance(value, Written):
        said = printable(json.dumps(value[:LONGEST], ensure_ascii=False))
        return Markup('<span class="text">{}</span>{}').format(said, _left(len(value) - LONGEST))
    said = str(value) if isinstance(value, Written) else "".join(_words(value))
    return Markup('<span class="plain">{}</span>{}').format(said[:LONGEST], _left(len(said) - LONGEST))


def _words(value: Any) -> Iterator[str]:
    try:
        yield json.dumps(value, default=str)
    except ValueError:
        yield "(a number too long to write)"


def _left(number: int) -> Markup:
    if number <= 0:
        return Markup("")
    return Markup(' <span class="muted">… {} more characters</span>').format(f"{number:,}")
