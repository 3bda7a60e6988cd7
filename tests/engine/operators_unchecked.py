"""What torch's compiler and exporter see of the CPU layers, and that memory is kept no longer than needed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

from statewise import GRU, LSTM, RAC, Centroids, LockedDropout, Noise, RecurrentDropout, Zoneout
from statewise.engine import cpu, plan
from statewise.errors import ArgumentError, DtypeError, EngineError, LengthError
from statewise.heads import CRF, Constraints
from statewise.layers import base
from statewise.native import NativeStatus, library, load_native, operators
from statewise.transforms import streams

pytestmark = [
    pytest.mark.skipif(not load_native().available, reason=load_native().reason or "no kernel"),
    # torch's own compiler uses what torch has deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]
CHAINS: dict[str, Any] = {
    "plain": None,
    "noise": Noise("gaussian", 0.5),
    "all": [Noise("gaussian", 0.5), Centroids(4), Zoneout(0.2), LockedDropout(0.3), RecurrentDropout(0.2)],
}
PATH = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2], [2, 0, 1, 0], [0, 2, 0, 1], [2, 1, 1, 2]])


class Model(nn.Module):
    def __init__(self, transforms: Any, kind: Any = LSTM) -> None:
        super().__init__()
        self.layer = kind(4, 8, 2, transforms=transforms)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layer(x)[0])
        return scores


def passed(model: Any, parameters: Sequence[Tensor], x: Tensor) -> list[Tensor]:
    torch.manual_seed(7)
    output = model(x)
    return [output, *torch.autograd.grad(output.square().sum(), parameters), torch.get_rng_state()]


def compare(model: nn.Module, compiled: Any, *sizes: tuple[int, int]) -> None:
    """Outputs, gradients and the state of the generator behind them, for inputs of so many steps and sequences."""
    parameters = list(model.parameters())
    for steps, batch in sizes:
        x = torch.randn(steps, batch, 4)
        for one, other in zip(passed(model, parameters, x), passed(compiled, parameters, x), strict=True):
            torch.testing.assert_close(one, other)


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_a_compiled_model_is_one_graph_with_eagers_outputs_gradients_and_draws(kind: Any, chain: str) -> None:
    model = Model(CHAINS[chain], kind)
    compare(model, torch.compile(model, fullgraph=True, backend="aot_eager"), (5, 3))


def by_the_default_compiler(model: Any) -> Any:
    """A model by the compiler that users get; the test is skipped where that does not run."""
    try:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(3))
    except Exception as error:  # whatever it is: no compiler, or no headers of Python
        pytest.skip(f"torch's compiler does not run here: {type(error).__name__}")
    return torch.compile(model, fullgraph=True)


class Several(nn.Module):
    """Layers with equal weights that read the same, one of them twice and in a checkpoint: only their noise differs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (LSTM(4, 8, transforms=[Noise("gaussian", 0.5), LockedDropout(0.3)]) for _ in "12")
        self.second.load_state_dict(self.first.state_dict())

    def forward(self, x: Tensor) -> Tensor:
        once, again, other = self.first(x)[0], self.first(x)[0], self.second(x)[0]
        kept = checkpoint(lambda y: self.second(y)[0], x, use_reentrant=False)
        return torch.stack([once, again, other, kept])


def test_so_is_one_by_the_default_compiler() -> None:
    model = Model(CHAINS["all"])
    compare(model, by_the_default_compiler(model), (5, 3))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_each_call_in_a_graph_has_noise_of_its_own_in_a_checkpoint_too(backend: str) -> None:
    model = Several()
    inductor = backend == "inductor"
    compiled = by_the_default_compiler(model) if inductor else torch.compile(model, fullgraph=True, backend=backend)
    compare(model, compiled, (5, 3))
    outputs = compiled(torch.randn(5, 3, 4))
    assert all(not torch.equal(outputs[a], outputs[b]) for a in range(4) for b in range(a))


