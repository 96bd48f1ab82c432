"""A page as a person has it before them: its text, its links, its forms, its tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"input", "meta", "link", "img", "br", "hr", "col", "source", "wbr"})
_RAW = frozenset({"script", "style"})


@dataclass(eq=False)
class Element:
    """An element, what stands in it, and its attributes."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    content: "list[Element | str]" = field(default_factory=list)

    def walk(self) -> Iterator["Element"]:
        yield self
        for one in self.content:
            if isinstance(one, Element):
                yield from one.walk()

    def all(self, *tags: str) -> "list[Element]":
        return [one for one in self.walk() if one.tag in tags]

    @property
    def text(self) -> str:
        """What is to be read in it, blanks as one; a browser shows no more of a script's or style's text."""
        return " ".join(self._raw().split())

    def _raw(self) -> str:
        if self.tag in _RAW:
            return ""
        return " ".join(one if isinstance(one, str) else one._raw() for one in self.content)  # noqa: SLF001


@dataclass(frozen=True)
class Form:
    """A form: where it goes, what it would send as it stands, and its buttons."""

    action: str
    method: str
    fields: dict[str, str]
    buttons: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """A page that was read."""

    html: str
    root: Element

    @property
    def text(self) -> str:
        return self.root.text

    @property
    def links(self) -> list[tuple[str, str]]:
        """The text of each link, and where it leads; of one without text what it is called instead."""
        return [
            (one.text or one.attributes.get("aria-label", ""), one.attributes.get("href", ""))
            for one in self.root.all("a")
        ]

    def without(self, *tags: str) -> Element:
        """The page without elements of some kinds."""
        return _without(self.root, tags)

    def link(self, text: str) -> str:
        """Where the first link leads whose text holds this."""
        return next(href for said, href in self.links if text in said)

    @property
    def headings(self) -> list[str]:
        return [one.text for one in self.root.all("h1", "h2", "h3")]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of every row of every table's body."""
        return [
            [cell.text for cell in row.all("td", "th")]
            for body in self.root.all("tbody")
            for row in body.content
            if isinstance(row, Element)
        ]

    def keys(self) -> list[str]:
        """What the rows are that `j` and `k` walk."""
        return [one.attributes["data-key"] for one in self.root.walk() if "data-key" in one.attributes]

    @property
    def forms(self) -> list[Form]:
        return [_form(one, self.root) for one in self.root.all("form")]

    def form(self, action: str) -> Form:
        """The first form that goes there: what stands before `?` is compared."""
        return next(one for one in self.forms if one.action.partition("?")[0] == action)

    def offers(self, action: str) -> bool:
        """Whether there is a form that goes there."""
        return any(one.action.partition("?")[0] == action for one in self.forms)


def _without(element: Element, tags: tuple[str, ...]) -> Element:
    kept = [
        one if isinstance(one, str) else _without(one, tags)
        for one in element.content
        if isinstance(one, str) or one.tag not in tags
    ]
    return Element(element.tag, element.attributes, kept)


def read(html: str) -> Seen:
    """Parse a page, or a part of one."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    return Seen(html, parser.root)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].content.append(made)
        if tag not in _VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].content.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if any(one.tag == tag for one in self._open):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._open[-1].content.append(data)


def _form(form: Element, root: Element) -> Form:
    form_id = form.attributes.get("id")
    inside = [*form.walk()]
    outside = [one for one in root.walk() if form_id and one.attributes.get("form") == form_id and one not in inside]
    controls = [*inside, *outside]
    fields = {
        one.attributes["name"]: _value(one)
        for one in controls
        if one.tag in ("input", "select", "textarea") and "name" in one.attributes and _is_sent(one)
    }
    return Form(
        action=form.attributes.get("action", ""),
        method=form.attributes.get("method", "get"),
        fields=fields,
        buttons=tuple(re.sub(r"\s+", " ", one.text) for one in controls if one.tag == "button"),
    )


def _is_sent(control: Element) -> bool:
    ticked = control.attributes.get("type") not in ("checkbox", "radio") or "checked" in control.attributes
    return ticked and "disabled" not in control.attributes


def _value(control: Element) -> str:
    if control.tag == "textarea":
        return "".join(one for one in control.content if isinstance(one, str)).removeprefix("\n")
    if control.tag == "select":
        options = control.all("option")
        chosen = next((one for one in options if "selected" in one.attributes), options[0] if options else None)
        return "" if chosen is None else chosen.attributes.get("value", chosen.text)
    return control.attributes.get("value", "on" if control.attributes.get("type") == "checkbox" else "")
