"""Words as a tree of prefixes."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Sequences
from statewise.train.prefix_tree import PrefixTree

WORDS = st.lists(st.text("abc", max_size=5), min_size=1, max_size=20, unique=True)


def tree_of(words: list[str]) -> PrefixTree:
    return PrefixTree.of(Sequences.from_words(words, [0] * len(words), symbols="abc"))


def spelt(tree: PrefixTree) -> list[str]:
    """The prefix that each node stands for."""
    texts, above = [""], [""]
    for level in tree.levels:
        above = [above[parent] + "abc"[token] for parent, token in zip(level.parents, level.tokens, strict=True)]
        texts += above
    return texts


@given(WORDS)
def test_each_prefix_is_one_node_and_each_word_ends_at_its_own(words: list[str]) -> None:
    tree = tree_of(words)
    nodes = spelt(tree)
    assert sorted(nodes) == sorted({word[:length] for word in words for length in range(len(word) + 1)})
    assert len(tree) == len(nodes)
    assert [nodes[end] for end in tree.ends] == words


@given(WORDS, st.data())
def test_the_tree_of_some_words_is_what_they_alone_would_give(words: list[str], data: st.DataObject) -> None:
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words))))
    tree = tree_of(words)
    smaller, nodes = tree.keep(kept)
    some = [word for word, stays in zip(words, kept, strict=True) if stays]
    texts = spelt(smaller)
    assert sorted(texts) == sorted({""} | {word[:length] for word in some for length in range(len(word) + 1)})
    assert [texts[end] for end in smaller.ends] == some
    assert [spelt(tree)[node] for node in nodes] == texts


@given(WORDS, st.integers(0, 2**32 - 1))
def test_machines_walk_the_tree_as_they_run_each_word(words: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    successors, starts = rng.integers(0, 4, (3, 4, 3)), rng.integers(0, 4, 3)
    tree = tree_of(words)
    found = tree.walk(successors, starts)
    for machine in range(3):
        for node, text in enumerate(spelt(tree)):
            state = starts[machine]
            for letter in text:
                state = successors[machine, state, "abc".index(letter)]
            assert found[machine, node] == state


@given(WORDS)
def test_a_continued_prefix_has_the_class_of_the_longer_word_if_a_word_tells_it(words: list[str]) -> None:
    labels = np.arange(len(words))
    suffixes = [suffix for length in range(3) for suffix in product(range(3), repeat=length)]
    tree = tree_of(words)
    found = tree.continued(labels, 3, suffixes)
    for node, text in enumerate(spelt(tree)):
        for column, suffix in enumerate(suffixes):
            longer = text + "".join("abc"[symbol] for symbol in suffix)
            assert found[node, column] == (words.index(longer) if longer in words else -1)
