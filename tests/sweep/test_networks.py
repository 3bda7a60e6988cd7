"""Networks side by side are what each would be alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from statewise.data import CopyingMemory, StartEndSimilarity
from statewise.sweep.networks import Networks, free_name, fresh_state, network_of
from statewise.sweep.sources import FreshExamples, states_at_start
from statewise.sweep.trial import Shape, Trial

CPU = torch.device("cpu")
TASKS = [CopyingMemory(m=3, n=4, delay=2), StartEndSimilarity(length=8, m=2, n=3)]


def shape_of(task: Any, **others: Any) -> Shape:
    return Trial(task=task, **{"depth": 2, "width": 7, "batch": 5, **others}).shape


def stacked(shape: Shape, seeds: tuple[int, ...]) -> Networks:
    networks = Networks(shape, len(seeds), CPU)
    for slot, seed in enumerate(seeds):
        networks.put(slot, fresh_state(shape, seed=seed))
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for parameter in networks.parameters.values():  # biases of modReLU and weights between layers that matter
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
        if shape.update == "full-capacity":
            for layer in range(shape.depth):
                weight = networks.parameters[free_name(layer)]
                weight.copy_(torch.linalg.qr(weight)[0])
    return networks


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
@pytest.mark.parametrize("update", ["cayley", "full-capacity"])
@pytest.mark.parametrize("depth", [1, 3])
def test_losses_and_all_gradients_are_those_of_the_module(task: Any, update: str, depth: int) -> None:
    shape = shape_of(task, update=update, depth=depth)
    networks = stacked(shape, (3, 4, 5))
    roots, places = torch.tensor([3, 4, 5]), torch.tensor([0, 1, 2])
    inputs, answers = FreshExamples(task, shape.batch, CPU).fresh(roots, places)
    starts = states_at_start(roots, places, (depth, shape.batch, shape.width))
    inverses = networks.inverses()
    recurrent = networks.recurrent(inverses)
    losses, grads = networks.gradients(recurrent, inputs, answers, starts)
    found = networks.chained(inverses, recurrent, grads)
    logits = networks.logits(recurrent, inputs, starts)
    for slot in range(3):
        module = network_of(shape, networks.take(slot))
        alone = module(inputs[slot], starts[slot])
        torch.testing.assert_close(logits[slot], alone, rtol=1e-4, atol=1e-6)
        loss = F.cross_entropy(alone.flatten(0, -2), answers[slot].flatten())
        torch.testing.assert_close(losses[slot], loss, rtol=1e-5, atol=1e-6)
        loss.backward()
        expected = {name: parameter.grad for name, parameter in module.named_parameters()}
        assert set(found) == set(expected)
        for name, grad in expected.items():
            torch.testing.assert_close(found[name][slot], grad, rtol=1e-3, atol=1e-6)


def test_a_gradient_that_is_not_finite_or_too_large_is_limited_for_its_own_network_only() -> None:
    shape = shape_of(TASKS[0], depth=1)
    networks = stacked(shape, (0, 1))
    inverses = networks.inverses()
    recurrent = networks.recurrent(inverses)
    grads = {name: torch.zeros_like(tensor) for name, tensor in networks.parameters.items() if "hh" not in name}
    large = torch.randn(2, 7, 7, generator=torch.Generator().manual_seed(0))
    large[0] *= 1e9
    large[0, 0, 0] = float("nan")
    found = networks.chained(inverses, recurrent, {**grads, "rnn.weight_hh_l0": large})
    limited = torch.nan_to_num(large[0], nan=0.0)
    limited *= 10 / limited.abs().max()
    expected = networks.chained(inverses, recurrent, {**grads, "rnn.weight_hh_l0": torch.stack([limited, large[1]])})
    torch.testing.assert_close(found[free_name(0)], expected[free_name(0)])
    assert found[free_name(0)].isfinite().all()


def test_matrices_are_orthogonal_and_their_deviation_is_told() -> None:
    networks = stacked(shape_of(TASKS[0]), (0, 1))
    assert networks.orthogonality().amax() < 1e-5
    assert networks.largest_entries().tolist() == pytest.approx(
        [max(networks.parameters[free_name(layer)][slot].abs().max().item() for layer in range(2)) for slot in (0, 1)]
    )
    plain = stacked(shape_of(TASKS[0], update="full-capacity"), (0, 1))
    plain.parameters[free_name(1)][1] *= 1.1
    assert plain.orthogonality()[0] < 1e-5
    assert plain.orthogonality()[1] > 0.1
    assert plain.largest_entries().tolist() == [0, 0]


def test_a_network_of_one_channel_has_no_entries() -> None:
    networks = Networks(shape_of(TASKS[0], width=1), 2, CPU)
    assert networks.largest_entries().tolist() == [0, 0]
    assert networks.recurrent(networks.inverses()).abs().flatten().tolist() == [1.0] * 4
