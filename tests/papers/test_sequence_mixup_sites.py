"""Known answers for the three places of sequence mixup as objects (Karamzade et al. 2020)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples, seeds
from statewise import GRU, LSTM, MGU, RNN, PeepholeLSTM, RecurrentLayer
from statewise.mixup import InputMixup, Mixup, Pairs, PreOutputMixup, ThroughTimeMixup
from statewise.mixup.lengths import POLICIES
from support import Tolerance

DOUBLE = torch.float64
EXACT: Tolerance = {"rtol": 1e-12, "atol": 1e-12}
SITES: dict[str, Mixup] = {mix.site: mix for mix in (InputMixup(), PreOutputMixup(), ThroughTimeMixup())}
CELLS = (RNN, MGU, GRU, LSTM, PeepholeLSTM)
every_cell = pytest.mark.parametrize("kind", CELLS)


def network(kind: Any, seed: int, **options: Any) -> RecurrentLayer:
    layer: RecurrentLayer = kind(3, 4, dtype=DOUBLE, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(seed))
    return layer


def mixed(site: str, layer: RecurrentLayer, x: Tensor, partner: Tensor, coefficients: Tensor) -> Tensor:
    """The outputs of pairs (x, partner), all of the same length."""
    count = x.shape[1]
    pairs = Pairs.of(
        coefficients,
        first=torch.arange(count),
        second=torch.arange(count, 2 * count),
        lengths=[len(x)] * 2 * count,
        site=site,
        layer=0 if site == "through_time" else None,
        dtype=DOUBLE,
    )
    return SITES[site](layer, torch.cat((x, partner), 1), pairs=pairs)[0]


def sequences(seed: int, steps: int = 5, pairs: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x, partner = torch.randn(2, steps, pairs, 3, generator=generator, dtype=DOUBLE)
    return x, partner, torch.rand(steps, pairs, generator=generator, dtype=DOUBLE)


@every_cell
@few_examples
@given(seed=seeds)
def test_with_one_step_mixing_before_the_output_is_mixing_through_time(kind: Any, seed: int) -> None:
    layer, given_pairs = network(kind, seed), sequences(seed, steps=1)
    torch.testing.assert_close(*(mixed(site, layer, *given_pairs) for site in list(SITES)[1:]), **EXACT)


@every_cell
@few_examples
@given(seed=seeds)
def test_with_hard_coefficients_mixing_through_time_is_mixing_the_input(kind: Any, seed: int) -> None:
    layer, (x, partner, coefficients) = network(kind, seed), sequences(seed)
    hard = (coefficients + torch.arange(5).unsqueeze(1) * 0.5).remainder(1).round()
    found = {site: mixed(site, layer, x, partner, hard) for site in SITES}
    torch.testing.assert_close(found["through_time"], found["input"], **EXACT)


@few_examples
@given(seed=seeds)
def test_in_a_linear_network_through_time_is_input_and_for_constant_coefficients_all_agree(seed: int) -> None:
    layer, (x, partner, varying) = network(RNN, seed, nonlinearity="identity"), sequences(seed)
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0").mul_(0.3)
    found = {site: mixed(site, layer, x, partner, varying) for site in SITES}
    torch.testing.assert_close(found["through_time"], found["input"], **EXACT)
    assert (found["pre_output"] - found["input"]).abs().max() > 1e-4
    found = {site: mixed(site, layer, x, partner, varying[:1].expand_as(varying)) for site in SITES}
    for site in ("through_time", "pre_output"):
        torch.testing.assert_close(found[site], found["input"], **EXACT)


@pytest.mark.parametrize(
    ("kind", "site", "printed"),
    [
        (RNN, "input", (-0.4621171573, 0.3909177252)),
        (RNN, "pre_output", (-0.3807970780, 0.8498773353)),
        (RNN, "through_time", (-0.3807970780, 0.3201082613)),
        (GRU, "input", (-0.2876491366, 0.0287618997)),
        (GRU, "pre_output", (-0.3663714022, 0.1734837407)),
        (GRU, "through_time", (-0.3663714022, -0.0816021612)),
        (LSTM, "input", (-0.0652084830, 0.2282266402)),
        (LSTM, "pre_output", (0.0516555203, 0.5016564623)),
        (LSTM, "through_time", (0.0516555203, 0.2950952764)),
    ],
)
def test_one_unit_with_all_weights_one_gives_the_printed_outputs(
    kind: Any, site: str, printed: tuple[float, float]
) -> None:
    """x = (1, 0.5), x' = (-1, 2), lambda = (0.25, 0.75)."""
    layer = kind(1, 1, bias=False, dtype=DOUBLE)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(1)
    x, partner, coefficients = torch.tensor([[1.0, 0.5], [-1.0, 2.0], [0.25, 0.75]], dtype=DOUBLE)
    states = mixed(site, layer, x.reshape(2, 1, 1), partner.reshape(2, 1, 1), coefficients.reshape(2, 1))
    assert states.flatten().tolist() == pytest.approx(printed, abs=5.1e-11)


@pytest.mark.parametrize("site", SITES)
@few_examples
@given(seed=seeds, policy=st.sampled_from(POLICIES), padding=st.integers(1, 4), kind=st.sampled_from(CELLS))
def test_padding_changes_no_output_no_loss_and_no_gradient(
    site: str, seed: int, policy: str, padding: int, kind: Any
) -> None:
    """In both directions and for every treatment of lengths; padding holds what is no number."""
    layer = network(kind, seed, bidirectional=True)
    mix, lengths = type(SITES[site])(alpha=0.5, rho=0.5, lengths=policy), torch.tensor([2, 5, 3])
    x, head = sequences(seed)[0], torch.randn(8, 4, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    tags = torch.randint(4, (5, 3), generator=torch.Generator().manual_seed(seed))
    grown = torch.cat((x, torch.full((padding, 3, 3), torch.nan, dtype=DOUBLE)))
    results = []
    for inputs, labels in ((x, tags), (grown, torch.cat((tags, tags.new_full((padding, 3), 99))))):
        output, pairs = mix(layer, inputs, lengths=lengths, generator=torch.Generator().manual_seed(seed))
        loss = pairs.cross_entropy(output @ head, labels)
        grads = torch.autograd.grad(loss, list(layer.parameters()), allow_unused=True)
        results.append((output[:5].detach(), loss.detach(), [grad for grad in grads if grad is not None]))
    torch.testing.assert_close(*results, **EXACT)


def test_evaluation_depends_on_neither_alpha_nor_rho_nor_the_place() -> None:
    layer, x = network(LSTM, 0).eval(), sequences(0)[0]
    found = [
        kind(alpha=alpha, rho=rho)(layer, x)[0]
        for kind in (InputMixup, PreOutputMixup, ThroughTimeMixup)
        for alpha, rho in ((0.1, 0.0), (2.0, 0.5))
    ]
    assert all(torch.equal(other, found[0]) for other in found)