@pytest.mark.parametrize("chain", CHAINS)
def test_one_graph_serves_every_length_and_batch(chain: str) -> None:
    model, graphs = Model(CHAINS[chain]), []

    def note(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    compare(model, torch.compile(model, fullgraph=True, dynamic=True, backend=note), (5, 3), (7, 3), (150, 4))
    assert len(graphs) == 1


def test_a_strength_that_is_changed_between_two_steps_takes_effect() -> None:
    model = Model(CHAINS["all"])
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for gamma in (0.5, 0.7, 0.2):
        model.layer.retune(Noise, gamma=gamma)
        model.layer.retune(LockedDropout, p=gamma / 2)
        model.layer.retune(Centroids, temperature=gamma)
        compare(model, compiled, (5, 3))


def seeded(model: Any, x: Tensor) -> Tensor:
    torch.manual_seed(3)
    output: Tensor = model(x)
    return output


def test_an_exported_model_draws_what_the_model_draws_for_every_length(tmp_path: Path) -> None:
    model, x, size = Model(CHAINS["all"]), torch.randn(5, 3, 4), torch.export.Dim.DYNAMIC
    torch.export.save(
        torch.export.export(model, (x,), dynamic_shapes={"x": {0: size, 1: size}}), tmp_path / "model.pt2"
    )
    exported = torch.export.load(tmp_path / "model.pt2").module()
    for shape in ((5, 3, 4), (9, 2, 4)):
        x = torch.randn(shape)
        torch.testing.assert_close(seeded(exported, x), seeded(model, x))


def test_without_the_kernel_the_plain_loop_is_traced_only_where_nothing_else_will_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (base, plan, streams):
        monkeypatch.setattr(module, "load_native", lambda: NativeStatus(available=False, reason="left out by a test"))
    model, x = Model(CHAINS["all"]), torch.randn(5, 3, 4)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    compare(model, torch.compile(model, backend="aot_eager"), (5, 3), (6, 2))  # in pieces, the layer as it is
    exported = torch.export.export(model, (x,)).module()
    torch.testing.assert_close(seeded(exported, x), seeded(model, x))
    model.layer.engine = "reference"
    compare(model, torch.compile(model, fullgraph=True, backend="aot_eager"), (5, 3))


@pytest.mark.parametrize("chain", ["plain", "all"])
def test_torch_funcs_transforms_are_compiled_with_eagers_draws(chain: str) -> None:
    model, x = Model(CHAINS[chain]), torch.randn(6, 5, 2, 4)
    parameters = dict(model.named_parameters())

    def loss(parameters: Any, x: Tensor) -> Tensor:
        output: Tensor = functional_call(model, parameters, (x,))
        return output.square().sum()

    each = vmap(grad(loss), in_dims=(None, 0), randomness="different")
    ways = []
    for function in (each, torch.compile(each, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(5)
        ways.append((function(parameters, x), torch.get_rng_state()))
    torch.testing.assert_close(*ways)
    if chain == "plain":
        torch.testing.assert_close(
            make_fx(grad(loss))(parameters, x[0])(parameters, x[1]), grad(loss)(parameters, x[1])
        )


@pytest.mark.parametrize("start", ["ones", "pinv"])
def test_a_circuit_without_biases_is_one_graph_with_states_given_too(start: Any) -> None:
    layer, x = RAC(4, 8, initial_state=start), torch.randn(5, 3, 4)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    output, state = layer(x)
    torch.testing.assert_close(compiled(x), (output, state))
    torch.testing.assert_close(compiled(x, state), layer(x, state))


def test_tensors_that_keep_their_numbers_elsewhere_go_through_the_operator() -> None:
    layer, x = LSTM(4, 8), torch.randn(5, 3, 4)
    pair = layer(TwoTensor(x, -x))[0]
    torch.testing.assert_close((pair.a, pair.b), (layer(x)[0], layer(-x)[0]))
    torch.testing.assert_close(layer(torch._efficientzerotensor(5, 3, 4))[0], layer(torch.zeros(5, 3, 4))[0])
    torch.testing.assert_close(layer(torch._neg_view(x))[0], layer(-x)[0])
    output, weights = layer(x)[0], list(layer.parameters())
    negative, resolved = (
        torch.autograd.grad(output, weights, gradient, retain_graph=True)
        for gradient in (torch._neg_view(torch.ones_like(output)), -torch.ones_like(output))
    )
    torch.testing.assert_close(negative, resolved)
    with pytest.raises(EngineError, match=r"got a TwoTensor without memory of its own.*engine='reference'"):
        operators.multiply(TwoTensor(x[0], x[0]), torch.randn(2, 4), None, transpose=True)


def test_gradients_asked_for_many_at_a_time_are_refused_by_name_where_the_kernel_has_no_such_form() -> None:
    x, tags = torch.randn(5, 2, 3, requires_grad=True), torch.zeros(5, 2, dtype=torch.int64)
    for result in (LSTM(3, 8)(x)[0], CRF(3).nll(x, tags)):
        many = torch.stack([torch.ones_like(result), torch.zeros_like(result)])
        with pytest.raises(EngineError, match="engine='reference'"):
            torch.autograd.grad(result, x, many, is_grads_batched=True)


def test_a_graph_that_was_exported_says_what_it_lacks_where_there_is_no_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(5, 3, 4)
    graph = torch.export.export(Model(None), (x,)).module()
    monkeypatch.setattr(library, "_LIBRARY", None)
    monkeypatch.setattr(library, "_STATUS", NativeStatus(available=False, reason="it was not built: do; else"))
    with pytest.raises(EngineError, match=r"where it was not built: do, wanted .*engine='reference'"):
        graph(x)


def test_tensors_without_memory_are_traced() -> None:
    """Under a fake mode, and by make_fx, the kernel is an operator, too: it must not read what is not there."""
    with FakeTensorMode():
        model = Model(CHAINS["all"])
        output = model(torch.randn(5, 3, 4))
        output.sum().backward()
        assert output.shape == (5, 3, 3)
        assert model.layer.weight_hh_l0.grad is not None
    real, x = Model(None), torch.randn(5, 3, 4)
    graph = make_fx(real)(x)
    other = torch.randn(5, 3, 4)
    torch.testing.assert_close(graph(other), real(other))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("part", ["nll", "prefix_log_partitions"])
def test_a_compiled_crf_is_part_of_the_graph(part: str, dtype: torch.dtype) -> None:
    crf = CRF(3, constraints=Constraints(~torch.eye(3, dtype=torch.bool)), constrain="always")
    crf = crf.double() if dtype == torch.float64 else crf
    emissions, tags, lengths = torch.randn(5, 4, 3).to(dtype).requires_grad_(), PATH, torch.tensor([5, 3, 1, 2])

    def loss(emissions: Tensor, tags: Tensor, lengths: Tensor | None) -> Tensor:
        if part == "nll":
            return crf.nll(emissions, tags, lengths, weights=torch.linspace(0.5, 2, 20).view(5, 4))
        return crf.prefix_log_partitions(emissions, lengths)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for given in (lengths, lengths.flip(0), None):
        ways = []
        for function in (loss, compiled):
            found = function(emissions, tags, given)
            ways.append((found, *torch.autograd.grad(found.square().sum(), [emissions, *crf.parameters()])))
        torch.testing.assert_close(*ways)


def test_a_compiled_crf_refuses_what_it_may_not_read() -> None:
    crf, emissions, tags, lengths = CRF(3), torch.randn(5, 4, 3), PATH, torch.tensor([5, 3, 1, 2])
    compiled = torch.compile(crf.nll, fullgraph=True, backend="aot_eager")
    for beyond in (0, 6):
        with pytest.raises(LengthError, match=f"got .5, 3, 1, {beyond}., wanted 4 lengths from 1 to 5"):
            compiled(emissions, tags, lengths.index_fill(0, torch.tensor(3), beyond))
    for strange in (-1, 3):
        with pytest.raises(ArgumentError, match=r"tags from 0 to 2\. Padding belongs beyond the lengths"):
            compiled(emissions, tags.index_fill(0, torch.tensor(0), strange), lengths)
    padded = torch.where(torch.arange(5)[:, None] < lengths, tags, -100)
    torch.testing.assert_close(compiled(emissions, padded, lengths), crf.nll(emissions, padded, lengths))


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The programs and the operands of all passes from now on."""
    seen: list[tuple[Any, Any]] = []
    forward = cpu.run_forward

    def watch(program: Any, row: Any) -> Any:
        seen.append((program, row))
        return forward(program, row)

    monkeypatch.setattr(cpu, "run_forward", watch)
    return seen


def captured(layer: nn.Module, x: Tensor, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Tensor | None]]:
    """The program and the operands of a layer's pass."""
    seen = watched(monkeypatch)
    layer(x)
    monkeypatch.undo()
    program, row = seen[0]
    learnt = {id(parameter) for parameter in layer.parameters()}
    return program, [None if t is None else t.detach().requires_grad_(id(t) in learnt) for t in row]


@pytest.mark.parametrize("chain", CHAINS)
def test_the_recurrence_passes_torchs_own_check_of_operators(chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = LSTM(4, 8, transforms=CHAINS[chain])
    program, row = captured(layer, torch.randn(5, 3, 4), monkeypatch)
    tensors = [tensor for tensor in row if tensor is not None]
    numbers = ([tensor is not None for tensor in row], *program.encoded())
    opcheck(torch.ops.statewise.recurrence.default, (tensors, *numbers))
    bare = [tensor.detach() for tensor in tensors]
    states, final, memory, kept = torch.ops.statewise.recurrence(bare, *numbers)
    grads = [torch.randn_like(each) for each in (states, final, memory)]
    given = (bare, states, kept, grads, [tensor.requires_grad for tensor in tensors], *numbers)
    opcheck(torch.ops.statewise.recurrence_backward.default, given)


def test_an_operator_that_is_called_with_what_does_not_fit_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a saved program may do that was changed: what the kernel trusts is checked."""
    program, row = captured(LSTM(4, 8, transforms=CHAINS["all"]), torch.randn(5, 3, 4), monkeypatch)
    tensors = [tensor.detach() for tensor in row if tensor is not None]
    present = [tensor is not None for tensor in row]
    integers, numbers, _ = program.encoded()
    forward, backward = torch.ops.statewise.recurrence, torch.ops.statewise.recurrence_backward
    states, final, memory, kept = forward(tensors, present, integers, numbers, [0])
    grads, needed = [torch.randn_like(each) for each in (states, final, memory)], [True] * (len(tensors) - 6)
    needed += [False] * 6  # what was drawn has none

    def changed(given: Sequence[Tensor]) -> Iterator[list[Tensor]]:
        for place, tensor in enumerate(given):
            for other in (tensor[:-1], tensor[..., :-1], tensor.double()):
                yield [*given[:place], other, *given[place + 1 :]]

    refused = (ArgumentError, DtypeError)
    for sizes in ([3] * 6, [3] * 4, [1, 2, 3, 3, 3, 3], [16, -1], [15]):
        with pytest.raises(LengthError, match="batch_sizes"):
            forward(tensors, present, integers, numbers, [0, *sizes])
    for other in changed(tensors):
        with pytest.raises(refused, match="statewise::recurrence"):
            forward(other, present, integers, numbers, [0])
        with pytest.raises(refused, match="statewise::recurrence"):
            backward(other, states, kept, grads, needed, present, integers, numbers, [0])
    for one, *rest in changed([states, *kept]):
        with pytest.raises(refused, match="statewise::recurrence"):
            backward(tensors, one, rest, grads, needed, present, integers, numbers, [0])
    for other in changed(grads):
        with pytest.raises(refused, match="statewise::recurrence"):
            backward(tensors, states, kept, other, needed, present, integers, numbers, [0])


def test_the_other_operators_pass_it_too() -> None:
    ops, checked = torch.ops.statewise, {"recurrence", "recurrence_backward"}

    def check(operator: Any, *given: Any) -> None:
        opcheck(operator.default, given)
        checked.add(operator.default.name().partition("::")[2].partition(".")[0])

    emissions, matrix, edge, lengths = torch.randn(4, 2, 3), torch.randn(3, 3), torch.randn(3), torch.tensor([4, 2])
    for every in (True, False):
        check(ops.crf_forward, emissions, matrix, edge, edge, lengths, every)
        found, *made = operators.crf_forward(emissions, matrix, edge, edge, lengths, every)
        check(ops.crf_backward, torch.randn_like(found), matrix, edge, edge, lengths, every, *made)
    tags = torch.randint(3, (4, 2))
    check(ops.crf_path_score, emissions, matrix, edge, edge, tags, lengths, None, None)
    check(ops.crf_path_score_backward, torch.randn(2), matrix, edge, edge, tags, lengths, None, None)
    check(ops.draw, torch.tensor(7), [0, 1], [3, 4], 1, 0.5, 1.0, 0, [0.0])
    check(ops.draw_root, torch.empty(()))
    registered = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("statewise::")}
    assert registered == {f"statewise::{name}" for name in checked}


def test_a_pass_without_gradients_keeps_nothing_for_a_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = LSTM(4, 8), torch.randn(50, 3, 4)
    seen = watched(monkeypatch)
    with torch.no_grad():
        one = layer(x)[0]
    two = layer(x)[0]
    assert [program.keep for program, _ in seen] == [False, True]
    torch.testing.assert_close(one, two)


def test_a_loss_that_is_kept_keeps_no_draws_alive() -> None:
    layer, x = LSTM(4, 8, transforms=Noise("gaussian", 0.5)), torch.randn(5, 3, 4)
    draws = layer.draw(x)
    first = weakref.ref(draws.tensors[0, 0, 0][0])
    loss = layer(x, draws=draws)[0].sum()
    del draws
    loss.backward()
    gc.collect()
    assert first() is None
    assert loss.grad_fn is not None


def test_a_checkpoint_keeps_nothing_but_its_input() -> None:
    layer, x = LSTM(4, 8), torch.randn(20, 3, 4, requires_grad=True)
    saved: list[Tensor] = []

    def save(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        output = checkpoint(lambda y: layer(y)[0], x, use_reentrant=False)
    assert output is not None
    term = 20 * 3 * 4 * 8
    assert not any(each.numel() == term for each in saved)
    (found,) = torch.autograd.grad(output.square().sum(), x)
    (wanted,) = torch.autograd.grad(layer(x)[0].square().sum(), x)
    torch.testing.assert_close(found, wanted)
