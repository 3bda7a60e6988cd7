"""Pairs of sequences: who is mixed with whom, how strongly at each step, and what is made of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.mixup.lengths import POLICIES, present, read_lengths, treat
from statewise.mixup.pairing import checked_members
from statewise.mixup.processes import CoefficientProcess, Constant
from statewise.transforms import Pairing
from statewise.transforms.base import choice

Kind = TypeVar("Kind", bound="Mixture")

SITES = ("input", "pre_output", "through_time")


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    """Pairs of sequences and the coefficients that mix them, after the treatment of unequal lengths.

    Made by :meth:`statewise.mixup.Mixup.draw`, or from coefficients of your own by :meth:`of`. Integers are on the CPU,
    coefficients and weights on the device of the network, without gradient.

    Attributes:
        site: where they are mixed: "input", "pre_output" or "through_time".
        layer: which layer of a stack mixes through time; None elsewhere.
        policy: how unequal lengths were treated: "handover", "zero" or "truncate".
        first: the sequence that is the first member of each pair.
        second: the sequence that is the second.
        lengths: how many steps each pair has.
        own_lengths: how many steps each sequence has.
        coefficients: the weight of the first member, 0 beyond the end of a pair.
        weights: of the first member's labels.
        partner_weights: of the second member's labels.
        mean_coefficient: over the steps of each pair, for labels of whole sequences (Remark 1 of the paper).
        exact: the coefficients in float64 on the CPU, where nothing waits for them.
        process: what drew the coefficients; None if they were given.
        continues: whether these pairs go on with an earlier segment, so that an initial state is mixed already.
    """

    site: str
    layer: int | None
    policy: str
    first: Int64[Tensor, " pairs"]
    second: Int64[Tensor, " pairs"]
    lengths: Int64[Tensor, " pairs"]
    own_lengths: Int64[Tensor, " batch"]
    coefficients: Float[Tensor, "steps pairs"]
    weights: Float[Tensor, "steps pairs"]
    partner_weights: Float[Tensor, "steps pairs"]
    mean_coefficient: Float[Tensor, " pairs"]
    exact: Float64[Tensor, "steps pairs"]
    process: CoefficientProcess | None = None
    continues: bool = False

    @classmethod
    def of(
        cls: type[Kind],
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
    ) -> Kind:
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

        >>> Mixture.of(torch.tensor([[0.9], [0.5], [0.2]]), second=torch.tensor([0])).mean_coefficient
        tensor([0.5333])
        """
        choice("Pairs.policy", policy, POLICIES)
        choice("Pairs.site", site, SITES)
        drawn = _checked(coefficients)
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
        longest = int(own.max())
        treated = treat(policy, _rows(drawn, longest if steps is None else steps), own[first], own[second])
        if steps is not None and steps < longest:
            raise ShapeError(where="Pairs.steps", got=steps, wanted=f"at least {longest}, the longest sequence's")
        mean = treated.coefficients.sum(0) / treated.lengths
        on: dict[str, Any] = {"device": device, "dtype": dtype, "non_blocking": True}
        return cls(
            site=site,
            layer=layer,
            policy=policy,
            first=first,
            second=second,
            lengths=treated.lengths,
            own_lengths=own,
            coefficients=treated.coefficients.to(**on),
            weights=treated.weights.to(**on),
            partner_weights=treated.partner_weights.to(**on),
            mean_coefficient=mean.to(**on),
            exact=treated.coefficients,
            process=process,
            continues=continues,
        )

    @classmethod
    def alone(
        cls: type[Kind],
        lengths: Tensor | Sequence[int],
        *,
        steps: int | None = None,
        site: str = "input",
        layer: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Kind:
        """Every sequence with itself and coefficient 1, as a network in eval mode has it: so a loop needs no branch.

        >>> Mixture.alone([2, 3]).partner_weights.sum()
        tensor(0.)
        """
        own = torch.as_tensor(lengths)
        ones = torch.ones(int(own.max()), len(own), dtype=torch.float64)
        options: dict[str, Any] = {"steps": steps, "site": site, "layer": layer, "device": device, "dtype": dtype}
        return cls.of(ones, second=torch.arange(len(own)), lengths=own, process=Constant(1.0), **options)

    def __repr__(self) -> str:
        where = "" if self.layer is None else f", layer={self.layer}"
        sizes = f"pairs={len(self)}, steps={self.steps}, sequences={len(self.own_lengths)}"
        return f"{type(self).__name__}({self.site!r}{where}, {sizes})"

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

        >>> Mixture.of(torch.ones(4, 2) / 2, second=torch.tensor([1, 0]), lengths=[4, 3]).tail_share
        0.25
        """
        first, second = self.member_lengths
        return float((first - second).abs().sum() / self.lengths.sum())

    @property
    def pairing(self) -> Pairing:
        """What a layer of statewise is given to mix through time: ``layer(x, pairing=pairs.pairing)``."""
        return self.pairing_of(self.first, self.second)

    def pairing_of(self, first: Int64[Tensor, " pairs"], second: Int64[Tensor, " pairs"]) -> Pairing:
        """The same for sequences that lie in another order.

        Args:
            first: where the first members lie.
            second: where the second ones do.
        """
        return Pairing(
            partner=second,
            coefficients=self.exact[: int(self.own_lengths.max())],
            first=first,
            lengths=self.lengths,
            layer=self.layer,
        )

    def next(
        self: Kind,
        steps: int,
        *,
        generator: torch.Generator | None = None,
        padded: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Kind:
        """The same pairs in the next segment of a text, with the chain of coefficients going on.

        A state that is mixed must meet the same partner again; so segments of truncated backpropagation keep their
        pairs until the state is reset.

        Args:
            steps: how many steps the segment has; all sequences have all of them.
            generator: a generator of the CPU; None means torch's global one.
            padded: how many steps the padded segment has; None for no padding.
            device: of coefficients and weights; None keeps it.
            dtype: of coefficients and weights; None keeps it.
        """
        if self.process is None or bool((self.own_lengths != self.own_lengths[0]).any()):
            raise ArgumentError(
                where="Pairs.next",
                got="pairs of given coefficients" if self.process is None else "sequences of unequal length",
                wanted="pairs that a mixup drew for segments of equal length",
            )
        drawn = self.process.sample(
            len(self), steps, generator=generator, previous=self.exact[int(self.lengths[0]) - 1]
        )
        return type(self).of(
            drawn,
            first=self.first,
            second=self.second,
            lengths=torch.full_like(self.own_lengths, steps),
            policy=self.policy,
            steps=padded,
            site=self.site,
            layer=self.layer,
            device=self.coefficients.device if device is None else device,
            dtype=self.coefficients.dtype if dtype is None else dtype,
            process=self.process,
            continues=True,
        )

    def exchanged(self: Kind) -> Kind:
        """The same pairs with first and second member exchanged: whatever is computed of them stays the same."""
        inside = present(self.lengths, self.steps)
        exact = torch.where(inside, 1 - self.exact, 0)
        return replace(
            self,
            first=self.second,
            second=self.first,
            coefficients=exact.to(self.coefficients.device, self.coefficients.dtype, non_blocking=True),
            weights=self.partner_weights,
            partner_weights=self.weights,
            mean_coefficient=1 - self.mean_coefficient,
            exact=exact,
            process=None,
        )

    # --- mixing

    def mix(self, x: Float[Tensor, "padded batch width"]) -> Float[Tensor, "steps pairs width"]:
        """``lambda_t x_t + (1 - lambda_t) x'_t``, where a member that has ended is the zero vector.

        Args:
            x: inputs, outputs or anything else of every step of every sequence; padding may hold anything.

        >>> pairs = Mixture.of(torch.full((2, 2), 0.25), second=torch.tensor([1, 0]))
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

    # --- inside

    def _select(self, x: Tensor, members: Tensor) -> Tensor:
        if len(members) == x.shape[1] and bool((members == torch.arange(len(members))).all()):
            return x
        return x.index_select(1, self._on(x, members))

    def _here(self, lengths: Tensor) -> Tensor:
        return present(lengths, self.steps).to(self.coefficients.device, non_blocking=True)

    @staticmethod
    def _on(x: Tensor, members: Tensor) -> Tensor:
        return members.to(x.device, non_blocking=True)


def _checked(coefficients: Tensor) -> Tensor:
    """Coefficients in float64 on the CPU, refused if they are none."""
    where = "Pairs.coefficients"
    if not isinstance(coefficients, Tensor) or not coefficients.is_floating_point():
        got = str(coefficients.dtype) if isinstance(coefficients, Tensor) else type(coefficients).__name__
        raise DtypeError(where=where, got=got, wanted="a tensor of real numbers")
    if coefficients.ndim != 2 or not len(coefficients):
        raise ShapeError(
            where=where,
            got=tuple(coefficients.shape),
            wanted="(steps, pairs), at least one step",
            remedy="One coefficient a pair is coefficients.expand(steps, -1)." if coefficients.ndim == 1 else "",
        )
    drawn = coefficients.detach().double().cpu()
    wrong = ~((drawn >= 0) & (drawn <= 1))
    if bool(wrong.any()):
        raise ArgumentError(where=where, got=float(drawn[wrong][0]), wanted="numbers from 0 to 1")
    return drawn


def _rows(drawn: Tensor, steps: int) -> Tensor:
    """Coefficients of so many steps: what is missing lies beyond the end of every pair."""
    if len(drawn) >= steps:
        return drawn[:steps]
    return torch.cat((drawn, drawn.new_zeros(steps - len(drawn), drawn.shape[1])))
