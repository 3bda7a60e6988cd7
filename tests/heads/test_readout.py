"""A readout: the output matrix, its bias and the likelihood."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from statewise.errors import DtypeError, ShapeError
from statewise.heads import AdaptiveSoftmax, Categorical, Gaussian, MixtureOfSoftmaxes, Poisson, Readout, Softmax
from support import tolerance


def test_it_reads_what_a_linear_layer_reads_and_its_gradients_reach_the_parameters() -> None:
    linear, states = nn.Linear(3, 5), torch.randn(4, 2, 3)
    readout = Readout.of(linear, Poisson())
    assert (readout.hidden_size, readout.outputs) == (3, 5)
    torch.testing.assert_close(readout.scores(states), linear(states), **tolerance(torch.float32))
    readout.scores(states).sum().backward()
    assert linear.weight.grad is not None
    assert linear.bias.grad is not None


def test_it_reads_what_a_softmax_reads() -> None:
    head, states, words = Softmax(3, 5), torch.randn(4, 2, 3), torch.randint(5, (4, 2))
    found = Readout.of(head, Categorical()).log_prob(states, words)
    torch.testing.assert_close(found, -head.nll(states, words), **tolerance(torch.float32))


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize(
    ("head", "likelihood"),
    [
        (MixtureOfSoftmaxes(3, 5, experts=2), Categorical()),
        (AdaptiveSoftmax(3, 50, cutoffs=(10,)), Categorical()),
        (Softmax(3, 5), Gaussian()),
        (nn.Bilinear(3, 3, 5), Categorical()),
    ],
    ids=["mixture", "adaptive", "softmax as a Gaussian", "bilinear"],
)
def test_what_is_no_exponential_family_in_the_state_is_refused(head: Any, likelihood: Any) -> None:
    with pytest.raises(DtypeError, match="no explicit penalty"):
        Readout.of(head, likelihood)


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize("likelihood", [None, "categorical", Categorical, nn.CrossEntropyLoss()])
def test_a_likelihood_must_be_one(likelihood: Any) -> None:
    with pytest.raises(DtypeError, match="a Likelihood"):
        Readout(likelihood, torch.ones(3, 4))


@pytest.mark.usefixtures("as_users_have_it")
def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"Readout\.weight"):
        Readout(Categorical(), torch.ones(3))
    with pytest.raises(ShapeError, match=r"Readout\.bias"):
        Readout(Categorical(), torch.ones(3, 4), torch.ones(3))
    with pytest.raises(ShapeError, match="has to be transposed"):
        Readout(Categorical(), torch.ones(3, 4)).scores(torch.ones(2, 4))
