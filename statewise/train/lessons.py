"""What an automaton is learnt from: short words on their prefix tree, and suffixes that tell prefixes apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, product, takewhile

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from statewise.data import Sequences
from statewise.train.prefix_tree import Numbers, PrefixTree


@dataclass(frozen=True)
class Lessons:
    """The words that are trained on, as tensors.

    Attributes:
        tree: of their prefixes.
        ends: the node of each word.
        labels: of the words.
        lengths: of the words.
        depths: of the nodes.
        continued: the class of each node continued by each suffix, -1 if unknown.
    """

    tree: PrefixTree
    ends: Tensor
    labels: Tensor
    lengths: Tensor
    depths: Tensor
    continued: Tensor

    @classmethod
    def of(cls, whole: PrefixTree, words: Sequences, chosen: npt.NDArray[np.bool_], hankel: Numbers) -> Lessons:
        tree, nodes = whole.keep(chosen)
        sizes = np.diff(tree.firsts)
        return cls(
            tree,
            torch.from_numpy(tree.ends),
            torch.from_numpy(words.labels[chosen]),
            torch.from_numpy(words.lengths[chosen]),
            torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
            torch.from_numpy(hankel[nodes]),
        )

    def up_to(self, length: int) -> Lessons:
        """The lessons without longer words and prefixes."""
        if length >= len(self.tree.levels):
            return self
        words, nodes = self.lengths <= length, int((self.depths <= length).sum())
        ends = self.ends[words]
        return Lessons(
            PrefixTree(self.tree.levels[:length], ends.numpy()),
            ends,
            self.labels[words],
            self.lengths[words],
            self.depths[:nodes],
            self.continued[:nodes],
        )


def shortest_words(tree: PrefixTree, words: Sequences, nodes: int) -> npt.NDArray[np.bool_]:
    """Which words are taught: the shortest, as long as the tree has not too many prefixes, and some of every class.

    Args:
        tree: of the words.
        words: with their classes.
        nodes: how many prefixes there may be.
    """
    lengths, labels = words.lengths, words.labels
    both = max(int(lengths[labels == label].min()) for label in np.unique(labels))
    within = [length for length, end in enumerate(tree.firsts[1:]) if end <= nodes]
    longest = max(within[-1] if within else 0, both)
    return np.asarray(lengths <= longest)


def hankel_block(tree: PrefixTree, words: Sequences, most: int) -> Numbers:
    """The class of every prefix continued by every suffix up to some length; -1 where no word tells it.

    Args:
        tree: of the words.
        words: with their classes.
        most: how many suffixes there may be; they are taken length by length.
    """
    symbols = len(words.symbols)
    sizes = takewhile(lambda length: sum(symbols**each for each in range(length + 1)) <= most, count())
    suffixes = [suffix for length in sizes for suffix in product(range(symbols), repeat=length)]
    if not suffixes:
        return np.zeros((len(tree), 0), dtype=np.int64)
    return tree.continued(words.labels, symbols, suffixes)
