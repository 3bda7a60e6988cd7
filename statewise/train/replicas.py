"""Several classifiers of one shape side by side: one batched product where each would make its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from statewise.cells import RACCell
from statewise.data import Sequences
from statewise.errors import ArgumentError, NotMemorylessError
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.train.prefix_tree import Numbers, PrefixTree

Rows = Float[Tensor, "replicas rows width"]
#: What acts at random on a network, or between its steps: nothing of it is in the replicas.
IDLE = ("dropout", "embedding_dropout", "recurrent_dropout", "zoneout", "weight_drop", "state_noise")


class Replicas:
    """Memory-less classifiers of one layer that differ in their weights, trained as one.

    Parameters have a leading dimension over the replicas. A cell sees the rows of all replicas one behind the other;
    only the recurrent product knows which row has which weights.

    Args:
        config: of every replica; one layer with centroids.
        words: whose symbols and classes they are for.
        seeds: of the initial weights, one a replica.

    >>> words = Sequences.from_words(["ab", "b"], [1, 0])
    >>> replicas = Replicas(ClassifierConfig(hidden=4, centroids=(3,)), words, seeds=(1, 2))
    >>> replicas.states(PrefixTree.of(words), noise=None).shape  # after the empty word, a, b and ab
    torch.Size([2, 4, 4])
    """

    def __init__(self, config: ClassifierConfig, words: Sequences, seeds: Sequence[int]) -> None:
        self._refuse_random(config)
        self.config, self._words = config, words
        models = [self._build(torch.Generator().manual_seed(seed)) for seed in seeds]
        self.template, self.count = models[0], len(models)
        if self.template.why_not_memoryless or config.layers > 1 or not config.start_token:
            raise NotMemorylessError(
                where="learn_automaton",
                got=self.template.why_not_memoryless or f"{config.layers} layers, start_token={config.start_token}",
                wanted="one layer of a memory-less cell with centroids, and a start token",
                remedy='Give cell="multiplicative" or "gru", centroids=(20,), layers=1; other networks are trained by '
                "train_classifier, and read by extract or count.",
            )
        self.cell, found = self.template.layer.cell, self.template.centroids_of(0)
        assert found is not None
        self.centroids = found[0]
        parts = [dict(model.named_parameters()) for model in models]
        self.parameters = {name: torch.stack([part[name].detach() for part in parts]) for name in parts[0]}
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def _refuse_random(self, config: ClassifierConfig) -> None:
        for name in IDLE:
            if getattr(config, name):
                raise ArgumentError(
                    where=f"learn_automaton, ClassifierConfig.{name}",
                    got=getattr(config, name),
                    wanted=f"{getattr(ClassifierConfig, name)}: an automaton is learnt from all of every word",
                    remedy="train_classifier has it.",
                )

    def _build(self, generator: torch.Generator) -> SequenceClassifier:
        words = self._words
        return self.config.build(
            tokens=len(words.symbols), classes=len(words.classes), symbols=words.symbols, generator=generator
        )

    def model(self, replica: int) -> SequenceClassifier:
        """A classifier of its own with the weights that one replica has now."""
        model = self._build(torch.Generator().manual_seed(0))
        model.load_state_dict({name: stacked[replica].detach().clone() for name, stacked in self.parameters.items()})
        return model

    def states(self, tree: PrefixTree, noise: Float[Tensor, "replicas nodes k"] | None) -> Rows:
        """The state after every prefix of a tree.

        Args:
            tree: of the words.
            noise: what is added to the logits at every prefix, for transition "noisy"; None for nothing.
        """
        return torch.cat(list(self._levels(tree, noise)), dim=1)

    def _levels(self, tree: PrefixTree, noise: Tensor | None) -> Iterator[Tensor]:
        terms, firsts = self._terms(), tree.firsts
        zero = terms.new_zeros(self.count, 1, self.config.hidden)
        start = self._step(terms, self._tokens(self.template.start_id), zero, fresh=True)
        state = self._drawn(start, None if noise is None else noise[:, :1])
        yield state
        for depth, level in enumerate(tree.levels, start=1):
            tokens, parents = torch.from_numpy(level.tokens), torch.from_numpy(level.parents)
            moved = self._step(terms, tokens, state[:, parents])
            state = self._drawn(moved, None if noise is None else noise[:, firsts[depth] : firsts[depth + 1]])
            yield state

    def read_out(self, states: Rows) -> Float[Tensor, "replicas rows classes"]:
        """The logits of the classes of words that end in the states."""
        if self.config.readout == "u_end":
            end = self._tokens(self.template.end_id).expand(states.shape[1])
            states = self._step(self._terms(), end, states)
        return torch.baddbmm(self._bias("head.bias"), states, self.parameters["head.weight"].mT)

    @torch.no_grad()
    def tables(self) -> tuple[Numbers, Numbers, Numbers]:
        """The machine of every replica over its centroids: successors, start and class of each, as ``extract`` has it.

        Returns:
            (replicas, k, symbols), (replicas,) and (replicas, k).
        """
        centroids, terms = self.parameters["layer.centroids_l0"], self._terms()
        zero = terms.new_zeros(self.count, 1, self.config.hidden)
        start = self._nearest(self._step(terms, self._tokens(self.template.start_id), zero, fresh=True))
        moved = [
            self._nearest(self._step(terms, self._tokens(token).expand(self.centroids.k), centroids))
            for token in range(len(self._words.symbols))
        ]
        return np.stack(moved, axis=2), start[:, 0], self.read_out(centroids).argmax(2).numpy()

    @torch.no_grad()
    def finite(self) -> npt.NDArray[np.bool_]:
        """Which replicas have finite weights only."""
        each = [stacked.flatten(1).isfinite().all(1) for stacked in self.parameters.values()]
        return torch.stack(each).all(0).numpy()

    def _terms(self) -> Tensor:
        """What each token gives the cell, START and END included: (replicas, tokens + 2, blocks * hidden)."""
        embedded = self.parameters["embedding.weight"] @ self.parameters["layer.weight_ih_l0"].mT
        return embedded + self._bias("layer.bias_ih_l0") if "layer.bias_ih_l0" in self.parameters else embedded

    def _bias(self, name: str) -> Tensor:
        return self.parameters[name].unsqueeze(1)

    def _tokens(self, token: int) -> Int64[Tensor, "1"]:
        return torch.tensor([token])

    def _step(self, terms: Tensor, tokens: Tensor, state: Tensor, *, fresh: bool = False) -> Tensor:
        """One application of the cell to rows of all replicas; what is fresh has no state before it."""
        rows = state.shape[1]
        product = _Product(
            self.parameters["layer.weight_hh_l0"],
            self._bias("layer.bias_hh_l0") if "layer.bias_hh_l0" in self.parameters else None,
            ones=fresh and isinstance(self.cell, RACCell),
        )
        extra = tuple(
            self.parameters[f"layer.{name}_l0"].repeat_interleave(rows, dim=0) for name, _ in self.cell.extra_parameters
        )
        moved = self.cell.forward(terms[:, tokens].flatten(0, 1), state.flatten(0, 1), None, product, extra)
        stacked: Tensor = moved.state.unflatten(0, (self.count, rows))
        return stacked

    def _drawn(self, state: Tensor, noise: Tensor | None) -> Tensor:
        """The state drawn to the centroids."""
        transform = self.centroids if noise is None else replace(self.centroids, transition="noisy")
        centroids = (self.parameters["layer.centroids_l0"],)
        return transform.forward(state, None, (state, None), () if noise is None else (noise,), centroids).state

    def _nearest(self, state: Tensor) -> Numbers:
        return self.centroids.logits(state, self.parameters["layer.centroids_l0"]).argmax(2).numpy()


class _Product:
    """The recurrent product of the rows of all replicas, one replica behind the other."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, ones: bool) -> None:
        self._weight, self._bias, self._ones = weight, bias, ones

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        replicas, _, size = self._weight.shape
        blocks = slice(first * size, last * size)
        rows = value.unflatten(0, (replicas, -1))
        product = torch.ones_like(rows) if self._ones else rows @ self._weight[:, blocks].mT
        return (product if self._bias is None else product + self._bias[..., blocks]).flatten(0, 1)

    def backward(self, grad: Tensor, first: int, last: int) -> Tensor:
        raise AssertionError("autograd differentiates replicas")
