"""A word-level language model: embedding, recurrent layers, softmax."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, LengthError, ShapeError
from statewise.heads import AdaptiveSoftmax, Categorical, Head, MixtureOfSoftmaxes, Readout, Softmax
from statewise.heads.outside import apply_outside, check_outside
from statewise.layers import RecurrentLayer
from statewise.models.penalties import activation_penalty, temporal_penalty
from statewise.models.saved import Saved
from statewise.objectives import deterministic_loss
from statewise.transforms import Noise, Place, SequenceTransform, embedding_dropout
from statewise.transforms.base import probability

if TYPE_CHECKING:
    from statewise.models.config import LanguageModelConfig

Tokens = Int[Tensor, "steps batch"]
State = tuple[Any, ...]
HEADS = ("softmax", "mixture", "adaptive")


class Losses(NamedTuple):
    """What a language model says of a segment.

    Attributes:
        total: what training minimises: the mean negative log-likelihood of a token, in nats, and the penalties.
        nll: that mean alone; ``exp(nll)`` is the segment's perplexity.
        state: of all layers after the segment, to be carried on.
    """

    total: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    state: State


class LanguageModel(Saved):
    """A recurrent language model over words.

    ``h_t = layers(E[x_{t-1}], h_{t-1})``, ``p(x_t | past) = head(outputs(h_t))``. Dieng et al. 2018, section 2; with
    weight drop, locked dropout, AR, TAR and a mixture head it is AWD-LSTM(-MoS) (Merity et al. 2018; Yang et al. 2018).

    Shapes: tokens (steps, batch); log-probabilities (steps, batch, words); a state is one entry a layer.

    Args:
        words: size of the vocabulary.
        layers: one recurrent layer of any kind, with any transforms, or several, each as wide as the next one's input.
        head: "softmax", "mixture", "adaptive", or a :class:`~statewise.heads.Head`.
        tied: whether the softmax uses the embedding's matrix; "adaptive" cannot.
        outputs: transforms of the top layer's output, before the head. Noise and dropout here, rather than in the
            layer, let the temporal penalty see the undisturbed state.
        experts: of a mixture head.
        latent_dropout: of a mixture head.
        embedding_dropout: probability of dropping a whole word type from the embedding.
        activation: the factor of the activation penalty (AR), on what the head reads.
        temporal: the factor of the temporal activation penalty (TAR), on the top layer's output.
        stand_in: noise that is not drawn: its second-order penalty on what the head reads is added to the loss instead
            (deterministic Noisin, :func:`~statewise.objectives.deterministic_loss`); only for a softmax.
        generator: source of the embedding's and the head's first weights; None means torch's global one. The layers are
            taken as they come: :meth:`initialise` fills everything.

    >>> import statewise
    >>> model = LanguageModel(50, statewise.LSTM(16, 16, 2, transforms=statewise.Noise("gaussian", 0.5)))
    >>> words = torch.randint(50, (7, 3))
    >>> log_probabilities, state = model(words)
    >>> log_probabilities.shape
    torch.Size([7, 3, 50])
    >>> losses = model.loss(words[:-1], words[1:], state)
    >>> losses.nll.shape, len(losses.state)
    (torch.Size([]), 1)
    """

    #: What it was made from; None for one that was built by hand from layers, which cannot be saved.
    config: LanguageModelConfig | None = None

    def __init__(
        self,
        words: int,
        layers: nn.Module | Iterable[nn.Module],
        *,
        head: str | Head = "softmax",
        tied: bool = True,
        outputs: SequenceTransform | Sequence[SequenceTransform] = (),
        experts: int = 15,
        latent_dropout: float = 0.0,
        embedding_dropout: float = 0.0,
        activation: float = 0.0,
        temporal: float = 0.0,
        stand_in: Noise | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if isinstance(words, bool) or not isinstance(words, int) or words < 2:
            raise ArgumentError(where="LanguageModel.words", got=words, wanted="a whole number of at least 2")
        self.layers = nn.ModuleList([layers] if isinstance(layers, nn.Module) else layers)
        _check_layers(self.layers)
        self.words = words
        self.embedding = nn.Embedding(words, self._bottom.input_size)
        self.outputs = check_outside(
            (outputs,) if isinstance(outputs, SequenceTransform) else tuple(outputs), where="LanguageModel.outputs"
        )
        self.embedding_dropout = probability("LanguageModel.embedding_dropout", embedding_dropout)
        self.activation = _factor("activation", activation)
        self.temporal = _factor("temporal", temporal)
        self._warn_of_noise_in_the_penalty()
        self.head = self._make_head(head, tied, experts, latent_dropout)
        self.stand_in = stand_in
        if stand_in is not None:
            self._readout()  # refuses heads that have no such penalty
        self._fill_own(generator)

    @property
    def outside(self) -> tuple[Any, ...]:
        """What acts in training outside the layers: on the top layer's output, on words, and what stands in for noise.

        Transforms, and the function :func:`~statewise.transforms.embedding_dropout`.
        """
        found = (*self.outputs, *(() if self.stand_in is None else (self.stand_in,)))
        return (*found, embedding_dropout) if self.embedding_dropout > 0.0 else found

    @property
    def _bottom(self) -> RecurrentLayer:
        layer = self.layers[0]
        assert isinstance(layer, RecurrentLayer)
        return layer

    @property
    def _top(self) -> RecurrentLayer:
        layer = self.layers[-1]
        assert isinstance(layer, RecurrentLayer)
        return layer

    def initialise(self, generator: torch.Generator | None = None, *, zero_biases: bool = True) -> None:
        """Fill all weights anew: embeddings U(-0.1, 0.1), others U(-1/sqrt(width), 1/sqrt(width)) (section 5).

        Args:
            generator: source of the weights; None means torch's global one.
            zero_biases: whether all biases start at 0, as in the paper, rather than as in torch.
        """
        for layer in self.layers:
            assert isinstance(layer, RecurrentLayer)
            layer.reset_parameters(generator)
        self._fill_own(generator)
        if not zero_biases:
            return
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.rpartition(".")[2].startswith("bias"):
                    parameter.zero_()
        for layer in self.layers:
            assert isinstance(layer, RecurrentLayer)
            layer.zero_biases()  # as above, but for what a cell needs otherwise

    def _fill_own(self, generator: torch.Generator | None) -> None:
        with torch.no_grad():
            self.embedding.weight.uniform_(-0.1, 0.1, generator=generator)
        self.head.initialise(generator)

    def forward(
        self, tokens: Tokens, state: State | None = None, *, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "steps batch words"], State]:
        """The log-probabilities of the next word after each step, and the state."""
        features, _, state = self.features(tokens, state, generator=generator)
        return self.head.log_prob(features), state

    def loss(
        self, tokens: Tokens, targets: Tokens, state: State | None = None, *, generator: torch.Generator | None = None
    ) -> Losses:
        """What training minimises on a segment, in mean over its tokens.

        Args:
            tokens: the words that are read.
            targets: the words that follow each of them; a negative one is not scored, which a stand-in for noise does
                not know.
            state: what an earlier segment left; None for the layers' own beginning.
            generator: source of everything drawn.
        """
        features, raw, state = self.features(tokens, state, generator=generator)
        if self.stand_in is not None and self.training:
            found = deterministic_loss(self._readout(), features, targets, self.stand_in)
            total, nll = found.loss, found.risk
        else:
            scored = targets >= 0
            each = self.head.nll(features, targets.clamp(min=0), generator=generator)
            total = nll = torch.where(scored, each, 0.0).sum() / scored.sum()
        return self.penalised(Losses(total, nll, state), features, raw)

    def penalised(
        self,
        losses: Losses,
        features: Float[Tensor, "steps batch width"],
        raw: Float[Tensor, "steps texts width"],
    ) -> Losses:
        """Losses with the activation penalties, which there are in training only.

        Args:
            losses: without.
            features: what the head reads.
            raw: the top layer's output.
        """
        total = losses.total
        if self.activation > 0.0 and self.training:
            total = total + self.activation * activation_penalty(features)
        if self.temporal > 0.0 and self.training:
            total = total + self.temporal * temporal_penalty(raw)
        return losses._replace(total=total)

    def features(
        self, tokens: Tokens, state: State | None = None, *, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "steps batch width"], Float[Tensor, "steps batch width"], State]:
        """What the head reads, the top layer's output before ``outputs`` act on it, and the state."""
        self._check(tokens, state)
        hidden = embedding_dropout(
            self.embedding, tokens, p=self.embedding_dropout, training=self.training, generator=generator
        )
        states = [None] * len(self.layers) if state is None else state
        after = []
        for layer, before in zip(self.layers, states, strict=True):
            hidden, left = layer(hidden, before, generator=generator)
            after.append(left)
        return apply_outside(self.outputs, hidden, training=self.training, generator=generator), hidden, tuple(after)

    def _warn_of_noise_in_the_penalty(self) -> None:
        top = self._top.num_layers
        fed_back = [t for t in self._top.transforms if isinstance(t, Noise) and t.place is Place.STATE]
        noisy = any(noise.acts_on(top - 1, top) for noise in fed_back)
        if self.temporal > 0.0 and noisy:
            warnings.warn(
                "LanguageModel.temporal: the top layer feeds noise back, so the temporal penalty sees it and punishes "
                'it. Noise with placement="outputs" or "last", given in `outputs`, is kept from it.',
                stacklevel=3,
            )

    def _readout(self) -> Readout:
        return Readout.of(self.head, Categorical())

    def _make_head(self, head: str | Head, tied: bool, experts: int, latent_dropout: float) -> Head:
        width, matrix = self._top.hidden_size, self.embedding.weight if tied else None
        if isinstance(head, Head):
            if (head.width, head.words) != (width, self.words):
                raise ShapeError(
                    where="LanguageModel.head",
                    got=f"a head for states of {head.width} and {head.words} words",
                    wanted=f"one for {width} and {self.words}",
                )
            return head
        if head == "softmax":
            return Softmax(width, self.words, tied=matrix)
        if head == "mixture":
            return MixtureOfSoftmaxes(width, self.words, experts=experts, tied=matrix, dropout=latent_dropout)
        if head != "adaptive":
            raise ArgumentError(where="LanguageModel.head", got=head, wanted=f"one of {', '.join(HEADS)}, or a Head")
        if tied:
            raise ArgumentError(
                where="LanguageModel.head",
                got='"adaptive" with tied=True',
                wanted="an adaptive softmax with matrices of its own",
                remedy="Give tied=False.",
            )
        return AdaptiveSoftmax(width, self.words)

    def _check(self, tokens: Tensor, state: State | None) -> None:
        if tokens.dim() != 2:
            raise ShapeError(
                where="LanguageModel tokens", got=f"shape {tuple(tokens.shape)}", wanted="(steps, batch)",
                remedy="A single stream has the shape (steps, 1).",
            )  # fmt: skip
        if tokens.numel() == 0:
            raise LengthError(where="LanguageModel tokens", got=f"shape {tuple(tokens.shape)}", wanted="at least one")
        if state is not None and len(state) != len(self.layers):
            raise ShapeError(
                where="LanguageModel state", got=f"{len(state)} entries", wanted=f"{len(self.layers)}, one a layer"
            )


def _check_layers(layers: nn.ModuleList) -> None:
    if len(layers) == 0:
        raise LengthError(where="LanguageModel.layers", got="none", wanted="at least one recurrent layer")
    for index, layer in enumerate(layers):
        where = f"LanguageModel.layers[{index}]"
        if not isinstance(layer, RecurrentLayer):
            raise DtypeError(
                where=where,
                got=type(layer).__name__,
                wanted="a recurrent layer of statewise",
                remedy="statewise.upgrade(layer) makes one of torch's.",
            )
        if layer.bidirectional or layer.batch_first:
            got = "a bidirectional layer" if layer.bidirectional else "batch_first=True"
            raise ArgumentError(where=where, got=got, wanted="one direction, steps first: a language model looks back")
        below = layers[index - 1] if index else None
        if isinstance(below, RecurrentLayer) and below.hidden_size != layer.input_size:
            raise ShapeError(
                where=where,
                got=f"input_size {layer.input_size}",
                wanted=f"{below.hidden_size}, the hidden_size of the layer below",
            )


def _factor(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ArgumentError(where=f"LanguageModel.{name}", got=value, wanted="a finite number >= 0")
    return float(value)
