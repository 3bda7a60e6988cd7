"""A network with fewer centroids: those that behave alike become one, those that no word reaches go."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from statewise.automata.compare import witness
from statewise.automata.extract import Extraction, extract, read_network
from statewise.automata.faithfulness import as_it_is
from statewise.automata.frozen import FrozenNetwork
from statewise.automata.minimise import equivalent_states
from statewise.automata.moore import MooreMachine
from statewise.automata.proof.certify import certify, why_not_certifiable
from statewise.automata.symbols import text_or_tuple
from statewise.automata.verify import classifier_of, comparable
from statewise.automata.words import Text, random_words
from statewise.errors import NotMemorylessError
from statewise.models import SequenceClassifier


@dataclass(frozen=True, kw_only=True, eq=False)
class Merged:
    """What :func:`merge_centroids` made.

    Attributes:
        model: the smaller network; its weights are copies.
        merged: for each of its centroids the old ones that it stands for.
        same_machine: whether its automaton is equivalent to the old one's, for words of every length.
        soft_agreement: the share of random words to which both networks, as they are, give the same class.
        certified: whether the smaller network as it is provably equals the automaton.
    """

    model: SequenceClassifier
    merged: tuple[tuple[int, ...], ...]
    same_machine: bool
    soft_agreement: float
    certified: bool


def merge_centroids(model: SequenceClassifier, *, words: int = 1000, max_length: int = 50, seed: int = 0) -> Merged:
    """Drop the centroids that no word reaches, and make one of those that no word can tell apart; then verify.

    A set of centroids that are alike in the automaton becomes their mean, or one of them, whichever leaves the
    automaton as it is; a set for which neither does stays.

    Args:
        model: a memory-less classifier of tokens with one layer; it is left as it is.
        words: how many random words both networks are compared on.
        max_length: of the words.
        seed: of the words.

    >>> from statewise.automata import compile_machine, from_regex
    >>> even = from_regex("(0|10*1)*")
    >>> small = merge_centroids(compile_machine(even))
    >>> small.model.config.centroids, small.merged, small.same_machine
    ((2,), ((0, 3, 4), (1, 2)), True)
    """
    before = extract(model)
    if len(before.network.layers) > 1:
        raise NotMemorylessError(
            where="merge_centroids model",
            got=f"{len(before.network.layers)} layers",
            wanted="one layer",
            remedy="In a stack a centroid is part of many states.",
        )
    groups, rows = _shrink(before)
    smaller = _with_centroids(model, rows)
    after = extract(smaller)
    drawn = random_words(before.machine.alphabet, words, min_length=1, max_length=max_length, seed=seed)
    old, new = (classifier_of(each, before.machine)(drawn) for each in (model, smaller))
    return Merged(
        model=smaller,
        merged=tuple(tuple(group) for group in groups),
        same_machine=witness(before.machine, after.machine) is None,
        soft_agreement=float((old == new).mean()),
        certified=as_it_is(after, not why_not_certifiable(after) and certify(after).holds),
    )


def _shrink(before: Extraction) -> tuple[list[list[int]], Tensor]:
    """The sets that could be merged, the others one by one, and the centroid of each."""
    network, centroids = before.network, before.network.layers[0].centroids
    groups = [[state] for state in before.reachable.tolist() if before.states[state, 0] >= 0]
    rows = [centroids[group[0]] for group in groups]
    for alike in _alike(before):
        apart = [place for place, group in enumerate(groups) if group[0] not in alike]
        left, kept = [groups[place] for place in apart], [rows[place] for place in apart]
        for candidate in (centroids[alike].mean(0), *centroids[alike]):
            tried = torch.stack([*kept, candidate])
            if len(alike) > 1 and _keeps_machine(network, tried, before.machine):
                groups, rows = [*left, alike], [*kept, candidate]
                break
    order = sorted(range(len(groups)), key=lambda place: groups[place][0])
    return [groups[place] for place in order], torch.stack([rows[place] for place in order])


def _keeps_machine(network: FrozenNetwork, centroids: Tensor, machine: MooreMachine) -> bool:
    changed = replace(network, layers=(replace(network.layers[0], centroids=centroids),))
    return witness(read_network(changed).machine, machine) is None


def _alike(extraction: Extraction) -> list[list[int]]:
    """The reachable centroids in sets that no word can tell apart, in the order of their first members."""
    classes = equivalent_states(extraction.table.transitions, extraction.table.outputs)
    sets: dict[int, list[int]] = {}
    for state in extraction.reachable.tolist():
        if extraction.states[state, 0] >= 0:
            sets.setdefault(int(classes[state]), []).append(state)
    return list(sets.values())


def _with_centroids(model: SequenceClassifier, centroids: Tensor) -> SequenceClassifier:
    """A copy of the model with other centroids."""
    config = replace(model.config, centroids=(len(centroids),))
    generator = torch.Generator().manual_seed(0)  # idle: all weights are loaded
    symbols = model.symbols
    smaller = config.build(tokens=model.tokens, classes=model.classes, symbols=symbols, generator=generator)
    smaller.to(device=model.head.weight.device, dtype=model.head.weight.dtype)
    weights = dict(model.state_dict())
    weights["layer.centroids_l0"] = centroids
    smaller.load_state_dict(weights)
    return smaller.train(model.training)


def repair_set(model: SequenceClassifier, target: MooreMachine, *, limit: int = 10) -> tuple[list[Text], list[int]]:
    """Words to train on when a network is not the machine that it should be: shortest differences and their prefixes.

    The differences are one for each pair of states, of the network's machine and of the target, that disagree.

    Args:
        model: a memory-less classifier of tokens.
        target: the machine that it should be.
        limit: how many differences are sought.

    Returns:
        The words, shortest first, and their classes by the target; both empty if there is nothing to repair.
    """
    found = comparable(extract(model, classes=target.classes), target)
    wrong = _differences(found, target, limit)
    shortest = 0 if model.config.start_token else 1
    prefixes = dict.fromkeys(word[:end] for word in wrong for end in range(shortest, len(word) + 1))
    words = [text_or_tuple(word, found.alphabet) for word in sorted(prefixes, key=len)]
    return words, target.classify(words).tolist()


def _differences(found: MooreMachine, target: MooreMachine, limit: int) -> list[tuple[str, ...]]:
    """The shortest words on which two machines differ, one for each pair of states that disagree."""
    columns = target.encode(found.alphabet)
    first = (found.start, target.start)
    seen, wrong = {first}, list[tuple[str, ...]]()
    order: list[tuple[tuple[str, ...], tuple[int, int]]] = [((), first)]
    for word, (ours, theirs) in order:
        if found.classes[found.outputs[ours]] != target.classes[target.outputs[theirs]]:
            wrong.append(word)
            if len(wrong) == limit:
                break
        for number, symbol in enumerate(found.alphabet):
            pair = (int(found.transitions[ours, number]), int(target.transitions[theirs, columns[number]]))
            if pair not in seen:
                seen.add(pair)
                order.append(((*word, symbol), pair))
    return wrong
