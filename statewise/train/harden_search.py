"""Networks that are trained side by side until one of them has become an automaton that makes no mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import Tensor
from torch.nn.functional import cross_entropy

from statewise.automata import MooreMachine, extract
from statewise.data import Sequences
from statewise.errors import DataError
from statewise.models import ClassifierConfig
from statewise.train.lessons import Lessons, hankel_block, shortest_words
from statewise.train.prefix_tree import Numbers, PrefixTree
from statewise.train.replicas import Replicas
from statewise.train.telling import say

if TYPE_CHECKING:
    from statewise.train.harden import Hardening

CHECK = 10  # steps between two looks at the machines


class Search:
    """Replicas in training, each with a curriculum and a noise of its own, and what their machines are worth."""

    def __init__(self, words: Sequences, config: ClassifierConfig, settings: Hardening) -> None:
        self.settings = settings
        config = replace(config, transition="mixture", noise=0.0)
        seeds = [settings.seed * 1000 + replica for replica in range(settings.restarts)]
        self.replicas = Replicas(config, words, seeds)
        self.words, self.whole = words, PrefixTree.of(words)
        _refuse_two_classes_of_a_word(self.whole, words)
        self.hankel = hankel_block(self.whole, words, settings.suffixes)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.heads = self._suffix_heads()
        self.optimizer = torch.optim.Adam([*self.replicas.parameters.values(), *self.heads], lr=settings.lr)
        self.chosen = shortest_words(self.whole, words, settings.nodes)
        self.lessons = Lessons.of(self.whole, words, self.chosen, self.hankel)
        lengths = words.lengths[self.chosen]
        self.longest = int(lengths.max())
        begin = min(max(settings.begin, int(np.sort(lengths)[min(7, len(lengths) - 1)])), self.longest)
        self.reach = torch.full((settings.restarts,), float(begin))
        self.noise = torch.zeros(settings.restarts, 1, 1)
        self.accuracies = np.zeros(settings.restarts)
        self.found: list[MooreMachine | None] = [None] * settings.restarts
        self.seen = np.zeros(settings.restarts, dtype=np.int64)
        self.steps = 0

    def run(self, console: Console | None) -> tuple[int, bool]:
        """Train until a machine is found or the steps are used up; gives the replica, and whether it is exact."""
        while self.steps < self.settings.steps:
            self._step()
            self.steps += 1
            if self.steps % CHECK and self.steps < self.settings.steps:
                continue
            self._look()
            if self.steps % (10 * CHECK) == 0:
                best = self.accuracies.max()
                say(console, f"step {self.steps}: words up to length {int(self.reach.max())}, best machine {best:.2%}")
            done = [int(replica) for replica in np.flatnonzero(self.seen >= self.settings.stable)]
            for replica in sorted(done, key=lambda each: len(self.found[each] or ())):
                if self._confirmed(replica):
                    return replica, True
        return int(self.accuracies.argmax()), False

    def _confirmed(self, replica: int) -> bool:
        """Whether what is read off the weights in double precision is the machine that was found in single."""
        extraction = extract(self.replicas.model(replica), classes=self.words.classes)
        return extraction.machine == self.found[replica]

    def _step(self) -> None:
        """One step of Adam for all replicas, each with its own clipped gradient."""
        settings, lessons = self.settings, self.lessons.up_to(int(self.reach.max()))
        gumbel = torch.empty(settings.restarts, len(lessons.tree), self.replicas.centroids.k)
        gumbel.exponential_(generator=self.generator).clamp_(min=1e-30).log_().neg_()
        states = self.replicas.states(lessons.tree, self.noise * gumbel)
        logits = self.replicas.read_out(states[:, lessons.ends])
        loss = _mean(_entropy(logits, lessons.labels), (lessons.lengths <= self.reach[:, None]).float())
        total = loss + self._suffix_loss(states, lessons) if self.heads else loss
        self.optimizer.zero_grad()
        total.sum().backward()
        parameters = [p for p in (*self.replicas.parameters.values(), *self.heads) if p.grad is not None]
        _clip(parameters, settings.clip)
        self.optimizer.step()
        low = loss.detach() < settings.threshold
        self.noise = torch.where(low.view(-1, 1, 1), (self.noise + settings.ramp).clamp(max=settings.noise), self.noise)
        self.reach = torch.where(low, (self.reach + 1).clamp(max=self.longest), self.reach)

    def _suffix_heads(self) -> list[Tensor]:
        """A linear read-out of the state for each suffix: the class of the prefix continued by it."""
        if not self.hankel.shape[1]:
            return []
        width, columns = self.replicas.config.hidden, self.hankel.shape[1] * len(self.words.classes)
        weight = torch.empty(self.settings.restarts, width, columns)
        weight.uniform_(-(width**-0.5), width**-0.5, generator=self.generator)
        bias = torch.zeros(self.settings.restarts, 1, columns)
        return [weight.requires_grad_(), bias.requires_grad_()]

    def _suffix_loss(self, states: Tensor, lessons: Lessons) -> Tensor:
        weight, bias = self.heads
        logits = torch.baddbmm(bias, states, weight).unflatten(2, (-1, len(self.words.classes)))
        known = (lessons.continued >= 0).float() * (lessons.depths <= self.reach[:, None]).float().unsqueeze(2)
        return _mean(_entropy(logits, lessons.continued.clamp(min=0)).flatten(1), known.flatten(1))

    def _look(self) -> None:
        """Run the machine of every replica on all words, and remember the faultless ones."""
        successors, starts, outputs = self.replicas.tables()
        states = self.whole.walk(successors, starts)[:, self.whole.ends]
        right = np.take_along_axis(outputs, states, axis=1) == self.words.labels
        # A network whose weights are no longer finite has a table all the same.
        right &= self.replicas.finite()[:, None]
        self.accuracies = right.mean(axis=1)
        for replica, faultless in enumerate(right.all(axis=1)):
            machine = self._machine(successors[replica], int(starts[replica]), outputs[replica]) if faultless else None
            self.seen[replica] = 0 if machine is None else self.seen[replica] * (machine == self.found[replica]) + 1
            self.found[replica] = machine
        self._learn_from_mistakes(right)

    def _machine(self, successors: Numbers, start: int, outputs: Numbers) -> MooreMachine:
        names = {"alphabet": self.words.symbols, "classes": self.words.classes}
        return MooreMachine(transitions=successors, outputs=outputs, start=start, **names).minimise()

    def _learn_from_mistakes(self, right: npt.NDArray[np.bool_]) -> None:
        """If a machine knows all that was taught and not the rest, teach the shortest words that it misjudges."""
        taught = right[:, self.chosen].all(axis=1) & ~right.all(axis=1)
        if not taught.any() or len(self.lessons.tree) > 4 * self.settings.nodes:
            return
        wrong = np.flatnonzero(~right[int(np.flatnonzero(taught)[0])])
        shortest = wrong[np.argsort(self.words.lengths[wrong], kind="stable")][:16]
        self.chosen = self.chosen.copy()
        self.chosen[shortest] = True
        self.lessons = Lessons.of(self.whole, self.words, self.chosen, self.hankel)
        self.longest = int(self.words.lengths[self.chosen].max())
        self.reach[self.reach >= self.words.lengths[shortest].min() - 1] = float(self.longest)


def _entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of every place of every replica."""
    targets = labels.expand(logits.shape[:-1])
    return cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none").view_as(targets)


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean of each replica."""
    return (values * weights).sum(1) / weights.sum(1).clamp(min=1.0)


def _clip(parameters: Sequence[Tensor], most: float) -> None:
    """Shorten the gradient of each replica to a norm."""
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    squares = torch.stack([grad.flatten(1).square().sum(1) for grad in grads])
    factor = (most / squares.sum(0).sqrt().clamp(min=1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor.view(-1, *(1,) * (grad.dim() - 1)))


def _refuse_two_classes_of_a_word(tree: PrefixTree, words: Sequences) -> None:
    first = np.full(len(tree), -1, dtype=np.int64)
    first[tree.ends[::-1]] = words.labels[::-1]
    wrong = np.flatnonzero(first[tree.ends] != words.labels)
    if len(wrong):
        raise DataError(
            where=f"word {wrong[0]}, {words.text(int(wrong[0]))!r}",
            got=f"the classes {words.classes[first[tree.ends[wrong[0]]]]} and {words.classes[words.labels[wrong[0]]]}",
            wanted="one class of each word",
            remedy="No machine can give it two: keep the right one.",
        )
