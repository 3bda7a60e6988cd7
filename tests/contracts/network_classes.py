"""What every class of networks promises: no two members are further apart than its constants say, on any input."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from contracts.passes import few_examples, seeds, some_examples
from statewise import MGU, RNN
from statewise.bounds.grid import Ledger
from statewise.bounds.layer_class import LayerClass, Start
from statewise.bounds.logs import Floats
from statewise.bounds.matrices import GATES, LayerMatrices, NetworkMatrices
from statewise.bounds.measured_class import network_blocks, network_class
from statewise.bounds.network_class import EmbeddingClass, NetworkClass
from statewise.bounds.profile import Profile
from statewise.errors import ArgumentError, AssumptionError, NonFiniteError

Source = np.random.Generator
SHAPES = ("gaussian", "rank 1", "orthogonal", "identity")
PARTNERS = ("nearby", "one matrix", "independent", "shrunk")


@dataclass(frozen=True, kw_only=True)
class Form:
    """The architecture of a pair of networks."""

    kind: str
    steps: int = 5
    features: int = 2
    hidden: int = 3
    classes: int = 2
    layers: int = 1
    directions: int = 1
    bias: bool = False
    start: bool = False
    tokens: int = 0
    readout: str = "h"
    activation: str = "tanh"
    size: float = 1.0


@st.composite
def forms(draw: st.DrawFn, /, **fixed: Any) -> Form:
    """Architectures of all sorts; what is named in ``fixed`` stays as it is."""
    memory = fixed["kind"] == "lstm"
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "steps": st.integers(1, 30),
        "features": st.integers(1, 6),
        "hidden": st.integers(1, 6),
        "classes": st.integers(2, 5),
        "layers": st.integers(1, 2),
        "directions": st.integers(1, 2),
        "bias": st.booleans(),
        "start": st.booleans(),
        "tokens": st.sampled_from([0, 0, 4]),
        "readout": st.sampled_from(["h", "c", "hc"] if memory else ["h"]),
        "activation": st.sampled_from(["tanh", "relu", "identity"] if fixed["kind"] == "rnn" else ["tanh"]),
        "size": st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    }
    return Form(**{name: draw(kind) for name, kind in kinds.items() if name not in fixed}, **fixed)


def random_matrix(source: Source, rows: int, columns: int, size: float) -> Floats:
    """One of several shapes of matrices, most of them near what makes a bound tight."""
    shape = source.choice(SHAPES)
    gaussian = source.standard_normal((rows, columns))
    if shape == "rank 1":
        return size * np.outer(gaussian[:, 0], gaussian[0]) / math.sqrt(max(rows, columns))
    if shape == "orthogonal":
        left, _, right = np.linalg.svd(gaussian, full_matrices=False)
        return size * np.asarray(left @ right, dtype=np.float64)
    return size * (np.eye(rows, columns) if shape == "identity" else gaussian / math.sqrt(columns))


def random_layer(source: Source, form: Form, features: int) -> LayerMatrices:
    gates, hidden = GATES[form.kind], form.hidden
    bias = {gate: form.size * source.standard_normal(hidden) + source.choice([-2, 0, 2]) for gate in gates}
    return LayerMatrices(
        kind=form.kind,
        inputs={gate: random_matrix(source, hidden, features, form.size) for gate in gates},
        states={gate: random_matrix(source, hidden, hidden, form.size) for gate in gates},
        bias=bias if form.bias else None,
        state_bias=source.standard_normal(hidden) if form.bias and form.kind == "gru" else None,
        activation=form.activation,
        start=source.choice([0.3, 2.0]) * source.standard_normal(hidden) if form.start else None,
    )


def random_network(source: Source, form: Form) -> NetworkMatrices:
    """Any network of the architecture."""
    widths = [form.features] + [form.hidden * form.directions] * (form.layers - 1)
    width = form.hidden * form.directions * len(form.readout)
    return NetworkMatrices(
        layers=tuple(tuple(random_layer(source, form, each) for _ in range(form.directions)) for each in widths),
        head=random_matrix(source, form.classes, width, 1.0),
        head_bias=source.standard_normal(form.classes) if form.bias else None,
        embedding=source.standard_normal((form.tokens, form.features)) if form.tokens else None,
        readout=form.readout,
    )


def partner(source: Source, form: Form, network: NetworkMatrices) -> NetworkMatrices:
    """Another member of the class, near or far."""
    kind, other = source.choice(PARTNERS), random_network(source, form)
    if kind == "independent":
        return other
    share, only = 10 ** source.uniform(-6, -1), kind == "one matrix"
    chosen, counter = source.integers(20), iter(range(1000))

    def mixed(here: Floats, there: Floats) -> Floats:
        if kind == "shrunk":
            return here * (1 - share)
        return here if only and next(counter) != chosen else here + share * there

    found: NetworkMatrices = _between(network, other, mixed)
    return found


def _between(here: Any, there: Any, mixed: Any) -> Any:
    """The same structure with each array made of two."""
    if isinstance(here, np.ndarray):
        return mixed(here, there)
    if isinstance(here, Mapping):
        return {key: _between(value, there[key], mixed) for key, value in here.items()}
    if isinstance(here, tuple):
        return tuple(_between(one, other, mixed) for one, other in zip(here, there, strict=True))
    if dataclasses.is_dataclass(here) and not isinstance(here, type):
        fields = [each.name for each in dataclasses.fields(here)]
        return type(here)(**{name: _between(getattr(here, name), getattr(there, name), mixed) for name in fields})
    return here


def as_module(network: NetworkMatrices) -> nn.Module:
    """The layers as a module of torch.nn, or ours where torch has none, in double precision."""
    first, directions = network.layers[0][0], len(network.layers[0])
    kind: Any = {"rnn": nn.RNN, "mgu": MGU, "gru": nn.GRU, "lstm": nn.LSTM}[first.kind]
    options = {"nonlinearity": first.activation} if first.kind == "rnn" else {}
    if first.activation == "identity":
        kind = RNN
    module: nn.Module = kind(
        first.features,
        first.hidden,
        len(network.layers),
        bias=first.bias is not None,
        bidirectional=directions == 2,
        dtype=torch.float64,
        **options,
    )
    for place, pair in enumerate(network.layers):
        for side, layer in enumerate(pair):
            _fill(module, layer, f"l{place}{'_reverse' * side}")
    return module


def _fill(module: nn.Module, layer: LayerMatrices, name: str) -> None:
    gates = GATES[layer.kind]
    values = {
        f"weight_ih_{name}": np.concatenate([layer.inputs[gate] for gate in gates]),
        f"weight_hh_{name}": np.concatenate([layer.states[gate] for gate in gates]),
    }
    if layer.bias is not None:
        # Torch has two biases; only of a GRU's candidate are they not simply added.
        beside = {gate: layer.bias[gate] / 3 for gate in gates}
        if layer.state_bias is not None:
            beside["candidate"] = layer.state_bias
        shift = {gate: 0 if gate == "candidate" and layer.kind == "gru" else beside[gate] for gate in gates}
        values[f"bias_ih_{name}"] = np.concatenate([layer.bias[gate] - shift[gate] for gate in gates])
        values[f"bias_hh_{name}"] = np.concatenate([beside[gate] for gate in gates])
    with torch.no_grad():
        for key, value in values.items():
            module.get_parameter(key).copy_(torch.from_numpy(value))


def last_states(network: NetworkMatrices, x: Tensor) -> Tensor:
    """What the head reads, (sequences, width), as torch computes it; x are tokens where there is an embedding."""
    module, layers = as_module(network), [layer for pair in network.layers for layer in pair]
    if network.embedding is not None:
        x = torch.from_numpy(network.embedding)[x]
    hx: Any = None
    if layers[0].start is not None:
        starts = np.stack([layer.start for layer in layers if layer.start is not None])
        hx = torch.from_numpy(starts)[:, None].expand(-1, x.shape[1], -1).contiguous()
    if layers[0].kind == "lstm":
        empty = torch.zeros(len(layers), x.shape[1], layers[0].hidden, dtype=torch.float64)
        hx = (empty if hx is None else hx, empty)
    with torch.no_grad():
        final = module(x, hx)[1]
    finals = final if isinstance(final, tuple) else (final,)
    read = {"h": finals[:1], "c": finals[1:], "hc": finals}[network.readout]
    directions = len(network.layers[-1])
    return torch.cat([part for each in read for part in each[-directions:]], dim=1)


def logits(network: NetworkMatrices, x: Tensor) -> Tensor:
    head = torch.from_numpy(network.folded_head)
    states = last_states(network, x)
    if network.head_bias is not None:
        states = torch.cat([states, torch.ones(len(states), 1, dtype=torch.float64)], dim=1)
    return states @ head.T


def random_inputs(source: Source, form: Form, bound: float, *, sequences: int = 6) -> Tensor:
    """On the sphere, the first half the same at each step; or tokens. Of any length up to that of the form."""
    steps = int(source.choice([form.steps, int(source.integers(1, form.steps + 1))]))
    if form.tokens:
        return torch.from_numpy(source.integers(form.tokens, size=(steps, sequences)))
    x = torch.from_numpy(source.standard_normal((steps, sequences, form.features)))
    x[:, : sequences // 2] = x[:1, : sequences // 2]
    return bound * torch.nn.functional.normalize(x, dim=2)


@dataclass(frozen=True, kw_only=True)
class Joint(Ledger):
    """The largest of each constant over several networks, exactly."""

    seen: dict[str, float] = field(default_factory=dict)

    def up(self, name: str, value: float) -> float:
        self.seen[name] = max(value, self.seen.get(name, value))
        return self.seen[name]

    signed = up


def common_class(form: Form, bound: float, *networks: NetworkMatrices, **options: Any) -> NetworkClass:
    """The smallest class that holds all networks."""
    ledger = Joint()
    bound = math.inf if form.tokens else bound
    for network in (*networks, networks[0]):
        found = network_class(network, steps=form.steps, input_bound=bound, ledger=ledger, **options)
    return found


def distances(here: NetworkMatrices, there: NetworkMatrices) -> dict[str, float]:
    """How far apart the matrices of two networks are, each in the norm of its block."""
    first, second = network_blocks(here), network_blocks(there)
    return {
        name: float(np.linalg.norm(matrix - second[name], axis=1).max())
        if name == "embedding"
        else float(np.linalg.norm(matrix - second[name], 2))
        for name, matrix in first.items()
    }


def worst_ratio(form: Form, seed: int, *, paper: bool = False) -> float:
    """The largest of left over right side of ``‖y - y'‖ <= sum_k L_k ‖A_k - A'_k‖`` for a random pair of networks."""
    source = np.random.default_rng(seed)
    here = random_network(source, form)
    there = partner(source, form, here)
    bound = float(source.choice([0.3, 1.0, 3.0]))
    found = common_class(form, bound, here, there)
    profile, x = found.paper() if paper else found.profile(), random_inputs(source, form, bound)
    apart = distances(here, there)
    assert set(apart) == {block.name for block in profile.blocks}
    right = sum(math.exp(min(700, block.log_lipschitz)) * apart[block.name] for block in profile.blocks)
    left = float((logits(here, x) - logits(there, x)).norm(dim=1).max())
    return left / right if right else math.inf * left if left else 0.0


def lipschitz(profile: Profile) -> dict[str, float]:
    """The constants by name."""
    return {block.name: math.exp(block.log_lipschitz) for block in profile.blocks}


class NetworkClassContract:
    """Inherit it, and say which cell."""

    kind: ClassVar[str]
    layer: ClassVar[type[LayerClass]]
    #: How far the table of tokens and the start, both at most 1 long, move the state in the first step; norms are 1/2.
    first_step: ClassVar[dict[str, float]]

    def test_one_step_with_a_pencil(self) -> None:
        """Nothing is known of gates; the embedding moves the input, the start the state before."""
        plain = self.network(steps=1)
        start = dataclasses.replace(plain.directions[0][0], start=Start(norm=1.0, learned=True))
        table = EmbeddingClass(tokens=3, features=2, bound=1.0)
        found = lipschitz(dataclasses.replace(plain, layers=(start,), embedding=table, head_norm=1.0).profile())
        assert {name: found[name] for name in self.first_step} == pytest.approx(self.first_step, rel=1e-12)

    def network(self, *, norm: float = 0.5, steps: int = 10, input_bound: float = 1.0) -> NetworkClass:
        """A class of one layer with the same norm everywhere."""
        norms = {f"{side}{'' if gate == 'state' else ' ' + gate}": norm for gate in GATES[self.kind] for side in "WU"}
        layer = self.layer(hidden=4, features=2, norms=norms)
        return NetworkClass(layers=(layer,), head_norm=2.0, classes=3, steps=steps, input_bound=input_bound)

    @some_examples
    @given(data=st.data(), seed=seeds)
    def test_no_two_members_are_further_apart_than_it_says(self, data: st.DataObject, seed: int) -> None:
        """Stacked or not, in one direction or two, with biases, starts and embeddings, after any number of steps."""
        assert worst_ratio(data.draw(forms(kind=self.kind)), seed) <= 1 + 1e-9

    @few_examples
    @given(data=st.data(), seed=seeds)
    def test_the_same_of_the_formulas(self, data: st.DataObject, seed: int) -> None:
        plain = {"layers": 1, "directions": 1, "start": False, "tokens": 0, "readout": "h"}
        assert worst_ratio(data.draw(forms(kind=self.kind, **plain)), seed, paper=True) <= 1 + 1e-9

    @some_examples
    @given(data=st.data(), seed=seeds)
    def test_no_state_and_no_output_is_longer_than_it_says(self, data: st.DataObject, seed: int) -> None:
        form, source = data.draw(forms(kind=self.kind)), np.random.default_rng(seed)
        network = random_network(source, form)
        profile, x = common_class(form, 1.0, network).profile(), random_inputs(source, form, 1.0)
        for values, log_bound in (
            (last_states(network, x), profile.log_hidden),
            (logits(network, x), profile.log_output),
        ):
            assert float(values.norm(dim=1).max()) <= math.exp(log_bound) * (1 + 1e-9)

    @few_examples
    @given(data=st.data(), seed=seeds)
    def test_it_counts_every_number_of_the_network_once(self, data: st.DataObject, seed: int) -> None:
        """Torch has two biases for each gate, which count as one where they are simply added."""
        form = data.draw(forms(kind=self.kind))
        network = random_network(np.random.default_rng(seed), form)
        parameters = sum(value.numel() for value in as_module(network).parameters())
        if form.bias:
            twice = len(GATES[self.kind]) - (self.kind == "gru")
            parameters -= form.layers * form.directions * twice * form.hidden
        parameters += form.layers * form.directions * form.hidden * form.start + network.folded_head.size
        parameters += form.tokens * form.features
        assert common_class(form, 1.0, network).profile().parameters == parameters

    @few_examples
    @given(data=st.data(), seed=seeds)
    def test_longer_sequences_and_larger_inputs_or_norms_move_the_output_no_less(
        self, data: st.DataObject, seed: int
    ) -> None:
        form, source = data.draw(forms(kind=self.kind)), np.random.default_rng(seed)
        here, there = random_network(source, form), random_network(source, form)
        small = common_class(form, 1.0, here)
        least = small.profile()
        for larger in (
            dataclasses.replace(small, steps=form.steps + 1),
            dataclasses.replace(small, head_norm=1.5 * small.head_norm),
            common_class(form, 1.0, here, there),
            common_class(form, 2.0, here),
        ):
            for before, after in zip(least.blocks, larger.profile().blocks, strict=True):
                assert after.log_lipschitz >= before.log_lipschitz - 1e-9
                assert after.bound >= before.bound

    def test_formulas_are_never_below_the_recursion(self) -> None:
        for steps, norm, bound in ((1, 0.5, 1.0), (7, 0.1, 3.0), (30, 2.0, 0.2)):
            net = self.network(norm=norm, steps=steps, input_bound=bound)
            tight, loose = net.profile(), net.paper()
            for one, other in zip(tight.blocks, loose.blocks, strict=True):
                assert one.name == other.name
                assert one.log_lipschitz <= other.log_lipschitz + 1e-12
            assert tight.log_hidden <= loose.log_hidden + 1e-12

    def test_a_growth_of_3_over_5000_steps_is_finite(self) -> None:
        profile = self.network(norm=3.0, steps=5000).profile()
        assert all(math.isfinite(block.log_lipschitz) for block in profile.blocks)
        assert max(block.log_lipschitz for block in profile.blocks) > 5000
        assert math.isfinite(profile.cover_nats(0.0))

    def test_matrices_of_norm_0_are_legal(self) -> None:
        profile = self.network(norm=0.0).profile()
        assert all(block.log_lipschitz < math.inf for block in profile.blocks)
        assert profile.cover_nats(0.0) >= 0

    def test_it_refuses_what_it_cannot_bound(self) -> None:
        network = random_network(np.random.default_rng(0), Form(kind=self.kind))
        with pytest.raises(AssumptionError, match="input_bound"):
            network_class(network, steps=3, input_bound=math.inf, ledger=Ledger())
        with pytest.raises(ArgumentError, match="steps"):
            network_class(network, steps=0, input_bound=1.0, ledger=Ledger())
        with pytest.raises(ArgumentError, match="norms"):
            self.layer(hidden=3, features=2, norms={"U": 1.0})
        with pytest.raises(NonFiniteError):
            dataclasses.replace(network, head=network.head * math.nan)
        stacked = random_network(np.random.default_rng(0), Form(kind=self.kind, layers=2))
        with pytest.raises(AssumptionError, match="one layer"):
            network_class(stacked, steps=3, input_bound=1.0, ledger=Ledger()).paper()
