from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

from statewise import LSTM, OrthogonalRNN
from statewise.errors import ArgumentError, ShapeError
from statewise.memory.circuit import Circuit, drawn_circuit
from statewise.memory.profile import empirical_profile, generic_profile, network_profile, spectral_profile
from statewise.memory.separation import network_rank
from statewise.memory.spectrum import RoundedRankWarning

DOUBLE = torch.float64


def samples(steps: int, rows: int, features: int, seed: int = 0) -> Tensor:
    return torch.randn(steps, rows, features, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_profile_of_this_network_is_its_rank_at_every_split(depth: int) -> None:
    drawn = drawn_circuit(inputs=2, width=3, depth=depth)
    tied = Circuit(inputs=drawn.inputs, recurrent=(np.eye(3),) * depth, readout=drawn.readout)
    for circuit in (drawn, tied):
        found = network_profile(circuit, steps=7)
        assert found.ranks == tuple(network_rank(circuit, steps=7, split=split).rank for split in range(1, 7))
        assert all(rank <= upper for rank, upper in zip(found.ranks, found.upper, strict=True))
    assert found.whose == "this network"


def test_a_shallow_profile_takes_any_number_of_steps() -> None:
    found = generic_profile(inputs=2, width=16, steps=1000, depth=1)
    assert found.ranks == (2, 4, 8, *[16] * 993, 8, 4, 2)
    assert found.ranks == found.upper


def test_the_ranks_of_a_spectral_profile_are_the_exact_ones() -> None:
    circuit = drawn_circuit(inputs=2, width=4, depth=1)
    spectral, exact = spectral_profile(circuit, steps=12), network_profile(circuit, steps=12)
    assert spectral.ranks == exact.ranks
    assert spectral.splits == exact.splits == tuple(range(1, 12))
    assert "distance to separable" in spectral.describe()
    assert len(spectral.describe().splitlines()) == 12


def test_the_split_at_which_a_network_forgets_is_found() -> None:
    """The second half starts anew: ``(x1 . x2) + (x3 . x4)`` has rank 2 in the middle, and more beside it."""

    def network(x: Tensor) -> Tensor:
        return (x[0] * x[1]).sum(1) + (x[2] * x[3]).sum(1)

    found = empirical_profile(network, samples(4, 12, 3), samples(4, 10, 3, seed=1))
    assert found.ranks == (4, 2, 4)
    assert found.narrowest == 2


def test_samples_of_a_circuit_show_its_rank_and_no_more() -> None:
    circuit = drawn_circuit(inputs=3, width=4, depth=1)
    readout = torch.from_numpy(circuit.readout)
    found = empirical_profile(circuit.layer(), samples(6, 9, 3), samples(6, 8, 3, seed=1), readout=readout, chunk=7)
    assert found.ranks == (3, 4, 4, 4, 3)


def test_a_deep_circuit_whose_scores_vanish_has_a_profile_and_a_warning() -> None:
    """Over 14 steps the plain scores of three layers are zeros; scaled ones are not, but floats tell no ranks."""
    layer = drawn_circuit(inputs=2, width=2, depth=3).layer()
    with torch.no_grad():
        layer.weight_ih_l0.mul_(0.1)
    x, readout = samples(14, 6, 2), torch.ones(2, dtype=DOUBLE)
    assert not layer(x)[0][-1].any()
    with pytest.warns(RoundedRankWarning, match="network_rank"):
        found = empirical_profile(layer, x, samples(14, 6, 2, seed=1), splits=[7], readout=readout)
    assert found.spectra[0].log_scale < -700
    assert found.ranks[0] >= 1


@pytest.mark.parametrize("kind", [LSTM, OrthogonalRNN])
def test_any_layer_has_an_empirical_profile(kind: type[LSTM] | type[OrthogonalRNN]) -> None:
    options = {"initial_state": "zeros"} if kind is OrthogonalRNN else {}
    layer = kind(2, 3, dtype=DOUBLE, **options)  # type: ignore[arg-type]
    readout = torch.ones(3, dtype=DOUBLE)
    found = empirical_profile(layer, samples(6, 5, 2), samples(6, 5, 2, seed=1), splits=[2, 4], readout=readout)
    assert found.splits == (2, 4)
    assert all(1 <= each.effective_rank <= 5 for each in found.spectra)
    if kind is OrthogonalRNN:  # untrained it is linear: a function of the Start and one of the End are added
        assert found.ranks == (2, 2)


def test_what_has_no_profile_is_refused() -> None:
    with pytest.raises(ArgumentError, match="sampled_rank"):
        generic_profile(inputs=2, width=2, steps=26, depth=2)
    with pytest.raises(ArgumentError, match="at least 2"):
        generic_profile(inputs=2, width=2, steps=1, depth=2)
    with pytest.raises(ArgumentError, match="at least 1"):
        generic_profile(inputs=2, width=2, steps=4, depth=2, runs=0)
    wrongs: list[dict[str, Any]] = [{"inputs": 0}, {"width": 0}, {"depth": 0}, {"primes": ()}, {"primes": (2**31 - 3,)}]
    for wrong in wrongs:
        with pytest.raises(ArgumentError, match=r"at least 1|prime"):
            generic_profile(**{"inputs": 2, "width": 2, "steps": 4, "depth": 2, **wrong})
    with pytest.raises(ArgumentError, match="at least one prime"):
        network_profile(drawn_circuit(inputs=2, width=2, depth=2), steps=4, primes=())
    with pytest.raises((ShapeError, TypeCheckError), match="steps"):  # whichever check comes first
        empirical_profile(lambda x: x[0, :, 0], samples(4, 2, 2), samples(3, 2, 2))
    with pytest.raises(ArgumentError, match="1 to 3"):
        empirical_profile(lambda x: x[0, :, 0], samples(4, 2, 2), samples(4, 2, 2), splits=[4])
