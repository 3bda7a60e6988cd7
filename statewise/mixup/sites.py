"""The three places where two sequences are mixed: their inputs, their outputs, or the state between two steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, LengthError
from statewise.layers import RecurrentLayer
from statewise.mixup.lengths import POLICIES, read_lengths
from statewise.mixup.pairing import Rule, check_rule, pair
from statewise.mixup.pairs import Pairs
from statewise.mixup.pooling import POOLS, pool_steps
from statewise.mixup.processes import CoefficientProcess, MarkovBeta, check_cpu
from statewise.mixup.running import apply, check_call
from statewise.mixup.states import mix_state, select_state
from statewise.transforms import Pairing
from statewise.transforms.base import choice

Inputs = Float[Tensor, "steps batch width"]


class Mixed(NamedTuple):
    """What a mixup made of a batch: the outputs of the pairs, the final state, and the pairs."""

    output: Float[Tensor, "steps pairs hidden"]
    state: Any
    pairs: Pairs


@dataclass(frozen=True, kw_only=True)
class Mixup(ABC):
    """Sequence mixup at one place: trains a network on pairs of sequences and on pairs of their labels.

    ``output, pairs = mix(layer, x, lengths=lengths)`` and ``loss = pairs.cross_entropy(head(output), tags)`` are the
    two lines of a training loop that change. It acts where the layer is in training mode; in eval mode the layer runs
    plainly, and every sequence is its own pair (Karamzade et al. 2020).

    Args:
        alpha: the shape of the coefficients, see :class:`MarkovBeta`: small mixes little, large evenly.
        rho: how fast the coefficients forget: 0 is one for a sequence, 1 independent ones at each step.
        process: another process of coefficients in place of alpha and rho.
        pairing: "permute", "derange", "double", "sorted", "double_sorted", or a function; see
            :func:`statewise.mixup.pair`.
        lengths: what happens where one member has ended: "handover", "zero" or "truncate"; see
            :func:`statewise.mixup.treat`.
    """

    alpha: float = 1.0
    rho: float = 0.0
    process: CoefficientProcess | None = None
    pairing: str | Rule = "permute"
    lengths: str = "handover"

    site: ClassVar[str]

    def __post_init__(self) -> None:
        if self.process is None:
            MarkovBeta(self.alpha, self.rho)
        elif not isinstance(self.process, CoefficientProcess):
            got = type(self.process).__name__
            raise DtypeError(where=f"{self._name}.process", got=got, wanted="a process such as MarkovBeta(0.5, 0.1)")
        elif (self.alpha, self.rho) != (1.0, 0.0):
            got = f"alpha={self.alpha} and rho={self.rho} beside a process"
            raise ArgumentError(where=self._name, got=got, wanted="either these or a process, which has its own")
        check_rule(f"{self._name}.pairing", self.pairing)
        choice(f"{self._name}.lengths", self.lengths, POLICIES)

    @property
    def coefficients(self) -> CoefficientProcess:
        """The process that draws the coefficients."""
        return MarkovBeta(self.alpha, self.rho) if self.process is None else self.process

    def draw(
        self,
        lengths: Tensor | Sequence[int],
        *,
        steps: int | None = None,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        previous: Pairs | None = None,
        layers: int = 1,
    ) -> Pairs:
        """Draw pairs and coefficients for a batch: first who is paired, then the layer if it is random, then how.

        Args:
            lengths: of the sequences.
            steps: of the padded batch; None means those of the longest sequence. Padding draws nothing.
            generator: a generator of the CPU; None means torch's global one.
            device: of coefficients and weights; None means that of the previous pairs, or the CPU.
            dtype: of coefficients and weights; None means that of the previous pairs, or float32.
            previous: the pairs of the segment before, which are kept and whose chain goes on; see :meth:`Pairs.next`.
                All sequences of a segment have one length.
            layers: how many layers the stack has, for a layer that is drawn.
        """
        check_cpu(generator, where=self._name)
        if not len(lengths):
            raise LengthError(where=f"{self._name}.draw lengths", got="an empty batch", wanted="sequences to pair")
        longest = int(torch.as_tensor(lengths).max())
        own = read_lengths(lengths, steps=longest, batch=len(lengths))
        if previous is not None:
            self._check_previous(previous, own)
            return previous.next(longest, generator=generator, padded=steps, device=device, dtype=dtype)
        couples = pair(self.pairing, own, generator)
        layer, process = self._layer(layers, generator), self.coefficients
        drawn = process.sample(len(couples.first), longest, generator=generator)
        return Pairs.of(
            drawn,
            first=couples.first,
            second=couples.second,
            lengths=own,
            policy=self.lengths,
            steps=steps,
            site=self.site,
            layer=layer,
            device="cpu" if device is None else device,
            dtype=torch.float32 if dtype is None else dtype,
            process=process,
        )

    def __call__(
        self,
        layer: nn.Module,
        inputs: Inputs,
        hx: Any = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        generator: torch.Generator | None = None,
        pairs: Pairs | None = None,
    ) -> tuple[Float[Tensor, "steps pairs hidden"], Pairs]:
        """Run a layer over a batch and mix.

        Args:
            layer: a recurrent layer or any module ``(x) -> (output, state)``, time first; sequences of several lengths
                it is given as a PackedSequence, as torch.nn's layers are.
            inputs: the sequences, (steps, batch, width); padding may hold anything.
            hx: initial states of the sequences; None leaves them to the layer.
            lengths: of the sequences, on the CPU; None if all have all steps.
            generator: a generator of the CPU for pairs and coefficients; None means torch's global one.
            pairs: what :meth:`draw` gave, to repeat a pass exactly; None draws them.

        Returns:
            The output of every pair, and the pairs, which know its loss.
        """
        mixed = self.run(layer, inputs, hx, lengths=lengths, generator=generator, pairs=pairs)
        return mixed.output, mixed.pairs

    def run(
        self,
        layer: nn.Module,
        inputs: Inputs,
        hx: Any = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        generator: torch.Generator | None = None,
        pairs: Pairs | None = None,
    ) -> Mixed:
        """The same with the final state: that of the pairs, before the output that of the sequences."""
        own, pairs = self._prepared(layer, inputs, lengths, generator, pairs)
        if not layer.training:
            return Mixed(*apply(layer, inputs, own, hx), pairs)
        return Mixed(*self._run(layer, inputs, hx, pairs), pairs)

    def pooled(
        self,
        layer: nn.Module,
        inputs: Inputs,
        hx: Any = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        pool: str = "last",
        generator: torch.Generator | None = None,
        pairs: Pairs | None = None,
    ) -> tuple[Float[Tensor, "pairs hidden"], Pairs]:
        """Run a layer over a batch and mix, for one label a sequence: a vector of every pair.

        ``loss = pairs.classification(head(features), labels)`` (Karamzade et al. 2020, Remark 1).

        Args:
            layer: as for a call.
            inputs: as for a call.
            hx: as for a call.
            lengths: as for a call.
            pool: "last" reads the last output, "mean" and "max" are taken over the steps.
            generator: as for a call.
            pairs: as for a call.
        """
        choice(f"{self._name} pool", pool, POOLS)
        output, pairs = self(layer, inputs, hx, lengths=lengths, generator=generator, pairs=pairs)
        return pool_steps(output, pairs.lengths, pool, bidirectional=_both_ways(layer)), pairs

    def _check_previous(self, previous: Pairs, own: Tensor) -> None:
        """Refuse a segment that the pairs of another cannot go on with."""
        if previous.site == self.site and len(own) == len(previous.own_lengths) and bool((own == own[0]).all()):
            return
        got = f"{len(own)} sequences of {own.unique().tolist()} steps, after {previous!r}"
        wanted = f"{len(previous.own_lengths)} sequences of one length, after pairs for {self.site!r}"
        raise ArgumentError(where=f"{self._name}.draw previous", got=got, wanted=wanted)

    @abstractmethod
    def _run(self, layer: nn.Module, inputs: Tensor, hx: Any, pairs: Pairs) -> tuple[Tensor, Any]:
        """The padded output of the pairs and the final state."""

    def _layer(self, layers: int, generator: torch.Generator | None) -> int | None:
        """Which layer of a stack mixes."""
        return None

    def _prepared(
        self,
        layer: nn.Module,
        inputs: Tensor,
        lengths: Tensor | Sequence[int] | None,
        generator: torch.Generator | None,
        pairs: Pairs | None,
    ) -> tuple[Tensor, Pairs]:
        """The lengths of the sequences and the pairs: drawn, given, or every sequence alone."""
        check_call(layer, inputs, where=self._name)
        self._check_layer(layer)
        steps, batch = inputs.shape[:2]
        if lengths is None and pairs is not None:
            lengths = pairs.own_lengths
        own = read_lengths(lengths, steps=steps, batch=batch)
        # Products with coefficients are computed in single precision at least.
        kind: dict[str, Any] = {"device": inputs.device, "dtype": torch.promote_types(inputs.dtype, torch.float32)}
        if not layer.training:
            return own, Pairs.alone(own, steps=steps, site=self.site, **kind)
        if pairs is None:
            layers = getattr(layer, "num_layers", 1)
            return own, self.draw(own, steps=steps, generator=generator, layers=layers, **kind)
        if pairs.site != self.site or not torch.equal(pairs.own_lengths, own):
            raise ArgumentError(
                where=f"{self._name} pairs",
                got=f"{pairs!r} of other lengths" if pairs.site == self.site else f"pairs for {pairs.site!r}",
                wanted=f"what its own draw(lengths) gives for this batch, at {self.site!r}",
            )
        return own, pairs

    def _check_layer(self, layer: nn.Module) -> None:
        """Refuse a layer that cannot be mixed at this place."""

    @property
    def _name(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, kw_only=True)
class InputMixup(Mixup):
    """Mixes the inputs of two sequences and runs the network once on the mixture.

    ``x~_t = lambda_t x_t + (1 - lambda_t) x'_t`` (Karamzade et al. 2020, sequence input mixup). Vectors are mixed,
    never indices of words; where the network drops inputs, mix first.

    >>> layer = torch.nn.GRU(3, 5)
    >>> output, pairs = InputMixup(alpha=0.5)(layer, torch.randn(7, 4, 3), lengths=[7, 5, 6, 2])
    >>> output.shape
    torch.Size([7, 4, 5])
    """

    site: ClassVar[str] = "input"

    def _run(self, layer: nn.Module, inputs: Tensor, hx: Any, pairs: Pairs) -> tuple[Tensor, Any]:
        return apply(layer, pairs.mix(inputs), pairs.lengths, shared_start(hx, pairs))


@dataclass(frozen=True, kw_only=True)
class PreOutputMixup(Mixup):
    """Runs the network on every sequence and mixes what it gives, before the output layer.

    ``h~_t = lambda_t h_t + (1 - lambda_t) h'_t``, not fed back (Karamzade et al. 2020, POM). Since partners come from
    the same batch, it costs one run.

    >>> layer = torch.nn.GRU(3, 5)
    >>> output, pairs = PreOutputMixup(pairing="double")(layer, torch.randn(7, 4, 3))
    >>> output.shape
    torch.Size([7, 2, 5])
    """

    site: ClassVar[str] = "pre_output"

    def _run(self, layer: nn.Module, inputs: Tensor, hx: Any, pairs: Pairs) -> tuple[Tensor, Any]:
        output, state = apply(layer, inputs, pairs.own_lengths, hx)
        return pairs.mix(output), state

    def pooled(
        self,
        layer: nn.Module,
        inputs: Inputs,
        hx: Any = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        pool: str = "last",
        order: str = "pool_then_mix",
        generator: torch.Generator | None = None,
        pairs: Pairs | None = None,
    ) -> tuple[Float[Tensor, "pairs hidden"], Pairs]:
        """As :meth:`Mixup.pooled`; by default each member is pooled, then both are mixed by the mean coefficient.

        The paper does not say which coefficient mixes a last output: that of the last step would not be the label's. So
        ``order="mix_then_pool"`` is there for ``pool="mean"`` only, and raises elsewhere.

        Args:
            layer: as for a call.
            inputs: as for a call.
            hx: as for a call.
            lengths: as for a call.
            pool: "last", "mean" or "max".
            order: "pool_then_mix", or "mix_then_pool" to mix each step by its coefficient and take the mean.
            generator: as for a call.
            pairs: as for a call.
        """
        choice(f"{self._name} pool", pool, POOLS)
        choice(f"{self._name} order", order, ("pool_then_mix", "mix_then_pool"))
        if order == "mix_then_pool":
            if pool != "mean":
                raise ArgumentError(
                    where=f"{self._name}.pooled",
                    got=f"pool={pool!r} of outputs that are mixed",
                    wanted="pool='mean', the one pooling that mixing step by step is defined for",
                    remedy="Say order='pool_then_mix'.",
                )
            return super().pooled(layer, inputs, hx, lengths=lengths, pool=pool, generator=generator, pairs=pairs)
        own, pairs = self._prepared(layer, inputs, lengths, generator, pairs)
        output, _ = apply(layer, inputs, own, hx)
        both_ways = _both_ways(layer)
        if bool((pairs.lengths >= torch.maximum(own[pairs.first], own[pairs.second])).all()):
            return pairs.mix_pooled(pool_steps(output, own, pool, bidirectional=both_ways)), pairs
        first, second = (
            pool_steps(select_state(output, side), kept, pool, bidirectional=both_ways)
            for side, kept in zip((pairs.first, pairs.second), pairs.member_lengths, strict=True)
        )
        return mix_state(first, second, pairs.mean_coefficient), pairs


@dataclass(frozen=True, kw_only=True)
class ThroughTimeMixup(Mixup):
    """Mixes the states that two sequences reach from one shared state, at every step.

    ``s~_t = lambda_t f(x_t, s~_{t-1}) + (1 - lambda_t) f(x'_t, s~_{t-1})`` with ``s = h``, or ``(h, c)`` for an LSTM
    (Karamzade et al. 2020, TTM). The recurrent product is shared, so it costs little more than a plain run. It needs a
    layer of statewise; :func:`statewise.upgrade` makes one of torch's.

    Args:
        layer: which layer of a stack mixes: those below run on each sequence, those above on the mixture; "random"
            draws one for every batch.

    >>> from statewise import LSTM
    >>> output, pairs = ThroughTimeMixup(alpha=0.2, layer=1)(LSTM(3, 5, num_layers=2), torch.randn(7, 4, 3))
    >>> output.shape, pairs.layer
    (torch.Size([7, 4, 5]), 1)
    """

    layer: int | str = 0

    site: ClassVar[str] = "through_time"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer != "random" and (
            isinstance(self.layer, bool) or not isinstance(self.layer, int) or self.layer < 0
        ):
            wanted = "an index counted from 0 at the bottom, or 'random'"
            raise ArgumentError(where="ThroughTimeMixup.layer", got=self.layer, wanted=wanted)

    def _layer(self, layers: int, generator: torch.Generator | None) -> int | None:
        if isinstance(self.layer, str):
            return int(torch.randint(layers, (), generator=generator))
        return self.layer

    def _check_layer(self, layer: nn.Module) -> None:
        if not isinstance(layer, RecurrentLayer):
            raise DtypeError(
                where="ThroughTimeMixup layer",
                got=f"{type(layer).__module__}.{type(layer).__name__}",
                wanted="a recurrent layer of statewise, whose states can be mixed between two steps",
                remedy="Exchange it: statewise.upgrade(model) gives a copy that keeps the weights.",
            )
        if isinstance(self.layer, int) and self.layer >= layer.num_layers:
            wanted = f"a layer from 0 to {layer.num_layers - 1}"
            raise ArgumentError(where="ThroughTimeMixup.layer", got=self.layer, wanted=wanted)

    def _run(self, layer: nn.Module, inputs: Tensor, hx: Any, pairs: Pairs) -> tuple[Tensor, Any]:
        if hx is None or not pairs.continues:
            return apply(layer, inputs, pairs.own_lengths, hx, pairing=pairs.pairing)
        # The layer mixes the states that it is given; so both members are given that of their pair.
        members, rows = torch.cat((pairs.first, pairs.second)), torch.arange(2 * len(pairs))
        apart = Pairing(
            partner=rows[len(pairs) :],
            coefficients=pairs.exact,
            first=rows[: len(pairs)],
            lengths=pairs.lengths,
            layer=pairs.layer,
        )
        state = _of_members(hx, pairs, below=(pairs.layer or 0) * (2 if _both_ways(layer) else 1))
        return apply(layer, select_state(inputs, members), pairs.own_lengths[members], state, pairing=apart)


def _of_members(hx: Any, pairs: Pairs, *, below: int) -> Any:
    """From the state that a layer gave for pairs: every member's own below the mixing layer, that of its pair above."""
    if isinstance(hx, tuple):
        return tuple(_of_members(part, pairs, below=below) for part in hx)
    if below and not torch.equal(pairs.first, torch.arange(len(pairs.own_lengths))):
        raise ArgumentError(
            where="ThroughTimeMixup",
            got=f"a second segment of {len(pairs)} pairs of {len(pairs.own_lengths)} sequences, mixed in layer "
            f"{pairs.layer}",
            wanted="pairs whose first members are all sequences: the layers below keep the states of these",
            remedy="Use pairing='permute', or layer=0.",
        )
    number = torch.arange(len(pairs))
    both = select_state(hx, torch.cat((number, number)))
    return (
        torch.cat((select_state(hx[:below], torch.cat((pairs.first, pairs.second))), both[below:])) if below else both
    )


def shared_start(hx: Any, pairs: Pairs) -> Any:
    """The initial state of pairs that share one: ``lambda_1 s_0 + (1 - lambda_1) s'_0``.

    Segments that go on with an earlier one have the pairs' state already.

    >>> pairs = Pairs.of(torch.full((2, 2), 0.25), second=torch.tensor([1, 0]))
    >>> shared_start(torch.tensor([[[1.0], [5.0]]]), pairs).flatten().tolist()
    [4.0, 2.0]
    """
    if hx is None or pairs.continues:
        return hx
    return mix_state(select_state(hx, pairs.first), select_state(hx, pairs.second), pairs.coefficients[0])


def _both_ways(layer: nn.Module) -> bool:
    return bool(getattr(layer, "bidirectional", False))
