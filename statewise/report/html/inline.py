"""Sentences and cells as markup."""

from __future__ import annotations

from statewise.report.html.markup import Markup, element, joined, text
from statewise.report.html.pieces import Cell, Code, Drawing, Strong, Words

_SHORT = 24  # characters of a code that is not broken into two lines


def words_markup(words: Words) -> Markup:
    """A sentence as markup.

    Args:
        words: a text, or pieces of one.

    >>> from statewise.report.html.pieces import Code
    >>> words_markup(["Read ", Code("a<b"), "."])
    'Read <code class="short">a&lt;b</code>.'
    """
    if isinstance(words, str):
        return text(words)
    if isinstance(words, Code):
        return element("code", text(words.text), class_="short" if len(words.text) <= _SHORT else None)
    if isinstance(words, Strong):
        return element("strong", text(words.text))
    return joined(*map(words_markup, words))


def plain(words: Words) -> str:
    """A sentence without its markup.

    Args:
        words: a text, or pieces of one.

    >>> from statewise.report.html.pieces import Code
    >>> plain(["Read ", Code("config.json"), "."])
    'Read config.json.'
    """
    if isinstance(words, str):
        return words
    if isinstance(words, Code | Strong):
        return words.text
    return "".join(map(plain, words))


def cell_markup(cell: Cell) -> Markup:
    """What is in a cell of a table, as markup.

    Args:
        cell: a text, a code or a small drawing, which is only decoration there: its numbers are in the row.

    >>> cell_markup("a & b")
    'a &amp; b'
    """
    if isinstance(cell, Drawing):
        box = f"0 0 {cell.width:g} {cell.height:g}"
        size = {"width": cell.width, "height": cell.height}
        return element("svg", cell.content, class_="spark", viewBox=box, aria_hidden="true", focusable="false", **size)
    return words_markup(cell)
