"""Replicas on the CPU: many networks under vmap run on the C++ kernel, and equal the reference and each one alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap
from torch.nn.utils.rnn import pack_padded_sequence

from contracts.passes import only
from statewise import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    Centroids,
    MultiplicativeRNN,
    Noise,
    OrthogonalRNN,
    Pairing,
    PeepholeLSTM,
    RecurrentDropout,
    RecurrentLayer,
    Transform,
    Zoneout,
)
from statewise.errors import EngineError, SecondDerivativeError
from statewise.native import load_native
from support import threads, tolerance

pytestmark = pytest.mark.skipif(not load_native().available, reason="needs the kernel")

INPUT, HIDDEN, STEPS, BATCH, REPLICAS = 3, 6, 4, 4, 3
CELLS: dict[str, Callable[..., RecurrentLayer]] = {
    "modrelu": partial(RNN, nonlinearity="modrelu", bias=False),
    "tanh": RNN,
    "GRU": GRU,
    "GRU, reset before": partial(GRU, reset_before=True),
    "LSTM": LSTM,
    "peephole": PeepholeLSTM,
    "MGU": MGU,
    "RAC": RAC,
    "orthogonal": OrthogonalRNN,
}
CHAINS: dict[str, list[Transform]] = {
    "nothing": [],
    "all": [RecurrentDropout(0.4), Noise("gaussian", 0.3), Zoneout(0.4), Centroids(3, transition="noisy")],
}
EVERY_CELL = pytest.mark.parametrize("cell", CELLS)


def networks(cell: str, layers: int = 1, count: int = REPLICAS, **options: Any) -> list[RecurrentLayer]:
    options = {"dtype": torch.float64, **options}
    return [CELLS[cell](INPUT, HIDDEN, layers, **options) for _ in range(count)]


def stacked(layers: list[RecurrentLayer]) -> dict[str, Tensor]:
    weights = [dict(layer.named_parameters()) for layer in layers]
    return {name: torch.stack([own[name].detach() for own in weights]) for name in weights[0]}


def states_of(layer: RecurrentLayer, *shape: int) -> Any:
    parts = [torch.randn(*shape, layer.num_layers, BATCH, HIDDEN, dtype=torch.float64) / 2 for _ in range(2)]
    return tuple(parts) if layer.cell.has_memory else parts[0]


def loss_of(layer: RecurrentLayer, plans: list[str]) -> Callable[..., Tensor]:
    """Of outputs and final states, each with another weight; it notes which form runs."""

    def loss(weights: dict[str, Tensor], x: Tensor, *state: Any) -> Tensor:
        output, final = functional_call(layer, weights, (x, *state))
        plans.append(str(layer.plan(x)))
        parts = final if isinstance(final, tuple) else (final,)
        return output.sin().sum() + sum((place * part.cos()).sum() for place, part in enumerate(parts, start=2))  # type: ignore[no-any-return]

    return loss


def on_both(layer: RecurrentLayer, work: Callable[[], Any]) -> list[Any]:
    """What the layer gives by its own choice, and by the reference, from one seed."""
    found = []
    for engine in ("auto", "reference"):
        layer.engine = engine
        torch.manual_seed(8)
        found.append(work())
    layer.engine = "auto"
    return found


@pytest.mark.parametrize("chain", CHAINS)
@EVERY_CELL
def test_values_and_all_gradients_are_the_references(cell: str, chain: str) -> None:
    """One to three layers; given states or none; one thread or two; step or batch first; draws for each replica."""
    ways = ((2, True, 2, True), (1, False, 1, False), (3, True, 2, False))
    for layers, given, count, batch_first in ways if chain == "nothing" else ways[:1]:
        nets = networks(cell, layers, transforms=CHAINS[chain], batch_first=batch_first)
        shape = (BATCH, STEPS) if batch_first else (STEPS, BATCH)
        inputs = torch.randn(REPLICAS, *shape, INPUT, dtype=torch.float64) / 2
        state = (states_of(nets[0], REPLICAS),) if given else ()
        plans: list[str] = []
        sought = grad_and_value(loss_of(nets[0], plans), argnums=tuple(range(2 + len(state))))
        work = partial(vmap(sought, randomness="different"), stacked(nets), inputs, *state)
        with threads(count):
            found, expected = on_both(nets[0], work)
        assert plans[0] == "cpu (native)"
        assert plans[1].startswith("reference")
        torch.testing.assert_close(found, expected, **tolerance(torch.float64))


@pytest.mark.parametrize(("count", "dtype"), [(1, torch.float64), (2, torch.float32), (4, torch.float64)])
@EVERY_CELL
def test_each_replica_is_the_network_alone(cell: str, count: int, dtype: torch.dtype) -> None:
    """Beyond one block of the kernel, with as many threads as replicas, fewer, and more; bits do not change anew."""
    nets = [CELLS[cell](INPUT, 35, dtype=dtype) for _ in range(REPLICAS)]
    inputs, start = torch.randn(REPLICAS, 7, 61, INPUT, dtype=dtype) / 2, torch.randn(1, 61, 35, dtype=dtype) / 2
    hx = (start, start) if nets[0].cell.has_memory else start

    def loss(weights: dict[str, Tensor], own: Tensor) -> Tensor:
        return functional_call(nets[0], weights, (own, hx))[0].sin().sum()  # type: ignore[no-any-return]

    with threads(count):
        replicas = vmap(grad(loss, argnums=(0, 1)), randomness="same")
        together, again = (replicas(stacked(nets), inputs) for _ in range(2))
        torch.testing.assert_close(together, again, rtol=0, atol=0)
        for place, net in enumerate(nets):
            own = inputs[place].clone().requires_grad_()
            net(own, hx)[0].sin().sum().backward()
            close = tolerance(dtype) if dtype is torch.float64 else {"rtol": 1e-4, "atol": 2e-4}
            torch.testing.assert_close(together[1][place], own.grad, **close)
            for name, weight in net.named_parameters():
                torch.testing.assert_close(together[0][name][place], weight.grad, **close)


@EVERY_CELL
def test_sequences_of_unequal_length_in_both_directions_equal_the_reference(cell: str) -> None:
    nets = networks(cell, bidirectional=True, transforms=CHAINS["all"])
    packed = pack_padded_sequence(
        torch.randn(STEPS, BATCH, INPUT, dtype=torch.float64), torch.tensor([2, 4, 1, 3]), enforce_sorted=False
    )

    def loss(weights: dict[str, Tensor], rows: Tensor) -> Tensor:
        output, final = functional_call(nets[0], weights, (packed._replace(data=rows),))
        parts = final if isinstance(final, tuple) else (final,)
        return output.data.sin().sum() + sum(part.cos().sum() for part in parts)  # type: ignore[no-any-return]

    sought, weights = vmap(grad(loss, argnums=(0, 1)), in_dims=(0, None), randomness="different"), stacked(nets)
    found, expected = on_both(nets[0], lambda: sought(weights, packed.data))
    torch.testing.assert_close(found, expected, **tolerance(torch.float64))


def twice(pull: Callable[[Tensor], Any]) -> list[Any]:
    """What is pulled back by one function, two times."""
    return [pull(torch.full((REPLICAS,), size, dtype=torch.float64)) for size in (1.0, 3.0)]


WAYS: dict[str, Callable[..., Any]] = {
    "forward": lambda f: vmap(f, in_dims=(0, None)),
    "gradient alone": lambda f: lambda weights, x: grad(f)({name: w[0] for name, w in weights.items()}, x),
    "shared inputs": lambda f: vmap(grad(f, argnums=(0, 1)), in_dims=(0, None)),
    "shared weights": lambda f: (
        lambda weights, x: vmap(grad(f, argnums=(0, 1)), in_dims=(None, 0))(
            {name: w[0] for name, w in weights.items()}, torch.stack((x, 2 * x))
        )
    ),
    "replicas in the middle": lambda f: (
        lambda weights, x: vmap(grad(f, argnums=1), in_dims=(0, 2))(weights, torch.stack((x, x + 1, x - 1), dim=2))
    ),
    "gradient of replicas": lambda f: grad(
        lambda weights, x: vmap(f, in_dims=(0, None))(weights, x).square().sum(), argnums=(0, 1)
    ),
    "replicas of replicas": lambda f: (
        lambda weights, x: vmap(vmap(grad(f, argnums=(0, 1)), in_dims=(None, 0)), in_dims=(0, None))(
            weights, torch.stack((x, 2 * x))
        )
    ),
    "jacobians": lambda f: vmap(jacrev(lambda weights, x: torch.stack((f(weights, x), f(weights, 2 * x)))), (0, None)),
    "twice back": lambda f: (
        lambda weights, x: twice(vjp(lambda weights: vmap(f, in_dims=(0, None))(weights, x), weights)[1])
    ),
    "second derivative": lambda f: vmap(hessian(f, argnums=1), in_dims=(0, None)),
    "gradient of the gradient": lambda f: vmap(
        grad(lambda weights, x: grad(f, argnums=1)(weights, x).square().sum()), in_dims=(0, None)
    ),
    "forward mode": lambda f: (
        lambda weights, x: jvp(lambda x: vmap(f, in_dims=(0, None))(weights, x), (x,), (torch.ones_like(x),))
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_asked_equals_the_reference(way: str) -> None:
    """Where the kernel cannot serve, the reference does, as the plan says."""
    nets, x = networks("LSTM"), torch.randn(2, BATCH, INPUT, dtype=torch.float64)
    plans: list[str] = []
    weights, sought = stacked(nets), WAYS[way](loss_of(nets[0], plans))
    found, expected = on_both(nets[0], lambda: sought(weights, x))
    torch.testing.assert_close(found, expected, **tolerance(torch.float64))
    slow = {
        "second derivative": "forward-mode",
        "gradient of the gradient": "first derivatives only",
        "forward mode": "forward-mode",
    }
    if way in slow:
        assert plans[0].startswith("reference")
        assert slow[way] in plans[0]
    else:
        assert plans[0] == "cpu (native)"


def test_weights_of_ordinary_autograd_get_the_gradients_of_their_replicas() -> None:
    nets, x = networks("GRU", 2), torch.randn(STEPS, BATCH, INPUT, dtype=torch.float64)

    def gradients() -> dict[str, Tensor | None]:
        weights = {name: weight.clone().requires_grad_() for name, weight in stacked(nets).items()}
        outputs = vmap(lambda own: functional_call(nets[0], own, (x,))[0])(weights)
        outputs.sin().sum().backward()
        return {name: weight.grad for name, weight in weights.items()}

    found, expected = on_both(nets[0], gradients)
    torch.testing.assert_close(found, expected, **tolerance(torch.float64))


def test_what_is_collected_is_seen_for_each_replica_and_carries_no_gradient() -> None:
    nets, x = networks("LSTM", transforms=CHAINS["all"]), torch.randn(STEPS, BATCH, INPUT, dtype=torch.float64)
    kinds = ("states", "cells", "gates", "probabilities")

    def seen(weights: dict[str, Tensor]) -> Any:
        _, _, found = functional_call(nets[0], weights, (x,), {"collect": kinds})
        return found.states, found.cells, found.gates, found.probabilities

    def sizes(weights: dict[str, Tensor]) -> Tensor:
        return sum(part[0].square().sum() for part in seen(weights)[:2])  # type: ignore[no-any-return]

    weights = stacked(nets)
    found, expected = on_both(nets[0], lambda: vmap(seen, randomness="same")(weights))
    torch.testing.assert_close(found, expected, **tolerance(torch.float64))
    assert all(not g.any() for g in vmap(grad(sizes), randomness="same")(weights).values())


def test_gradients_of_what_is_collected_and_of_draws_are_left_to_the_reference() -> None:
    layer, x = GRU(INPUT, HIDDEN, transforms=Noise("gaussian", 0.3)), torch.randn(STEPS, BATCH, INPUT)
    draws = layer.draw(x)
    ((key, (drawn,)),) = draws.tensors.items()

    def gates(inputs: Tensor) -> Tensor:
        _, _, seen = layer(inputs, collect=("gates",), collect_grad=True, draws=draws)
        return sum(gate.sin().sum() for gate in seen.gates[0].values())  # type: ignore[no-any-return]

    def of_draws(noise: Tensor) -> Tensor:
        return layer(x, draws=replace(draws, tensors={key: (noise,)}))[0].sin().sum()  # type: ignore[no-any-return]

    for work, given in ((gates, x), (of_draws, drawn)):
        both = partial(vmap(grad(work)), torch.stack((given, 2 * given)))
        found, expected = on_both(layer, both)
        torch.testing.assert_close(found, expected)
        assert found.any()


def test_a_second_derivative_by_ordinary_autograd_is_refused() -> None:
    layer, x = GRU(INPUT, HIDDEN), torch.randn(STEPS, BATCH, INPUT, requires_grad=True)
    gradient = grad(lambda inputs: layer(inputs)[0].sin().sum())(x)
    with pytest.raises(SecondDerivativeError, match="engine='reference'"):
        gradient.sum().backward()


def test_several_gradients_at_once_by_ordinary_autograd_are_refused() -> None:
    layer, x = GRU(INPUT, HIDDEN), torch.randn(STEPS, BATCH, INPUT, requires_grad=True)
    output = layer(x)[0]
    with pytest.raises(EngineError, match=r"is_grads_batched.*torch\.func\.vmap over torch\.func\.vjp"):
        torch.autograd.grad(output, x, torch.randn(2, *output.shape), is_grads_batched=True)


def test_states_that_are_changed_in_place_are_noticed() -> None:
    layer = GRU(INPUT, HIDDEN)

    def loss(inputs: Tensor) -> Tensor:
        output: Tensor = layer(inputs)[0]
        before = output * 1
        return (output.mul_(2) * before).sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(grad(loss))(torch.randn(2, STEPS, BATCH, INPUT))


def test_each_replica_draws_numbers_of_its_own_if_asked_to() -> None:
    layer, x = GRU(INPUT, HIDDEN, transforms=Noise("gaussian", 0.5)), torch.randn(STEPS, BATCH, INPUT)
    one, other = vmap(lambda inputs: layer(inputs)[0], randomness="different")(torch.stack((x, x)))
    assert not torch.allclose(one, other)
    one, other = vmap(lambda inputs: layer(inputs)[0], randomness="same")(torch.stack((x, x)))
    assert torch.equal(one, other)


class TestPlans:
    def plan_inside(self, layer: RecurrentLayer, **options: Any) -> str:
        plans: list[str] = []

        def note(inputs: Tensor) -> Tensor:
            plans.append(str(layer.plan(inputs, **options)))
            return inputs.sum()

        x = torch.zeros(2, STEPS, BATCH, INPUT, dtype=next(layer.parameters()).dtype)
        vmap(grad(note), randomness="same")(x)
        return plans[0]

    def test_the_kernel_serves_and_the_plan_says_so(self) -> None:
        assert self.plan_inside(GRU(INPUT, HIDDEN, 2)) == "cpu (native)"

    @pytest.mark.parametrize(
        ("layer", "reason"),
        [
            (MultiplicativeRNN(INPUT, HIDDEN), "no code for the cell"),
            (GRU(INPUT, HIDDEN, dtype=torch.bfloat16), "torch.bfloat16"),
            (GRU(INPUT, HIDDEN, transforms=RecurrentDropout(0.3, share_gates=False)), "recurrent dropout"),
        ],
    )
    def test_the_reference_serves_otherwise_and_the_plan_says_why(self, layer: RecurrentLayer, reason: str) -> None:
        plan = self.plan_inside(layer)
        assert plan.startswith("reference (loop)")
        assert reason in plan

    def test_pairs_run_on_it_where_the_cell_has_one_product(self) -> None:
        pairing = Pairing(torch.arange(BATCH).flip(0), torch.full((BATCH,), 0.7), layer=0)
        assert self.plan_inside(GRU(INPUT, HIDDEN), pairing=pairing) == "cpu (native)"
        assert "does not mix through time" in self.plan_inside(MGU(INPUT, HIDDEN), pairing=pairing)

    def test_without_a_kernel_the_reference_serves(self) -> None:
        with only("loop"):
            assert (
                self.plan_inside(GRU(INPUT, HIDDEN)) == "reference (loop); not faster because: cpu: left out by a test"
            )

    def test_the_cpu_engine_runs_replicas_and_refuses_what_it_cannot(self) -> None:
        layer, x = GRU(INPUT, HIDDEN, engine="cpu"), torch.randn(2, STEPS, BATCH, INPUT)
        assert vmap(grad(lambda inputs: layer(inputs)[0].sum()))(x).shape == x.shape
        with pytest.raises(EngineError, match=r"torch\.func.*first derivatives only.*engine='auto'"):
            grad(lambda x: grad(lambda x: layer(x)[0].sin().sum())(x).sum())(x[0])
