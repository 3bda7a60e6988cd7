"""A recurrent network that reads numbers and foretells the next ones, with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError, LengthError, NonFiniteError, ShapeError
from statewise.heads import Normal
from statewise.models.parts import Parts, make_head
from statewise.models.paths import Paths
from statewise.models.sequences import check_shape, lay_out
from statewise.models.views import resting_view

if TYPE_CHECKING:
    from statewise.models.forecaster_config import ForecastConfig

AROUND = ("last", "mean")
State = Tensor | tuple[Tensor, Tensor]


class Forecaster(Parts):
    """A recurrent network that gives a normal law of ``x_{t+1}`` after ``x_1, ..., x_t``, for each feature.

    ``h_t = cell(z_t, h_{t-1})``, ``mean_t = z_t + V h_t + b`` and ``deviation_t = softplus(U h_t + c)``, where ``z`` is
    ``x`` standardised by the training set; without ``z_t`` in the mean if it is ``around="mean"``.

    Made by :meth:`ForecastConfig.build <statewise.models.ForecastConfig.build>`. It reads values as they are; scale and
    weights are kept together.

    Args:
        config: everything but what follows.
        features: how many numbers a step has.
        mean: of each feature of the training set; None for 0.
        deviation: of each, above 0; None for 1.
        generator: source of all weights; None means torch's global one.

    >>> from statewise.models import ForecastConfig
    >>> model = ForecastConfig(hidden=8).build(features=1, mean=[20.0], deviation=[2.0])
    >>> model.predict(torch.full((1, 5, 1), 21.0)).deviation.shape
    torch.Size([1, 5, 1])
    """

    config: ForecastConfig

    def __init__(
        self,
        config: ForecastConfig,
        *,
        features: int,
        mean: Sequence[float] | None = None,
        deviation: Sequence[float] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if type(features) is not int or features < 1:
            raise ArgumentError(where="Forecaster.features", got=features, wanted="a whole number of at least 1")
        config.refuse_inputs(tokens=False)
        self.config, self.tokens, self.features, self.symbols = config, None, features, None
        self.embedding = None
        self.layer = config.build_layer(features, generator=generator)
        self.head = make_head(config.hidden, 2 * features, generator)
        self.standardise(
            [0.0] * features if mean is None else mean, [1.0] * features if deviation is None else deviation
        )

    def forward(
        self,
        inputs: Float[Tensor, "batch steps features"],
        lengths: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Normal:
        """The law of the next step after every step, in standardised units; both parts are (batch, steps, features).

        Args:
            inputs: values as they are; what stands beyond a sequence's end is never looked at, and its laws mean
                nothing.
            lengths: of each sequence; None where all are full. Keep them on the CPU.
            generator: source of everything drawn; None means torch's global one.
        """
        check_shape(inputs, where="Forecaster", tokens=None, features=self.features)
        laid = lay_out(inputs, lengths, where="Forecaster", tokens=None, features=self.features, start=None)
        output, _ = self.layer(self._entering(laid, generator), generator=generator)
        if isinstance(output, PackedSequence):
            output = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=inputs.shape[1])[0]
        elif len(output) < inputs.shape[1]:  # all of one length, shorter than what was given
            output = torch.nn.functional.pad(output, (0, 0, 0, 0, 0, inputs.shape[1] - len(output)))
        return self._laws(output.transpose(0, 1), self.standardised(inputs), generator)

    def predict(self, inputs: Float[Tensor, "batch steps features"], lengths: Tensor | None = None) -> Normal:
        """The law of the next step after every step in the units of the values, in eval mode and without gradients.

        Args:
            inputs: as in :meth:`forward`.
            lengths: as in :meth:`forward`.
        """
        with torch.no_grad():
            found: Normal = resting_view(self)(inputs, lengths)
        return found.in_units(self.scale_mean, self.scale_deviation)

    def forecast(
        self,
        values: Float[Tensor, "steps features"],
        *,
        steps: int,
        samples: int = 200,
        generator: torch.Generator | None = None,
    ) -> Paths:
        """How a sequence may go on, in eval mode: each next step is drawn from its law, and then read.

        Args:
            values: the sequence so far, at least one step, as it is.
            steps: how many to foretell.
            samples: how many ways to go on.
            generator: source of the draws, on the CPU; None means torch's global one.

        >>> from statewise.models import ForecastConfig
        >>> paths = ForecastConfig(hidden=8).build(features=2).forecast(torch.zeros(4, 2), steps=3, samples=5)
        >>> paths.values.shape, paths.quantile(0.9).shape
        (torch.Size([5, 3, 2]), torch.Size([3, 2]))
        """
        self._check_asked(values, steps, samples)
        resting = resting_view(self)
        with torch.no_grad():
            entering = self.standardised(values.unsqueeze(1))
            output, state = resting.layer(entering, generator=self._of_device(generator))
            laws = resting._laws(output[-1:], entering[-1:], None)
            first = Normal(*(part[0, 0] for part in laws))
            laws, state = Normal(*(part.expand(1, samples, -1) for part in laws)), _repeated(state, samples)
            drawn = []
            for step in range(steps):
                entering = laws.draw(generator)
                drawn.append(entering[0])
                if step + 1 < steps:
                    output, state = resting.layer(entering, state, generator=self._of_device(generator))
                    laws = resting._laws(output, entering, None)
        values_drawn = torch.stack(drawn, dim=1) * self.scale_deviation + self.scale_mean
        return Paths(values_drawn, first.in_units(self.scale_mean, self.scale_deviation))

    def retune(self, **settings: Any) -> None:
        """Change settings of the centroids of all layers, such as ``temperature=0.5``; ``config`` changes with them.

        Args:
            **settings: some of "temperature", "similarity", "transition", "noise".
        """
        self._retune_layer(settings)
        self.config = replace(self.config, **settings)

    def _laws(self, features: Tensor, read: Tensor, generator: torch.Generator | None) -> Normal:
        laws = Normal.of(self._logits(features, generator))
        return laws._replace(mean=laws.mean + read) if self.config.around == "last" else laws

    def _of_device(self, generator: torch.Generator | None) -> torch.Generator | None:
        """What the layer may draw from in eval mode; one of another device it cannot use."""
        return generator if generator is not None and generator.device == self.head.weight.device else None

    def _check_asked(self, values: Tensor, steps: int, samples: int) -> None:
        for name, value in (("steps", steps), ("samples", samples)):
            if type(value) is not int or value < 1:
                raise ArgumentError(where=f"forecast.{name}", got=value, wanted="a whole number of at least 1")
        if values.ndim != 2 or values.shape[1] != self.features:
            wanted = f"(steps, {self.features})"
            raise ShapeError(where="forecast.values", got=tuple(values.shape), wanted=wanted)
        if not len(values):
            raise LengthError(where="forecast.values", got="no steps", wanted="at least one")
        if not bool(values.isfinite().all()):
            raise NonFiniteError(where="forecast.values", got="NaN or infinity", wanted="finite numbers")


def _repeated(state: State, samples: int) -> State:
    """The state of one sequence for each of several ways to go on."""
    if isinstance(state, tuple):
        return state[0].repeat(1, samples, 1), state[1].repeat(1, samples, 1)
    return state.repeat(1, samples, 1)
