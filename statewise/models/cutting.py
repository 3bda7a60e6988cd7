"""How a text is cut into the words that a model reads."""

from __future__ import annotations

import re

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case; each other sign is a word of its own, the HTML mark ``<br />`` is none.

    An apostrophe between letters belongs to the word.

    >>> split_words("I didn't like it.<br />At ALL!!")
    ['i', "didn't", 'like', 'it', '.', 'at', 'all', '!', '!']
    """
    return _WORD.findall(_BREAK.sub(" ", text).lower())
