"""The pairs of one batch: who is mixed with whom, how strongly at each step, and what that makes of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.mixup import losses
from statewise.mixup.lengths import POLICIES, present, read_lengths, treat
from statewise.mixup.pairing import checked_members
from statewise.mixup.processes import CoefficientProcess, Constant
from statewise.transforms import Pairing
from statewise.transforms.base import choice

if TYPE_CHECKING:
    from statewise.heads import CRF

SITES = ("input", "pre_output", "through_time")


class _Places(NamedTuple):
    """Where the steps of pairs lie among the rows of pairs, and the labels of both members among those of sequences."""

    pairs: Tensor
    first: Tensor
    second: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Pairs of sequences and the coefficients that mix them, after the treatment of unequal lengths.

    Made by :meth:`statewise.mixup.Mixup.draw`, or from coefficients of your own by :meth:`of`. Integers are on the CPU,
    coefficients and weights on the device of the network, without gradient.

    Attributes:
        site: where they are mixed: "input", "pre_output" or "through_time".
        layer: which layer of a stack mixes through time; None elsewhere.
        first: the sequence that is the first member of each pair.
        second: the sequence that is the second.
        lengths: how many steps each pair has.
        own_lengths: how many steps each sequence has.
        coefficients: the weight of the first member, 0 beyond the end of a pair.
        weights: of the first member's labels.
        partner_weights: of the second member's labels.
        mean_coefficient: over the steps of each pair, for labels of whole sequences (Remark 1 of the paper).
        last: the last coefficients as they were drawn, with which a chain goes on.
        process: what drew the coefficients; None if they were given.
        continues: whether these pairs go on with an earlier segment, so that an initial state is mixed already.
    """

    site: str
    layer: int | None
    first: Int64[Tensor, " pairs"]
    second: Int64[Tensor, " pairs"]
    lengths: Int64[Tensor, " pairs"]
    own_lengths: Int64[Tensor, " batch"]
    coefficients: Float[Tensor, "steps pairs"]
    weights: Float[Tensor, "steps pairs"]
    partner_weights: Float[Tensor, "steps pairs"]
    mean_coefficient: Float[Tensor, " pairs"]
    last: Float64[Tensor, " pairs"]
    process: CoefficientProcess | None = None
    continues: bool = False

    @classmethod
    def of(
        cls,
        coefficients: Float[Tensor, "drawn pairs"],
        *,
        second: Int[Tensor, " pairs"],
        first: Int[Tensor, " pairs"] | None = None,
        lengths: Tensor | Sequence[int] | None = None,
        policy: str = "handover",
        steps: int | None = None,
        site: str = "input",
        layer: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        process: CoefficientProcess | None = None,
        continues: bool = False,
    ) -> Pairs:
        """Pairs from coefficients: treat their lengths, then bring them to a device and a dtype.

        Args:
            coefficients: the weight of the first member at each step, as drawn; more steps than needed do no harm.
            second: the second member of each pair.
            first: the first member; None means that pair p belongs to sequence p.
            lengths: of the sequences; None if each has as many steps as there are coefficients.
            policy: "handover", "zero" or "truncate".
            steps: of the padded batch; None means those of the longest sequence.
            site: where they will be mixed.
            layer: which layer mixes through time.
            device: of coefficients and weights.
            dtype: of coefficients and weights; they are computed in float64.
            process: what drew them, with which :meth:`next` goes on.
            continues: whether they go on with an earlier segment.

        >>> pairs = Pairs.of(torch.tensor([[0.9], [0.5], [0.2]]), first=torch.tensor([0]), second=torch.tensor([1]))
        Traceback (most recent call last):
        statewise.errors.ShapeError: Pairs.lengths: got None for pairs of chosen sequences, wanted the length of each ...
        >>> pairs = Pairs.of(torch.tensor([[0.9], [0.5], [0.2]]), second=torch.tensor([0]))
        >>> pairs.mean_coefficient
        tensor([0.5333])
        """
        choice("Pairs.policy", policy, POLICIES)
        choice("Pairs.site", site, SITES)
        drawn = coefficients.detach().double().cpu()
        if lengths is None and first is not None:
            got, wanted = "None for pairs of chosen sequences", "the length of each sequence of the batch"
            raise ShapeError(where="Pairs.lengths", got=got, wanted=wanted)
        batch = len(second) if lengths is None else len(lengths)
        own = read_lengths(lengths, steps=len(drawn), batch=batch)
        second = checked_members(second, batch, where="Pairs.second")
        first = torch.arange(batch) if first is None else checked_members(first, batch, where="Pairs.first")
        if not len(first) == len(second) == drawn.shape[1]:
            got = f"{len(first)} first, {len(second)} second members, {drawn.shape[1]} columns of coefficients"
            raise ShapeError(where="Pairs", got=got, wanted="as many of each")
        if not bool(((drawn >= 0) & (drawn <= 1)).all()):
            raise ArgumentError(where="Pairs.coefficients", got="some beyond", wanted="numbers from 0 to 1")
        longest = int(own.max())
        treated = treat(policy, _rows(drawn, longest if steps is None else steps), own[first], own[second])
        if steps is not None and steps < longest:
            raise ShapeError(where="Pairs.steps", got=steps, wanted=f"at least {longest}, the longest sequence's")
        mean = treated.coefficients.sum(0) / treated.lengths
        on = {"device": device, "dtype": dtype, "non_blocking": True}
        return cls(
            site=site,
            layer=layer,
            first=first,
            second=second,
            lengths=treated.lengths,
            own_lengths=own,
            coefficients=treated.coefficients.to(**on),
            weights=treated.weights.to(**on),
            partner_weights=treated.partner_weights.to(**on),
            mean_coefficient=mean.to(**on),
            last=drawn[longest - 1],
            process=process,
            continues=continues,
        )

    @classmethod
    def alone(
        cls,
        lengths: Tensor | Sequence[int],
        *,
        steps: int | None = None,
        site: str = "input",
        layer: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Pairs:
        """Every sequence with itself and coefficient 1: what a network in eval mode has, so that a loop needs no branch.

        >>> Pairs.alone([2, 3]).partner_weights.sum()
        tensor(0.)
        """
        own = torch.as_tensor(lengths)
        ones = torch.ones(int(own.max()), len(own), dtype=torch.float64)
        options = {"steps": steps, "site": site, "layer": layer, "device": device, "dtype": dtype}
        return cls.of(ones, second=torch.arange(len(own)), lengths=own, process=Constant(1.0), **options)

    def __repr__(self) -> str:
        where = "" if self.layer is None else f", layer={self.layer}"
        return f"Pairs({self.site!r}{where}, pairs={len(self)}, steps={self.steps}, sequences={len(self.own_lengths)})"

    def __len__(self) -> int:
        return len(self.first)

    @property
    def steps(self) -> int:
        """How many steps the padded pairs have."""
        return len(self.coefficients)

    @property
    def member_lengths(self) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
        """How many steps of the first and of the second member belong to each pair."""
        first, second = (torch.minimum(self.own_lengths[side], self.lengths) for side in (self.first, self.second))
        return first, second

    @property
    def tail_share(self) -> float:
        """The share of the pairs' steps that have one member only; sorting by length makes it smaller.

        >>> Pairs.of(torch.ones(4, 2) / 2, second=torch.tensor([1, 0]), lengths=[4, 3]).tail_share
        0.25
        """
        first, second = self.member_lengths
        return float((first - second).abs().sum() / self.lengths.sum())

    @property
    def pairing(self) -> Pairing:
        """What a layer of statewise is given to mix through time: ``layer(x, pairing=pairs.pairing)``."""
        return Pairing(
            partner=self.second,
            coefficients=self.coefficients[: int(self.own_lengths.max())],
            first=self.first,
            lengths=self.lengths,
            layer=self.layer,
        )

    def next(self, steps: int, *, generator: torch.Generator | None = None) -> Pairs:
        """The same pairs in the next segment of a text, with the chain of coefficients going on.

        A state that is mixed must meet the same partner again; so segments of truncated backpropagation keep their
        pairs until the state is reset.

        Args:
            steps: how many steps the segment has; all sequences have all of them.
            generator: a generator of the CPU; None means torch's global one.
        """
        if self.process is None or bool((self.own_lengths != self.own_lengths[0]).any()):
            raise ArgumentError(
                where="Pairs.next",
                got="pairs of given coefficients" if self.process is None else "sequences of unequal length",
                wanted="pairs that a mixup drew for segments of equal length",
            )
        drawn = self.process.sample(len(self), steps, generator=generator, previous=self.last)
        return Pairs.of(
            drawn,
            first=self.first,
            second=self.second,
            lengths=torch.full_like(self.own_lengths, steps),
            site=self.site,
            layer=self.layer,
            device=self.coefficients.device,
            dtype=self.coefficients.dtype,
            process=self.process,
            continues=True,
        )

    def exchanged(self) -> Pairs:
        """The same pairs with first and second member exchanged: whatever is computed of them stays the same."""
        inside = self._here(self.lengths)
        return replace(
            self,
            first=self.second,
            second=self.first,
            coefficients=torch.where(inside, 1 - self.coefficients, 0),
            weights=self.partner_weights,
            partner_weights=self.weights,
            mean_coefficient=1 - self.mean_coefficient,
            last=1 - self.last,
            process=None,
        )

    # --- mixing

    def mix(self, x: Float[Tensor, "padded batch width"]) -> Float[Tensor, "steps pairs width"]:
        """``lambda_t x_t + (1 - lambda_t) x'_t``, where a member that has ended is the zero vector.

        Args:
            x: inputs, outputs or anything else of every step of every sequence; padding may hold anything.

        >>> pairs = Pairs.of(torch.full((2, 2), 0.25), second=torch.tensor([1, 0]))
        >>> pairs.mix(torch.tensor([[[1.0], [5.0]], [[2.0], [6.0]]])).flatten().tolist()
        [4.0, 2.0, 5.0, 3.0]
        """
        if x.shape[0] < self.steps or x.shape[1] != len(self.own_lengths):
            wanted = f"({self.steps}, {len(self.own_lengths)}, width), time first"
            raise ShapeError(where="Pairs.mix", got=tuple(x.shape), wanted=wanted)
        x = x[: self.steps]
        first, second = self._select(x, self.first), self._select(x, self.second)
        if bool((self.own_lengths < self.steps).any()) or bool((self.lengths < self.steps).any()):
            # By `where`: nothing times NaN is NaN.
            first, second = (
                torch.where(self._here(lengths).to(x.device, non_blocking=True).unsqueeze(2), side, 0)
                for side, lengths in zip((first, second), self.member_lengths, strict=True)
            )
        weight = self.coefficients.to(x.device, non_blocking=True).unsqueeze(2)
        return (weight * first + (1 - weight) * second).to(x.dtype)

    def mix_pooled(self, features: Float[Tensor, "batch width"]) -> Float[Tensor, "pairs width"]:
        """Mix one vector a sequence by the mean coefficient, which is also that of the labels."""
        first, second = (features.index_select(0, self._on(features, side)) for side in (self.first, self.second))
        weight = self.mean_coefficient.to(features.device).unsqueeze(1)
        return (weight * first + (1 - weight) * second).to(features.dtype)

    # --- losses

    def cross_entropy(
        self,
        logits: Float[Tensor, "padded pairs classes"],
        targets: Int[Tensor, "labelled batch"],
        *,
        reduction: str = "pair",
        ignore_index: int = -100,
    ) -> Float[Tensor, "*shape"]:
        """The loss of tags: ``sum_t w_t CE(p_t, y_t) + w'_t CE(p_t, y'_t)``.

        Args:
            logits: the scores of the pairs.
            targets: the labels of the sequences; beyond their ends they may be anything.
            reduction: "pair" sums over the steps and averages over the pairs, "token" averages over all labels, "none"
                gives each step's, shape (steps, pairs).
            ignore_index: a label that does not count; the partner's label at that step still does.

        >>> pairs = Pairs.of(torch.full((3, 2), 0.4), second=torch.tensor([1, 0]), lengths=[3, 2])
        >>> pairs.cross_entropy(torch.zeros(3, 2, 4), torch.zeros(3, 2, dtype=torch.long))
        tensor(4.1589)
        """
        losses.check_reduction("Pairs.cross_entropy", reduction)
        rows, labels, weights = self._labelled(logits, targets, where="Pairs.cross_entropy")
        found = losses.mixed_cross_entropy(rows, labels, weights, ignore_index=ignore_index)
        return self._reduced(found, reduction)

    def language(
        self,
        logits: Float[Tensor, "padded pairs words"],
        targets: Int[Tensor, "labelled batch"],
        *,
        ignore_index: int = -100,
    ) -> Float[Tensor, ""]:
        """The loss of a language model, per word: ``lambda_t CE(p_t, x_{t+1}) + (1 - lambda_t) CE(p_t, x'_{t+1})``.

        Args:
            logits: the scores of the words after each step.
            targets: the words that follow in each sequence.
            ignore_index: a word that does not count.
        """
        return self.cross_entropy(logits, targets, reduction="token", ignore_index=ignore_index)

    def classification(
        self,
        logits: Float[Tensor, "pairs classes"],
        labels: Int[Tensor, " batch"],
        *,
        reduction: str = "pair",
        ignore_index: int = -100,
    ) -> Float[Tensor, "*shape"]:
        """The loss of one label a sequence: ``l CE(p, y) + (1 - l) CE(p, y')`` with the mean coefficient ``l``.

        Args:
            logits: the scores of the pairs.
            labels: of the sequences.
            reduction: "pair" or "token" for a mean, or "none".
            ignore_index: a label that does not count.

        Karamzade et al. 2020, Remark 1.
        """
        losses.check_reduction("Pairs.classification", reduction)
        own = self.mean_coefficient.to(logits.device)
        both = self._both(labels, logits)
        found = losses.mixed_cross_entropy(logits, both, (own, 1 - own), ignore_index=ignore_index)
        return found.losses if reduction == "none" else losses.reduced(found, reduction=reduction, pairs=len(self))

    def squared_error(
        self,
        outputs: Float[Tensor, "padded pairs width"],
        targets: Float[Tensor, "labelled batch width"],
        *,
        reduction: str = "pair",
    ) -> Float[Tensor, "*shape"]:
        """The squared distance to the mixed targets, summed over the width.

        Args:
            outputs: the predictions for the pairs.
            targets: of the sequences; beyond their ends they may be anything.
            reduction: as for :meth:`cross_entropy`.
        """
        losses.check_reduction("Pairs.squared_error", reduction)
        rows, both, weights = self._labelled(outputs, targets, where="Pairs.squared_error")
        return self._reduced(losses.mixed_squared_error(rows, both, weights), reduction)

    def crf(
        self,
        crf: CRF,
        emissions: Float[Tensor, "padded pairs tags"],
        tags: Int[Tensor, "labelled batch"],
        *,
        mode: str = "prefix",
        reduction: str = "pair",
    ) -> Float[Tensor, "*shape"]:
        """The loss of a conditional random field on the pairs.

        Args:
            crf: of ``statewise.heads``.
            emissions: its scores of the tags of the pairs.
            tags: of the sequences; beyond their ends they may be anything.
            mode: "prefix", "paper" or "coupled"; see :func:`statewise.mixup.mixed_crf_loss`.
            reduction: "pair" for the mean over the pairs, "none" for each pair's.
        """
        from statewise.mixup.crf_loss import mixed_crf_loss

        choice("Pairs.crf reduction", reduction, ("pair", "none"))
        longest = self._check_steps(emissions, tags, where="Pairs.crf")
        own, other = self.member_lengths
        both = (
            torch.where(
                present(lengths, longest).to(tags.device, non_blocking=True), self._select(tags[:longest], side), 0
            )
            for side, lengths in ((self.first, own), (self.second, other))
        )
        found = mixed_crf_loss(
            crf,
            emissions[:longest],
            *(side.to(emissions.device) for side in both),
            self.coefficients[:longest].to(emissions.device, emissions.dtype),
            own,
            other,
            mode=mode,
        )
        return found if reduction == "none" else found.mean()

    def weighted(
        self,
        of_first: Float[Tensor, "padded pairs"],
        of_second: Float[Tensor, "padded pairs"],
        *,
        reduction: str = "pair",
    ) -> Float[Tensor, "*shape"]:
        """Losses of your own, for heads that give no logits: those of each member's labels under the pairs' predictions.

        Args:
            of_first: the loss of every step with the first member's label; anything where it has ended.
            of_second: the same with the second member's.
            reduction: as for :meth:`cross_entropy`.
        """
        losses.check_reduction("Pairs.weighted", reduction)
        at = self._places.pairs.to(of_first.device, non_blocking=True)
        total, value = torch.zeros((), device=of_first.device), torch.zeros((), device=of_first.device)
        for side, weights in ((of_first, self.weights), (of_second, self.partner_weights)):
            weight = self._rows_of(weights, at)
            value = value + torch.where(weight > 0, weight * side.flatten().index_select(0, at), 0)
            total = total + weight
        return self._reduced(losses.Weighted(value, total), reduction)

    # --- what to expect of them

    def irreducible(
        self, targets: Int[Tensor, "labelled batch"], *, reduction: str = "pair", ignore_index: int = -100
    ) -> Float[Tensor, "*shape"]:
        """The entropy of the mixed labels: no network has a :meth:`cross_entropy` on these pairs below it.

        What is left of the loss is a divergence, which can reach 0: an honest sign of convergence.

        >>> pairs = Pairs.of(torch.full((2, 2), 0.5), second=torch.tensor([1, 0]))
        >>> pairs.irreducible(torch.tensor([[0, 1], [0, 0]]), reduction="none")
        tensor([[0.6931, 0.6931],
                [0.0000, 0.0000]])
        """
        losses.check_reduction("Pairs.irreducible", reduction)
        _, labels, weights = self._labelled(self.coefficients.unsqueeze(2), targets, where="Pairs.irreducible")
        return self._reduced(losses.label_entropy(labels, weights, ignore_index=ignore_index), reduction)

    def unlike_share(self, targets: Int[Tensor, "labelled batch"]) -> float:
        """The share of the pairs' steps at which two different labels are mixed.

        Where most labels are the same, as the "O" of names in a text, little is mixed; see
        :func:`statewise.mixup.unlike_share` for what to expect.
        """
        self._check_steps(self.coefficients, targets, where="Pairs.unlike_share")
        own, other = (targets.cpu().flatten()[at] for at in (self._places.first, self._places.second))
        both = torch.minimum(*self.member_lengths)
        inside = present(both, self.steps).flatten()[self._places.pairs]
        return float(((own != other) & inside).double().mean())

    # --- inside

    @cached_property
    def _places(self) -> _Places:
        step, pair = present(self.lengths, self.steps).nonzero(as_tuple=True)
        batch = len(self.own_lengths)
        return _Places(step * len(self) + pair, step * batch + self.first[pair], step * batch + self.second[pair])

    def _labelled(
        self, rows: Tensor, targets: Tensor, *, where: str
    ) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The rows of all steps that are some pair's, and the labels and weights of both members."""
        self._check_steps(rows, targets, where=where)
        device = rows.device
        at, first, second = (place.to(device, non_blocking=True) for place in self._places)
        labels = targets.to(device, non_blocking=True).flatten(0, 1)
        weights = (self._rows_of(self.weights, at), self._rows_of(self.partner_weights, at))
        return (
            rows.flatten(0, 1).index_select(0, at),
            (labels.index_select(0, first), labels.index_select(0, second)),
            weights,
        )

    def _check_steps(self, rows: Tensor, targets: Tensor, *, where: str) -> int:
        longest = int(self.lengths.max())
        if rows.shape[0] < longest or rows.shape[1] != len(self):
            raise ShapeError(where=where, got=tuple(rows.shape), wanted=f"({self.steps}, {len(self)}, ...) of the pairs")
        if targets.shape[0] < longest or targets.shape[1] != len(self.own_lengths):
            raise ShapeError(
                where=f"{where} targets",
                got=tuple(targets.shape),
                wanted=f"({self.steps}, {len(self.own_lengths)}), those of the sequences, time first",
            )
        return longest

    def _reduced(self, found: losses.Weighted, reduction: str) -> Tensor:
        if reduction != "none":
            return losses.reduced(found, reduction=reduction, pairs=len(self))
        at = self._places.pairs.to(found.losses.device, non_blocking=True)
        blank = found.losses.new_zeros(self.steps * len(self))
        return blank.index_copy(0, at, found.losses).view(self.steps, len(self))

    def _both(self, labels: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        labels = labels.to(like.device, non_blocking=True)
        return labels[self._on(like, self.first)], labels[self._on(like, self.second)]

    def _select(self, x: Tensor, members: Tensor) -> Tensor:
        if len(members) == x.shape[1] and bool((members == torch.arange(len(members))).all()):
            return x
        return x.index_select(1, self._on(x, members))

    def _here(self, lengths: Tensor) -> Tensor:
        return present(lengths, self.steps).to(self.coefficients.device, non_blocking=True)

    @staticmethod
    def _rows_of(weights: Tensor, at: Tensor) -> Tensor:
        return weights.to(at.device, non_blocking=True).flatten().index_select(0, at)

    @staticmethod
    def _on(x: Tensor, members: Tensor) -> Tensor:
        return members.to(x.device, non_blocking=True)


def _rows(drawn: Tensor, steps: int) -> Tensor:
    """Coefficients of so many steps: what is missing lies beyond the end of every pair."""
    if len(drawn) >= steps:
        return drawn[:steps]
    return torch.cat((drawn, drawn.new_zeros(steps - len(drawn), drawn.shape[1])))
