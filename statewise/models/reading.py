"""What a model must be told of raw input: how a text is cut into tokens or a picture into steps; what numbers are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError, UnknownSymbolError
from statewise.models.cutting import split_words
from statewise.models.lexicon import SCHEMES
from statewise.transforms.base import choice

TEXTS = ("words", "symbols", "characters")
PICTURES = ("pixels", "rows")
NUMBERS = "numbers"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How raw input becomes what a model reads, and what its answers are called; it is saved with the model.

    Args:
        unit: what a step reads: of a text "words" (:func:`statewise.data.split_words`, lower case), "symbols" (what
            stands between white space) or "characters"; of a picture "pixels" or "rows"; of a numeric sequence
            "numbers".
        symbols: the tokens of a text in the order of their numbers; None for pictures and numbers.
        lower: whether symbols and characters are made lower case first.
        truncate: how many tokens of a text are kept, the last ones; None for all.
        unknown: the symbol that stands for every other one; None refuses others.
        end: the symbol that ends each line of a text; None for none.
        classes: the names of the classes in the order of their numbers; None where they have none.
        scheme: in which the tags of a tagger are written for people; None where it is that of its lexicon.
        height: rows of a picture.
        width: columns of a picture.
        permutation: the pixel, counted row by row, that each step reads; None for row by row.
        features: the names of the numbers that a step has, in their order; None but for "numbers".

    >>> reading = Reading(unit="words", symbols=("<unk>", "bad", "good"), unknown="<unk>", classes=("no", "yes"))
    >>> reading.cut("A GOOD film"), reading.encode("bad")
    (['<unk>', 'good', '<unk>'], [1])
    """

    unit: str = "words"
    symbols: tuple[str, ...] | None = None
    lower: bool = False
    truncate: int | None = None
    unknown: str | None = None
    end: str | None = None
    classes: tuple[str, ...] | None = None
    scheme: str | None = None
    height: int | None = None
    width: int | None = None
    permutation: tuple[int, ...] | None = None
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        choice("Reading.unit", self.unit, (*TEXTS, *PICTURES, NUMBERS))
        if self.scheme is not None:
            choice("Reading.scheme", self.scheme, SCHEMES)
        for name in ("symbols", "classes", "features"):
            _check_names(name, getattr(self, name))
        for name in ("truncate", "height", "width"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(where=f"Reading.{name}", got=value, wanted="a whole number of at least 1, or None")
        for name in ("unknown", "end"):
            value = getattr(self, name)
            if value is not None and value not in self._numbers:
                raise ArgumentError(where=f"Reading.{name}", got=value, wanted="one of the symbols, or None")
        if (self.unit == NUMBERS) != bool(self.features):
            got, wanted = f"{self.features} for {self.unit}", "names of the numbers of a step, for numbers alone"
            raise ArgumentError(where="Reading.features", got=got, wanted=wanted)
        self._check_picture()

    def _check_picture(self) -> None:
        sizes = (self.height, self.width)
        if self.unit not in PICTURES:
            if sizes != (None, None) or self.permutation is not None:
                raise ArgumentError(where="Reading.height", got=f"{sizes} for {self.unit}", wanted="None for both")
            if self.unit == NUMBERS and self.symbols is not None:
                raise ArgumentError(where="Reading.symbols", got="symbols for numbers", wanted="None")
            return
        if None in sizes or self.symbols is not None:
            raise ArgumentError(where="Reading.height", got=f"{sizes} for pictures", wanted="height and width alone")
        pixels = (self.height or 0) * (self.width or 0)
        order = self.permutation
        if order is None:
            return
        if self.unit == "rows" or len(order) != pixels or set(order) != set(range(len(order))):
            raise ArgumentError(
                where="Reading.permutation", got=f"{len(order)} numbers", wanted=f"pixels 0 to {pixels - 1}, each once"
            )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.symbols or ())}

    def cut(self, text: str) -> list[str]:
        """The tokens of a text, as the model knows them.

        Args:
            text: as a person writes it; lines of a text that has an end mark are ended by it.
        """
        if self.unit not in TEXTS:
            wanted = "pictures: Reading.look takes them" if self.unit in PICTURES else "numbers, as they are"
            raise ArgumentError(where="Reading.cut", got="a text", wanted=wanted)
        lines = text.splitlines() if self.end is not None else [text]
        found = [token for line in lines for token in (*self._tokens(line), *self._ending)]
        return found if self.truncate is None else found[-self.truncate :]

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's tokens.

        Args:
            text: as a person writes it.
        """
        return [self._numbers[token] for token in self.cut(text)]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The tokens of numbers.

        Args:
            numbers: as a model gives them.
        """
        symbols = self.symbols or ()
        found = [int(number) for number in numbers]
        for number in found:
            if not 0 <= number < len(symbols):
                raise ArgumentError(where="Reading.decode", got=number, wanted=f"numbers from 0 to {len(symbols) - 1}")
        return [symbols[number] for number in found]

    def look(self, pictures: npt.NDArray[np.uint8]) -> Float[Tensor, "batch steps features"]:
        """Pictures as the model reads them: grey values from 0 to 1, in its order.

        Args:
            pictures: (batch, height, width), from 0 to 255.

        >>> Reading(unit="rows", height=2, width=3).look(np.zeros((5, 2, 3), dtype=np.uint8)).shape
        torch.Size([5, 2, 3])
        """
        if self.unit not in PICTURES:
            wanted = "texts: Reading.cut takes them" if self.unit in TEXTS else "numbers, as they are"
            raise ArgumentError(where="Reading.look", got="pictures", wanted=wanted)
        if pictures.ndim != 3 or pictures.shape[1:] != (self.height, self.width):
            raise ShapeError(where="pictures", got=pictures.shape, wanted=f"(batch, {self.height}, {self.width})")
        if self.unit == "rows":
            return torch.tensor(pictures).float() / 255
        flat = pictures.reshape(len(pictures), -1)
        ordered: npt.NDArray[Any] = flat if self.permutation is None else flat[:, list(self.permutation)]
        return torch.tensor(ordered).float().unsqueeze(2) / 255

    @property
    def _ending(self) -> tuple[str, ...]:
        return () if self.end is None else (self.end,)

    def _tokens(self, line: str) -> list[str]:
        line = line.lower() if self.lower else line
        found = list(line) if self.unit == "characters" else line.split()
        found = split_words(line) if self.unit == "words" else found
        known = self._numbers
        if self.unknown is not None:
            return [token if token in known else self.unknown for token in found]
        strange = next((token for token in found if token not in known), None)
        if strange is not None:
            wanted = f"one of {', '.join(map(repr, list(known)[:12]))}" if known else "a model that knows its symbols"
            raise UnknownSymbolError(where="Reading.cut", got=f"the symbol {strange!r}", wanted=wanted)
        return found


def _check_names(name: str, entries: tuple[str, ...] | None) -> None:
    if entries is None:
        return
    if not isinstance(entries, tuple) or not all(isinstance(entry, str) for entry in entries):
        raise ArgumentError(where=f"Reading.{name}", got=str(entries)[:100], wanted="a tuple of texts, or None")
    if len(set(entries)) != len(entries):
        raise ArgumentError(where=f"Reading.{name}", got="a text more than once", wanted="each once")
