"""The excess by sampling: for any number of units, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.heads import Readout
from statewise.objectives.exact import divergences, in_double
from statewise.objectives.noises import checked, reach
from statewise.objectives.penalty import second_order
from statewise.transforms import Noise
from statewise.transforms.laws import law

HELD = 2**22  # scores that are held at a time


@dataclass(frozen=True, eq=False)
class Estimate:
    """The sampled excess of each row, beside the second-order penalty.

    Attributes:
        values: the mean over the samples, for each row.
        standard_error: of each value.
        second_order: the penalty of each row.
        samples: how many noises each row was given.
    """

    values: Float[Tensor, "*rows"]
    standard_error: Float[Tensor, "*rows"]
    second_order: Float[Tensor, "*rows"]
    samples: int

    @property
    def total(self) -> float:
        """The sum over the rows."""
        return float(self.values.sum())

    @property
    def total_error(self) -> float:
        """The standard error of the sum; rows have noises of their own."""
        return float(self.standard_error.square().sum().sqrt())

    @property
    def ratio(self) -> float:
        """The sampled excess over the second-order penalty."""
        return self.total / float(self.second_order.sum())

    @property
    def sentence(self) -> str:
        """What was found, to be quoted."""
        return (
            f"the noise adds {self.total:.6g} +- {self.total_error:.2g} to the expected loss of {self.values.numel()} "
            f"row(s), {self.ratio:.4g} times the second-order penalty ({self.samples} samples a row)"
        )


def estimated_excess(
    readout: Readout,
    states: Float[Tensor, "*rows hidden"],
    noise: Noise,
    *,
    samples: int = 1000,
    generator: torch.Generator | None = None,
) -> Estimate:
    """The excess of the expected loss under noise on the last states, by Monte Carlo.

    The mean of ``A(V^T z) - A(V^T h) - grad A . (V^T z - V^T h)``: the last term has mean zero and takes most of the
    variance with it. No target enters (Dieng et al. 2018, section 4).

    Args:
        readout: the output matrix, its bias and the likelihood.
        states: the clean states ``h``, shape (..., hidden).
        noise: the noise on them.
        samples: how many noises for each row, at least 2.
        generator: source of the noise; None means torch's global one.

    >>> from statewise.heads import Categorical
    >>> readout = Readout(Categorical(), torch.tensor([[1.0, -1.0]]))
    >>> found = estimated_excess(readout, torch.tensor([[0.5]]), Noise("gaussian", 0.1), samples=10)
    >>> bool(found.standard_error < 0.01)
    True
    """
    noise = checked(noise, where="estimated_excess")
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise ArgumentError(where="estimated_excess.samples", got=samples, wanted="a whole number of at least 2")
    of, source = law(noise.law), generator or fresh_generator(states.device)
    with torch.no_grad():
        readout, rows = in_double(readout, states)
        scores, moving = readout.scores(rows), reach(rows, noise.mode)
        total, squares, done = torch.zeros_like(rows[:, 0]), torch.zeros_like(rows[:, 0]), 0
        while done < samples:
            now = min(samples - done, max(1, HELD // (len(rows) * readout.outputs)))
            eps = torch.empty(now, *rows.shape, dtype=rows.dtype, device=rows.device)
            of.fill(eps, noise.gamma, noise.alpha, source)
            found = divergences(readout, scores.expand(now, -1, -1), (eps * moving) @ readout.weight)
            total, squares, done = total + found.sum(0), squares + found.square().sum(0), done + now
        mean = total / samples
        error = ((squares / samples - mean.square()).clamp(min=0) / (samples - 1)).sqrt()
        shape = states.shape[:-1]
        penalty = second_order(readout, rows, noise, reduction="none").reshape(shape)
    return Estimate(mean.reshape(shape), error.reshape(shape), penalty, samples)


def fresh_generator(device: torch.device) -> torch.Generator:
    """A generator whose seed is taken from torch's global one.

    >>> fresh_generator(torch.device("cpu")).device
    device(type='cpu')
    """
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, ())))
