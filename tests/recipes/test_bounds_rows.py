"""Certificates of networks that read pictures by rows: what the recipe trains, and what it claims."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from statewise.bounds import kl_inverse
from statewise.bounds.description import describe
from statewise.recipes import Request, find_recipe, reproduce
from statewise.recipes.bounds_rows import NETWORKS, RECIPES, claims, tiny
from statewise.recipes.lines import Line
from statewise.recipes.rows_shared import LEVELS, SharedRows, SharedTraining, kept, shared_nats, soft_nats, train_shared
from statewise.recipes.studies import Studied
from support import shared_data

RECIPE = find_recipe("generalization-bounds/row-mnist")


def network(seed: int = 0) -> SharedRows:
    return SharedRows(3, bins=2, classes=2, generator=torch.Generator().manual_seed(seed))


def test_the_recurrence_is_the_one_that_is_described() -> None:
    """Place by place, step by step."""
    model, rows = network().double(), torch.rand(2, 4, 8, dtype=torch.float64)
    padded = F.pad(rows, (1, 1))
    state = torch.zeros(2, 4, 3, dtype=torch.float64)
    for step in range(4):
        new = torch.empty_like(state)
        for place in range(4):
            window = padded[:, step, 2 * place : 2 * place + 4]
            left, right = (
                state[:, near] if 0 <= near < 4 else torch.zeros(2, 3, dtype=torch.float64)
                for near in (place - 1, place + 1)
            )
            sums = window @ model.W.T + model.b + torch.cat([left, state[:, place], right], 1) @ model.U.T
            fresh, gate = sums[:, 3:].tanh(), sums[:, :3].sigmoid()
            new[:, place] = (1 - gate) * fresh + gate * state[:, place]
        state = new
    read = torch.cat([state[:, :2].mean(1), state[:, 2:].mean(1)], 1)
    torch.testing.assert_close(model(rows), read @ model.V.T + model.c)


def test_rounded_weights_are_on_their_levels_and_described_as_such() -> None:
    model = network()
    octaves = {name: torch.tensor(-1.0) for name in LEVELS}
    weights = kept(dict(model.named_parameters()), octaves)
    found = describe(weights)
    for part in found.tensors:
        assert part.levels is not None
        assert part.levels <= LEVELS[part.name]
    assert shared_nats(model, weights) == found.nats + model.architecture_nats
    assert model.architecture_nats > math.log(3 * 4 * 2 * 3)


def test_the_smooth_length_falls_as_weights_agree_and_has_gradients_where_levels_are_empty() -> None:
    model = network()
    octaves = {name: torch.zeros((), requires_grad=True) for name in LEVELS}
    spread = soft_nats({name: 4 * torch.randn_like(value) for name, value in model.named_parameters()}, octaves)
    alike = soft_nats({name: torch.zeros_like(value) for name, value in model.named_parameters()}, octaves)
    assert alike < spread / 5
    free = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
    soft_nats(free, octaves).backward()
    assert all(
        bool(value.grad.isfinite().all()) for value in [*free.values(), *octaves.values()] if value.grad is not None
    )


def test_training_learns_and_gives_rounded_weights_once_they_are_rounded() -> None:
    data = tiny(400, 0)
    rows, _, labels = data.padded(range(400))
    generator = torch.Generator().manual_seed(0)
    training = SharedTraining(epochs=12, batch=50, lr=0.03, price=0.1)
    epochs = dict(train_shared(network(), rows, labels, training, generator=generator))
    assert min(epochs) == 2
    assert max(epochs) == 12
    wrong = torch.func.functional_call(network(), epochs[12], (rows,)).argmax(1) != labels
    assert float(wrong.float().mean()) < 0.1


def test_projected_networks_have_about_as_many_weights() -> None:
    sizes = {"rnn-1": 864, "mgu-1": 860, "lstm-1": 876}
    for row, wanted in sizes.items():
        settings = NETWORKS[row]
        gates = {"rnn": 1, "mgu": 2, "lstm": 4}[settings.cell]
        assert gates * settings.hidden * (28 + settings.hidden) + 10 * settings.hidden == wanted


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = ("rnn-1", "gru-ternary", "shared", "randomised")
    request = Request(rows=rows, scale="smoke")
    return reproduce(RECIPE, request, tmp_path_factory.mktemp("rows"), device=torch.device("cpu"))


def test_a_smoke_run_certifies_each_kind(outcome: Any) -> None:
    found = {one.line.row: one.found for one in outcome.measured}
    assert found["rnn-1"]["best"] in ("kl", "low-rank", "bits")
    assert found["gru-ternary"]["best"] == found["shared"]["best"] == "bits"
    assert found["randomised"]["about"] == "the randomised network"
    assert found["randomised"]["sequences"] == 150
    for row in ("rnn-1", "gru-ternary"):
        assert sum(found[row]["margins"]["counts"]) == 300
    shared = found["shared"]
    assert shared["certificate"] == pytest.approx(kl_inverse(shared["error"], shared["nats"] / 300), rel=1e-9)


def test_the_table_has_a_row_each_and_nothing_is_claimed_of_a_smoke_run(outcome: Any) -> None:
    sheet = RECIPE.sheet(outcome.measured, outcome.request)
    assert [row[0] for row in sheet.rows] == ["rnn-1", "gru-ternary", "shared", "randomised"]
    assert all(len(row) == len(sheet.columns) for row in sheet.rows)
    assert claims(outcome.measured) == []


def test_claims_say_whether_they_hold() -> None:
    def made(certificate: float, test_error: float) -> Studied:
        found = {"certificate": certificate, "test_error": test_error}
        return Studied(name="one", line=Line(row="one"), seed=0, found=found)

    assert [holds for _, holds in claims([made(0.2, 0.05)])] == [True, True]
    assert [holds for _, holds in claims([made(0.2, 0.09)])] == [False, True]
    assert [holds for _, holds in claims([made(0.04, 0.05)])] == [True, False]


@pytest.mark.slow
@pytest.mark.data
def test_mnist_by_rows_is_certified_below_a_third_with_few_errors(tmp_path: Path) -> None:
    data = shared_data("mnist")
    made = reproduce(RECIPE, Request(rows=("gru-ternary",)), tmp_path, data=data, device=torch.device("cpu"))
    (found,) = (one.found for one in made.measured)
    assert found["test_error"] <= 0.08
    assert found["test_error"] <= found["certificate"] <= 0.30


def test_it_is_the_recipe_that_is_registered() -> None:
    assert RECIPE is RECIPES[0]
    assert replace(NETWORKS["rnn-1"], seed=3).seed == 3
