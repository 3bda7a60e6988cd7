"""Sentences as a tagger reads them: distinct words once, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.engine.layout import moved
from statewise.errors import ArgumentError, LengthError, NonFiniteError, ShapeError
from statewise.models.lexicon import Lexicon

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenBatch:
    """Some sentences, steps first; each distinct word is looked up and spelt once.

    Attributes:
        rows: of the word vectors of the distinct words.
        places: which of them stands at each step; 0 beyond a sentence's end.
        lengths: of the sentences, on the CPU.
        characters: of the distinct words, which then stand longest first, as numbers; None if they are not read.
        context: a further vector for each token, from outside; None for none.
    """

    rows: Int[Tensor, " words"]
    places: Int[Tensor, "steps batch"]
    lengths: Int[Tensor, " batch"]
    characters: PackedSequence | None = None
    context: Float[Tensor, "steps batch width"] | None = None


class Encoded:
    """All sentences of a set as numbers, one behind the other.

    Args:
        lexicon: the words and characters that are known.
        sentences: words in their order; none may be empty.
        context: a vector for each token of all sentences, (tokens, width), from outside; None for none.
        where: what the sentences are, for errors.

    >>> lexicon = Lexicon(tags=("O", "X"), words=("a", "b"), characters=("a", "b"))
    >>> batch = Encoded(lexicon, [["a", "b"], ["ab"]]).batch(np.array([0, 1]))
    >>> batch.places.shape, batch.lengths.tolist()
    (torch.Size([2, 2]), [2, 1])
    """

    def __init__(
        self,
        lexicon: Lexicon,
        sentences: Sequence[Sequence[str]],
        *,
        context: npt.NDArray[np.floating[Any]] | None = None,
        where: str = "sentences",
    ) -> None:
        if isinstance(sentences, str) or any(isinstance(sentence, str) for sentence in sentences):
            raise ArgumentError(
                where=where, got="a text", wanted="sentences as sequences of words", remedy="Write text.split()."
            )
        self.lengths: Ints = np.fromiter((len(sentence) for sentence in sentences), dtype=np.int64)
        if len(self.lengths) and not self.lengths.all():
            empty = int(self.lengths.argmin())
            raise LengthError(where=f"{where}[{empty}]", got="an empty sentence", wanted="at least one word")
        self.starts: Ints = np.concatenate(([0], np.cumsum(self.lengths)))
        numbers: dict[str, int] = {}
        self._types: Ints = np.fromiter(
            (numbers.setdefault(word, len(numbers)) for sentence in sentences for word in sentence), dtype=np.int64
        )
        for word, number in numbers.items():
            if not isinstance(word, str) or not word:
                at = int(np.flatnonzero(self._types == number)[0])
                sentence = int(np.searchsorted(self.starts, at, side="right")) - 1
                got, wanted = "an empty word" if word == "" else repr(word), "words of some characters"
                raise ArgumentError(where=f"{where}[{sentence}]", got=got, wanted=wanted)
        self._rows: Ints = np.fromiter((lexicon.row(word) for word in numbers), dtype=np.int64)
        spelt = [lexicon.spelt(word) for word in numbers]
        self._spelt: Ints = np.fromiter((number for word in spelt for number in word), dtype=np.int64)
        self._spelt_lengths: Ints = np.fromiter(map(len, spelt), dtype=np.int64)
        self._spelt_starts: Ints = np.cumsum(self._spelt_lengths) - self._spelt_lengths
        self.context = context
        if context is not None and (context.ndim != 2 or len(context) != len(self._types)):
            raise ShapeError(
                where=f"{where}, context", got=context.shape, wanted=f"({len(self._types)}, width), one row a token"
            )
        if context is not None and not np.isfinite(context).all():
            row = int(np.argwhere(~np.isfinite(context))[0, 0])
            raise NonFiniteError(
                where=f"{where}, context[{row}]", got="a number that is not finite", wanted="finite numbers"
            )

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def unknown(self) -> int:
        """How many tokens have no vector."""
        return int((self._rows[self._types] == 0).sum())

    def batch(self, which: Ints, *, characters: bool = True, device: torch.device | str = "cpu") -> TokenBatch:
        """Some of the sentences.

        Args:
            which: their numbers.
            characters: whether words are spelt.
            device: where the batch goes; the host does not wait for it.
        """
        inside = self._inside(which)
        flat = self.flat_places(which)
        types, found = np.unique(self._types[flat], return_inverse=True)
        spelt, sizes = np.zeros(0, dtype=np.int64), None
        if characters:
            # Longest first, as PackedSequence wants it.
            order = np.argsort(-self._spelt_lengths[types], kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            types, found = types[order], rank[found]
            spelt, sizes = self._packed_characters(types)
        places = np.zeros(inside.shape, dtype=np.int64)
        places[inside] = found
        # One copy to the device for everything whole.
        moved = to_device(np.concatenate((self._rows[types], places.ravel(), spelt)), device)
        rows, placed, letters = moved.split((len(types), places.size, len(spelt)))
        return TokenBatch(
            rows=rows,
            places=placed.view(places.shape),
            lengths=torch.from_numpy(self.lengths[which]),
            characters=None if sizes is None else PackedSequence(letters, torch.from_numpy(sizes)),
            context=None if self.context is None else self._placed_context(inside, flat, device),
        )

    def flat_places(self, which: Ints) -> Ints:
        """Where the tokens of some sentences stand among all, in the order in which a padded batch has them.

        Args:
            which: numbers of sentences.
        """
        inside = self._inside(which)
        steps = np.arange(len(inside))[:, None]
        return (self.starts[which] + steps)[inside]

    def padded(self, values: Ints, which: Ints, *, fill: int) -> Ints:
        """A number for each token as a padded batch, (steps, batch).

        Args:
            values: of all tokens of all sentences.
            which: numbers of sentences.
            fill: what stands beyond an end.
        """
        inside = self._inside(which)
        found = np.full(inside.shape, fill, dtype=np.int64)
        found[inside] = values[self.flat_places(which)]
        return found

    def _inside(self, which: Ints) -> npt.NDArray[np.bool_]:
        lengths = self.lengths[which]
        return np.arange(lengths.max(initial=0))[:, None] < lengths

    def _packed_characters(self, types: Ints) -> tuple[Ints, Ints]:
        """The characters of words, those of one step after those of the step before, and how many each step has."""
        lengths, starts = self._spelt_lengths[types], self._spelt_starts[types]
        steps = np.arange(lengths.max(initial=0))[:, None]
        inside = steps < lengths
        return self._spelt[(starts + steps)[inside]], inside.sum(1)

    def _placed_context(self, inside: npt.NDArray[np.bool_], flat: Ints, device: torch.device | str) -> Tensor:
        assert self.context is not None
        placed = np.zeros((*inside.shape, self.context.shape[1]), dtype=np.float32)
        placed[inside] = self.context[flat]
        return to_device(placed, device)


def to_device(values: npt.NDArray[Any], device: torch.device | str) -> Tensor:
    """An array as a tensor on a device; a CUDA device gets it while the host goes on.

    Args:
        values: what is copied.
        device: where it goes.
    """
    return moved(torch.from_numpy(values), device)
