"""The heads over words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from contracts.heads import WIDTH, WORDS, HeadContract
from statewise.errors import ArgumentError, ShapeError
from statewise.heads import AdaptiveSoftmax, Head, MixtureOfSoftmaxes, Softmax, apply_outside
from statewise.transforms import InputDropout, LockedDropout, Noise


def embedding(width: int) -> nn.Parameter:
    """The weight of an embedding, always the same."""
    return nn.Parameter(torch.linspace(-1, 1, WORDS * width).cos().view(WORDS, width))


class TestSoftmax(HeadContract):
    def make(self) -> Head:
        return Softmax(WIDTH, WORDS)


class TestTiedSoftmax(HeadContract):
    def make(self) -> Head:
        return Softmax(WIDTH, WORDS, tied=embedding(WIDTH))


class TestMixtureOfSoftmaxes(HeadContract):
    def make(self) -> Head:
        return MixtureOfSoftmaxes(WIDTH, WORDS, experts=3, latent=4)


class TestTiedMixture(HeadContract):
    def make(self) -> Head:
        return MixtureOfSoftmaxes(WIDTH, WORDS, experts=2, tied=embedding(5), dropout=0.3)


class TestAdaptiveSoftmax(HeadContract):
    def make(self) -> Head:
        return AdaptiveSoftmax(WIDTH, WORDS, factor=2.0)


def test_a_tied_softmax_moves_with_the_embedding() -> None:
    matrix = nn.Embedding(WORDS, WIDTH).weight
    head = Softmax(WIDTH, WORDS, tied=matrix)
    assert head.weight is matrix
    before = matrix.detach().clone()
    head.initialise()
    assert torch.equal(matrix, before), "the embedding's owner fills it"


def test_the_mixtures_dropout_acts_in_training_only(generator: torch.Generator) -> None:
    head = MixtureOfSoftmaxes(WIDTH, WORDS, experts=2, dropout=0.5)
    states, words = torch.randn(4, 2, WIDTH, generator=generator), torch.randint(WORDS, (4, 2), generator=generator)
    drawn = [head.nll(states, words, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    head.eval()
    assert torch.equal(head.nll(states, words), head.nll(states, words))


def test_a_mixture_refuses_no_experts() -> None:
    with pytest.raises(ArgumentError, match=r"experts: got 0"):
        MixtureOfSoftmaxes(3, 5, experts=0)


def test_an_embedding_of_another_width_cannot_be_tied() -> None:
    with pytest.raises(ShapeError, match=r"as wide as the top layer, or give tied=False"):
        Softmax(4, 10, tied=nn.Embedding(10, 5).weight)


def test_cutoffs_must_lie_inside_the_vocabulary() -> None:
    with pytest.raises(ArgumentError, match=r"cutoffs: got \(30,\)"):
        AdaptiveSoftmax(4, 20, cutoffs=(30,))


def test_clusters_without_a_target_have_a_gradient_of_zero(generator: torch.Generator) -> None:
    # Data-parallel training wants one of every parameter.
    head = AdaptiveSoftmax(WIDTH, WORDS, factor=2.0)
    head.nll(torch.randn(2, 1, WIDTH, generator=generator), torch.zeros(2, 1, dtype=torch.long)).sum().backward()
    grads = [parameter.grad for parameter in head.parameters()]
    assert all(grad is not None and bool(grad.isfinite().all()) for grad in grads)


def test_clusters_must_not_be_empty() -> None:
    with pytest.raises(ArgumentError, match=r"factor: got 4.0, wanted at most 2.83"):
        AdaptiveSoftmax(8, 20, factor=4.0)


def test_outside_a_layer_transforms_act_in_their_order() -> None:
    states = torch.ones(3, 2, 1000)
    noise, drop = Noise("gaussian", 0.1, mode="additive", placement="last"), LockedDropout(0.5)
    draw = torch.Generator().manual_seed(0)
    last = apply_outside([noise, drop], states, training=True, generator=draw)
    assert bool(((last == 0).float().mean() - 0.5).abs() < 0.05), "what is dropped last stays zero"
    first = apply_outside([drop, noise], states, training=True, generator=draw)
    assert not bool((first == 0).any())


def test_outside_a_layer_only_outputs_can_be_changed() -> None:
    with pytest.raises(ArgumentError, match="a transform of outputs"):
        apply_outside([InputDropout(0.5)], torch.ones(1, 1, 1), training=True)
