"""Markup that is safe by its type: text becomes markup only by being escaped."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import NewType

#: Text that a browser may read as HTML. Only this module turns a plain text into it.
Markup = NewType("Markup", str)

#: Elements without an end.
_VOID = frozenset({"br", "hr", "meta", "link", "img", "col", "input"})
#: They would turn the direction of what follows, so that a name could be shown as another one.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def text(plain: str) -> Markup:
    r"""A plain text as markup: nothing in it is read as an element, and what HTML has no place for is replaced.

    Args:
        plain: whatever it is, a name that somebody else chose among it.

    >>> text("<script>alert('&')</script>")
    '&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;'
    >>> text("a\x00b\ud800c")
    'a\ufffdb\ufffdc'
    """
    return Markup(html.escape("".join(map(_sign, plain))))


def element(name: str, *children: Markup, **attributes: str | float | bool | None) -> Markup:
    """An element of HTML or SVG.

    Args:
        name: of the element.
        children: markup inside it.
        attributes: an underscore at the end is left out, others become hyphens; None and False leave an attribute
            out, True gives it no value, and numbers are rounded to two digits behind the point.

    >>> element("a", text("x < y"), class_="name", href="#top", hidden=None, data_x=0.12345)
    '<a class="name" href="#top" data-x="0.12">x &lt; y</a>'
    >>> element("br"), element("details", open=True)
    ('<br>', '<details open></details>')
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def joined(*parts: Markup, between: str = "") -> Markup:
    """Several pieces of markup as one.

    Args:
        parts: in their order.
        between: white space between them.

    >>> joined(text("a"), text("b"))
    'ab'
    """
    return Markup(between.join(parts))


def slug(title: str) -> str:
    """A title as a name for an address: letters and digits of ASCII with hyphens between; "part" where none is left.

    Args:
        title: of a section.

    >>> slug("What it remembers (Ziv 2019)"), slug("漢字")
    ('what-it-remembers-ziv-2019', 'part')
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].strip("-") or "part"


def _attribute(key: str, value: str | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{text(value if isinstance(value, str) else f"{round(float(value), 2) + 0.0:.10g}")}"'


def _sign(sign: str) -> str:
    if sign in "\t\n":
        return sign
    bad = unicodedata.category(sign) in ("Cc", "Cs", "Cn") or sign in _TURNING
    return "\ufffd" if bad else sign
