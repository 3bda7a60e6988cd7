"""A page as a parser sees it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "link", "img"}


@dataclass
class Node:
    """An element."""

    name: str
    attributes: dict[str, str | None]
    children: list[Node] = field(default_factory=list)
    text: str = ""

    def all(self, *names: str) -> list[Node]:
        """All elements below it with one of the names, in their order."""
        found = []
        for child in self.children:
            found += [child] if child.name in names or not names else []
            found += child.all(*names)
        return found

    def whole_text(self) -> str:
        """Its text and that of all below it, the element's own first."""
        return self.text + "".join(child.whole_text() for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        repeated = [key for key, count in Counter(key for key, _ in attrs).items() if count > 1]
        assert not repeated, f"<{tag}> has {repeated} twice"
        node = Node(tag, dict(attrs))
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, f"</{tag}> ends <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].text += data

    def done(self) -> Node:
        assert len(self._open) == 1, f"<{self._open[-1].name}> is not ended"
        return self.root


def read(page: str) -> Node:
    """The tree of a page; every element that is begun is ended, in its order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.done()


def check_structure(page: str) -> Node:
    """What holds for every page: ids, headings, alternatives of figures, tables, and nothing from elsewhere."""
    assert page.startswith("<!doctype html>\n<html lang=")
    root = read(page)
    _check_references(root)
    _check_headings(root)
    _check_figures(root)
    for table in root.all("table"):
        assert table.children[0].name == "caption"
        assert table.children[0].text.strip()
        assert all(cell.attributes.get("scope") in ("col", "row") for cell in table.all("th"))
        widths = {len(row.all("th", "td")) for row in table.all("tr")}
        assert len(widths) == 1, f"{table.children[0].text}: rows of {widths} cells"
    return root


def _check_references(root: Node) -> None:
    every = root.all()
    ids = [node.attributes["id"] for node in every if "id" in node.attributes]
    assert len(ids) == len(set(ids)), [each for each, count in Counter(ids).items() if count > 1]
    for node in every:
        for key, value in node.attributes.items():
            assert not key.startswith("on"), f"<{node.name} {key}>"
            if key in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                assert key == "href", f"<{node.name} {key}>"
                assert (value or "").removeprefix("#") in ids, value
            if key in ("aria-labelledby", "aria-describedby"):
                assert set((value or "").split()) <= set(ids), value
    assert not root.all("script", "iframe", "object", "embed", "link", "base", "form", "img")
    (policy,) = [node for node in root.all("meta") if "http-equiv" in node.attributes]
    allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert (policy.attributes["content"] or "").startswith(allowed)
    style = "".join(node.text for node in root.all("style"))
    assert not re.search(r"url\(|@import|http", style)


def _check_headings(root: Node) -> None:
    levels = [int(node.name[1]) for node in root.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    assert len(root.all("main")) == 1
    assert any(link.attributes.get("href") == "#content" for link in root.all("a"))


def _check_figures(root: Node) -> None:
    for figure in root.all("figure"):
        assert figure.children[0].name == "figcaption"
        assert figure.children[0].whole_text().strip()
        drawings = figure.all("svg")
        assert drawings
        for drawing in drawings:
            if drawing.attributes.get("aria-hidden") == "true":  # a sparkline in the table of the numbers
                continue
            assert drawing.attributes["role"] == "img"
            name, description = drawing.children[:2]
            assert (name.name, description.name) == ("title", "desc")
            assert all(node.text.strip() for node in (name, description))
