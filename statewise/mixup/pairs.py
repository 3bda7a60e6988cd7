"""The pairs of one batch, and what mixing makes of their labels: losses, and what to expect of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ShapeError
from statewise.heads import CRF
from statewise.mixup import losses
from statewise.mixup.crf_loss import mixed_crf_loss
from statewise.mixup.lengths import present
from statewise.mixup.mixture import Mixture
from statewise.transforms.base import choice


class _Places(NamedTuple):
    """Where the steps of pairs lie among the rows of pairs, and the labels of both members among those of sequences."""

    pairs: Tensor
    first: Tensor
    second: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Mixture):
    """A batch of mixed pairs: what they are, as :class:`Mixture` says, and the losses of their labels.

    Made by :meth:`statewise.mixup.Mixup.draw`, or from coefficients of your own by :meth:`Mixture.of`.

    >>> pairs = Pairs.of(torch.full((3, 2), 0.4), second=torch.tensor([1, 0]), lengths=[3, 2])
    >>> pairs.cross_entropy(torch.zeros(3, 2, 4), torch.zeros(3, 2, dtype=torch.long), reduction="token")
    tensor(1.3863)
    """

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
        where = "Pairs.cross_entropy"
        losses.check_reduction(where, reduction)
        losses.check_labels(f"{where} targets", targets)
        rows, labels, weights = self._labelled(logits, targets, where=where)
        found = losses.mixed_cross_entropy(rows, labels, weights, ignore_index=ignore_index, where=f"{where} targets")
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
        where = "Pairs.classification"
        losses.check_reduction(where, reduction)
        losses.check_labels(f"{where} labels", labels)
        if logits.ndim != 2 or len(logits) != len(self):
            raise ShapeError(where=where, got=tuple(logits.shape), wanted=f"({len(self)}, classes) of the pairs")
        if tuple(labels.shape) != (len(self.own_lengths),):
            wanted = f"({len(self.own_lengths)},), those of the sequences"
            raise ShapeError(where=f"{where} labels", got=tuple(labels.shape), wanted=wanted)
        own = self.mean_coefficient.to(logits.device)
        both = self._both(labels, logits)
        found = losses.mixed_cross_entropy(
            logits, both, (own, 1 - own), ignore_index=ignore_index, where=f"{where} labels"
        )
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
        if targets.ndim != 3 or targets.shape[2:] != outputs.shape[2:]:
            got, wanted = tuple(targets.shape), f"(steps, batch, {outputs.shape[-1]}), the width of the outputs"
            raise ShapeError(where="Pairs.squared_error targets", got=got, wanted=wanted)
        rows, both, weights = self._labelled(outputs, targets, where="Pairs.squared_error", ndim=None)
        return self._reduced(losses.mixed_squared_error(rows, both, weights), reduction)

    def crf(
        self,
        crf: CRF,
        emissions: Float[Tensor, "padded pairs tags"],
        tags: Int[Tensor, "labelled batch"],
        *,
        mode: str | None = None,
        reduction: str = "pair",
    ) -> Float[Tensor, "*shape"]:
        """The loss of a conditional random field on the pairs.

        Args:
            crf: of ``statewise.heads``.
            emissions: its scores of the tags of the pairs.
            tags: of the sequences; beyond their ends they may be anything.
            mode: "coupled", "prefix" or "paper"; None chooses; see :func:`statewise.mixup.mixed_crf_loss`.
            reduction: "pair" for the mean over the pairs, "none" for each pair's.
        """
        choice("Pairs.crf reduction", reduction, ("pair", "none"))
        longest = self._check_steps(emissions, tags, where="Pairs.crf")
        own, other = self.member_lengths
        tags = tags[:longest].to(emissions.device, non_blocking=True)
        # Beyond the ends tags may be anything, and must not be looked up.
        first, second = (
            torch.where(present(kept, longest).to(tags.device, non_blocking=True), self._select(tags, side), 0)
            for side, kept in ((self.first, own), (self.second, other))
        )
        share = self.coefficients[:longest].to(emissions.device, non_blocking=True)
        found = mixed_crf_loss(crf, emissions[:longest], first, second, share, own, other, mode=mode)
        return found if reduction == "none" else found.mean()

    def weighted(
        self,
        of_first: Float[Tensor, "padded pairs"],
        of_second: Float[Tensor, "padded pairs"],
        *,
        reduction: str = "pair",
    ) -> Float[Tensor, "*shape"]:
        """Losses of your own, for heads that give no logits: of each member's labels under the pairs' predictions.

        Args:
            of_first: the loss of every step with the first member's label; anything where it has ended.
            of_second: the same with the second member's.
            reduction: as for :meth:`cross_entropy`.
        """
        losses.check_reduction("Pairs.weighted", reduction)
        for name, side in (("of_first", of_first), ("of_second", of_second)):
            self._check_rows(side, where=f"Pairs.weighted {name}", ndim=2)
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
        losses.check_labels("Pairs.irreducible targets", targets)
        _, labels, weights = self._labelled(self.coefficients.unsqueeze(2), targets, where="Pairs.irreducible")
        return self._reduced(losses.label_entropy(labels, weights, ignore_index=ignore_index), reduction)

    def unlike_share(self, targets: Int[Tensor, "labelled batch"], *, ignore_index: int = -100) -> float:
        """The share of the pairs' steps at which two different labels are mixed.

        Where most labels are the same, as the "O" of names in a text, little is mixed; see
        :func:`statewise.mixup.unlike_share` for what to expect.

        Args:
            targets: the labels of the sequences; beyond their ends they may be anything.
            ignore_index: a label that does not count; steps without any that does are left out.
        """
        losses.check_labels("Pairs.unlike_share targets", targets)
        self._check_steps(self.coefficients, targets, where="Pairs.unlike_share")
        own, other = (targets.cpu().flatten()[at] for at in (self._places.first, self._places.second))
        here, there = (
            present(kept, self.steps).flatten()[self._places.pairs] & (labels != ignore_index)
            for kept, labels in zip(self.member_lengths, (own, other), strict=True)
        )
        unlike, counted = ((own != other) & here & there).sum(), (here | there).sum()
        return int(unlike) / max(1, int(counted))

    # --- inside

    @cached_property
    def _places(self) -> _Places:
        step, pair = present(self.lengths, self.steps).nonzero(as_tuple=True)
        batch = len(self.own_lengths)
        return _Places(step * len(self) + pair, step * batch + self.first[pair], step * batch + self.second[pair])

    def _labelled(
        self, rows: Tensor, targets: Tensor, *, where: str, ndim: int | None = 2
    ) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The rows of all steps that are some pair's, and the labels and weights of both members."""
        self._check_steps(rows, targets, where=where, ndim=ndim)
        device = rows.device
        at, first, second = (place.to(device, non_blocking=True) for place in self._places)
        labels = targets.to(device, non_blocking=True).flatten(0, 1)
        weights = (self._rows_of(self.weights, at), self._rows_of(self.partner_weights, at))
        flat = rows.flatten(0, 1)
        return (
            flat if len(at) == len(flat) else flat.index_select(0, at),
            (labels.index_select(0, first), labels.index_select(0, second)),
            weights,
        )

    def _check_steps(self, rows: Tensor, targets: Tensor, *, where: str, ndim: int | None = 2) -> int:
        longest = self._check_rows(rows, where=where)
        fits = targets.ndim == ndim if ndim else targets.ndim >= 2
        if not fits or targets.shape[0] < longest or targets.shape[1] != len(self.own_lengths):
            raise ShapeError(
                where=f"{where} targets",
                got=tuple(targets.shape),
                wanted=f"({self.steps}, {len(self.own_lengths)}), those of the sequences, time first",
            )
        return longest

    def _check_rows(self, rows: Tensor, *, where: str, ndim: int | None = None) -> int:
        longest = int(self.lengths.max())
        fits = rows.ndim == ndim if ndim else rows.ndim >= 2
        if not fits or rows.shape[0] < longest or rows.shape[1] != len(self):
            more = "" if ndim == 2 else ", ..."
            raise ShapeError(
                where=where, got=tuple(rows.shape), wanted=f"({self.steps}, {len(self)}{more}) of the pairs"
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

    @staticmethod
    def _rows_of(weights: Tensor, at: Tensor) -> Tensor:
        return weights.to(at.device, non_blocking=True).flatten().index_select(0, at)
