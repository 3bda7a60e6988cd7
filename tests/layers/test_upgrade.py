"""``upgrade`` exchanges the recurrent layers of a torch model in a copy, and keeps all else."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

import statewise
from statewise import GRU, LSTM, RNN, Centroids, Noise, RecurrentLayer, Zoneout
from statewise.errors import ArgumentError, DtypeError
from statewise.transforms import Transform
from support import tolerance

INPUT, HIDDEN, STEPS, BATCH = 3, 5, 4, 2
KINDS = [(nn.RNN, RNN), (nn.GRU, GRU), (nn.LSTM, LSTM)]
EVERY_KIND = pytest.mark.parametrize(("torchs", "ours"), KINDS, ids=["RNN", "GRU", "LSTM"])


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(STEPS, BATCH, INPUT, generator=generator)


def upgrade(model: nn.Module, **options: Any) -> Any:
    """The library's own; its result may be looked into without telling mypy what is there."""
    return statewise.upgrade(model, **options)


class Encoder(nn.Module):
    """A model with recurrent layers in all sorts of containers, one of them used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.LSTM(INPUT, HIDDEN), nn.Sequential(OrderedDict(inner=nn.GRU(HIDDEN, HIDDEN)))])
        self.by_name = nn.ModuleDict({"elman": nn.RNN(HIDDEN, HIDDEN, nonlinearity="relu", bias=False)})
        self.again = self.by_name["elman"]
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.layers[0], self.layers[1], self.by_name["elman"], self.again):
            x = layer(x)[0]
        logits: Tensor = self.head(x)
        return logits


def outcome(model: nn.Module, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """What a model gives, and the gradients of all its parameters."""
    model.zero_grad()
    output = model(x)
    output = output[0] if isinstance(output, tuple) else output
    output.square().sum().backward()
    return output.detach(), {
        name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None
    }


def assert_computes_the_same(new: nn.Module, old: nn.Module, x: Tensor) -> None:
    actual, expected = outcome(new, x), outcome(old, x)
    assert actual[1].keys() == expected[1].keys()
    torch.testing.assert_close(actual, expected, **tolerance(x.dtype))


@EVERY_KIND
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 3, "bidirectional": True},
        {"bias": False},
        {"batch_first": True},
        {"dtype": torch.float64},
    ],
    ids=str,
)
def test_a_layer_becomes_ours_and_computes_the_same(torchs: Any, ours: Any, options: dict[str, Any], x: Tensor) -> None:
    old = torchs(INPUT, HIDDEN, **options)
    new = upgrade(old)
    assert type(new) is ours
    assert_computes_the_same(new, old, x.to(old.weight_ih_l0.dtype))


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_the_nonlinearity_is_kept(nonlinearity: Any, x: Tensor) -> None:
    old = nn.RNN(INPUT, HIDDEN, nonlinearity=nonlinearity)
    assert_computes_the_same(upgrade(old), old, x)


@EVERY_KIND
def test_all_settings_are_kept(torchs: Any, ours: Any) -> None:
    old = torchs(INPUT, HIDDEN, 2, bias=False, batch_first=True, dropout=0.25, bidirectional=True).eval()
    new = upgrade(old, engine="reference")
    for name in ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
        assert getattr(new, name) == getattr(old, name), name
    assert new.engine == "reference"
    assert not new.training


def test_layers_in_all_containers_are_exchanged_and_nothing_else(x: Tensor) -> None:
    old = Encoder()
    new = upgrade(old)
    kinds = {path: type(module) for path, module in new.named_modules() if isinstance(module, RecurrentLayer)}
    assert kinds == {"layers.0": LSTM, "layers.1.inner": GRU, "by_name.elman": RNN}
    assert not any(isinstance(module, nn.RNNBase) for module in new.modules())
    assert type(new) is Encoder
    assert_computes_the_same(new, old, x)


def test_a_layer_used_twice_stays_one_layer() -> None:
    new = upgrade(Encoder(), transforms=Centroids(3))
    assert new.again is new.by_name["elman"]
    assert sum("centroids" in name for name, _ in new.named_parameters()) == 3


def test_a_container_used_twice_is_exchanged_once(x: Tensor) -> None:
    shared = nn.Sequential(nn.GRU(INPUT, INPUT))
    model = nn.ModuleDict({"one": shared, "other": shared})
    new = upgrade(model)
    assert new["one"] is new["other"]
    assert type(new["one"][0]) is GRU


def test_tied_weights_stay_tied(x: Tensor) -> None:
    first, second = nn.LSTM(INPUT, INPUT), nn.LSTM(INPUT, INPUT)
    second.weight_hh_l0 = first.weight_hh_l0
    new = upgrade(nn.ModuleList([first, second]))
    assert new[0].weight_hh_l0 is new[1].weight_hh_l0
    assert len(list(new.parameters())) == 7
    output = new[1](new[0](x)[0])[0]
    output.square().sum().backward()
    expected = second(first(x)[0])[0]
    expected.square().sum().backward()
    torch.testing.assert_close(new[0].weight_hh_l0.grad, first.weight_hh_l0.grad, **tolerance(x.dtype))


def test_weights_tied_to_something_else_stay_tied() -> None:
    model = nn.ModuleDict({"rnn": nn.RNN(INPUT, HIDDEN), "head": nn.Linear(HIDDEN, HIDDEN)})
    model["head"].weight = model["rnn"].weight_hh_l0
    new = upgrade(model)
    assert new["head"].weight is new["rnn"].weight_hh_l0


def test_the_model_itself_is_not_touched(x: Tensor) -> None:
    old = Encoder()
    kinds = {path: type(module) for path, module in old.named_modules()}
    before = {name: value.clone() for name, value in old.state_dict().items()}
    expected = old(x).detach()
    new = upgrade(old, transforms=Centroids(3))
    new(x).sum().backward()
    torch.optim.SGD(new.parameters(), lr=1.0).step()
    assert {path: type(module) for path, module in old.named_modules()} == kinds
    torch.testing.assert_close(dict(old.state_dict()), before, rtol=0, atol=0)
    torch.testing.assert_close(old(x).detach(), expected, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in old.parameters())


def test_state_dicts_keep_their_keys_and_go_both_ways(x: Tensor) -> None:
    old = Encoder()
    new = upgrade(old)
    assert list(new.state_dict()) == list(old.state_dict())
    other = Encoder()
    other.load_state_dict(new.state_dict())
    new.load_state_dict(Encoder().state_dict())
    torch.testing.assert_close(other(x), old(x))


def test_what_transforms_learn_is_all_that_is_added() -> None:
    old = Encoder()
    new = upgrade(old, transforms=[Zoneout(0.1), Centroids(3)])
    assert {key.rpartition(".")[2] for key in new.state_dict().keys() - old.state_dict().keys()} == {"centroids_l0"}


@EVERY_KIND
def test_frozen_weights_stay_frozen(torchs: Any, ours: Any) -> None:
    old = torchs(INPUT, HIDDEN)
    old.weight_ih_l0.requires_grad_(False)
    new = upgrade(old, transforms=Centroids(3))
    frozen = {name for name, parameter in new.named_parameters() if not parameter.requires_grad}
    assert frozen == {"weight_ih_l0"}


def test_each_module_keeps_its_own_mode() -> None:
    old = nn.Sequential(nn.LSTM(INPUT, HIDDEN).eval(), nn.GRU(INPUT, HIDDEN))
    new = upgrade(old)
    assert (new.training, new[0].training, new[1].training) == (True, False, True)


def test_every_layer_gets_the_transforms(x: Tensor) -> None:
    transforms: list[Transform] = [Noise("gaussian", 0.5, placement="outputs"), Zoneout(0.1)]
    new = upgrade(Encoder(), transforms=transforms)
    for module in new.modules():
        if isinstance(module, RecurrentLayer):
            assert module.transforms == tuple(transforms)
    assert not torch.equal(new(x), new(x))
    assert torch.equal(new.eval()(x), new(x))


def test_transforms_may_be_given_as_an_iterator() -> None:
    new = upgrade(Encoder(), transforms=iter([Zoneout(0.1), Centroids(3)]))
    kept = {module.transforms for module in new.modules() if isinstance(module, RecurrentLayer)}
    assert kept == {(Zoneout(0.1), Centroids(3))}


def test_dropout_between_layers_acts_in_training_only(x: Tensor) -> None:
    new = upgrade(nn.GRU(INPUT, HIDDEN, 2, dropout=0.5))
    assert not torch.equal(new(x)[0], new(x)[0])
    old = nn.GRU(INPUT, HIDDEN, 2, dropout=0.5).eval()
    torch.testing.assert_close(upgrade(old)(x)[0], old(x)[0], **tolerance(x.dtype))


def test_without_learnt_transforms_no_random_number_is_drawn() -> None:
    old, before = Encoder(), torch.get_rng_state()
    upgrade(old, transforms=Noise("gaussian", 0.5, placement="outputs"))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_decides_what_transforms_learn_from() -> None:
    old, before = nn.LSTM(INPUT, HIDDEN, bidirectional=True), torch.get_rng_state()
    one, same, other = (
        upgrade(old, transforms=Centroids(3), generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(one.centroids_l0, same.centroids_l0)
    assert not torch.equal(one.centroids_l0, other.centroids_l0)
    assert not torch.equal(one.centroids_l0, one.centroids_l0_reverse)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_transforms_learn_is_on_the_layers_device_and_in_its_dtype() -> None:
    new = upgrade(nn.LSTM(INPUT, HIDDEN, dtype=torch.float64), transforms=Centroids(3))
    assert (new.centroids_l0.dtype, new.centroids_l0.device) == (torch.float64, new.weight_hh_l0.device)
    assert float(new.centroids_l0.detach().abs().max()) <= 0.5
    assert upgrade(nn.LSTM(INPUT, HIDDEN, device="meta"), transforms=Centroids(3)).centroids_l0.is_meta


def test_hooks_go_with_the_layer(x: Tensor) -> None:
    called = []

    def before(module: nn.Module, arguments: Any) -> None:
        called.append(("before", type(module)))

    def after(module: nn.Module, arguments: Any, keywords: Any, result: Any) -> Any:
        called.append(("after", type(module)))
        return result[0] * 2, result[1]

    def back(module: nn.Module, inner: Any, outer: Any) -> None:
        called.append(("back", type(module)))

    old = nn.GRU(INPUT, HIDDEN)
    old.register_forward_pre_hook(before)
    old.register_forward_hook(after, with_kwargs=True)
    old.register_full_backward_hook(back)
    new = upgrade(old)
    new(x.requires_grad_())[0].sum().backward()
    assert called == [("before", GRU), ("after", GRU), ("back", GRU)]
    assert_computes_the_same(new, old, x)


def test_the_copy_can_be_upgraded_models_copy_and_train(x: Tensor) -> None:
    new = copy.deepcopy(upgrade(Encoder(), transforms=Centroids(3)))
    optimiser = torch.optim.Adam(new.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        loss = (new(x) - 1).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_a_bidirectional_model_with_packed_sequences_computes_the_same(x: Tensor) -> None:
    old = nn.LSTM(INPUT, HIDDEN, bidirectional=True)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 4]), enforce_sorted=False)
    (expected, (h, c)), (found, (new_h, new_c)) = old(packed), upgrade(old)(packed)
    torch.testing.assert_close((found.data, new_h, new_c), (expected.data, h, c), **tolerance(x.dtype))


def nested(layer: nn.Module) -> nn.Module:
    return nn.ModuleDict({"head": nn.Linear(2, 2), "body": nn.Sequential(nn.Identity(), layer)})


class Subclass(nn.LSTM):
    """A layer that does something of its own."""

    def forward(self, *arguments: Any, **options: Any) -> Any:
        output, state = super().forward(*arguments, **options)
        return output + 1, state


@contextmanager
def as_users_have_it() -> Iterator[None]:
    """Without the run-time check of annotations."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class TestRefusals:
    """What cannot be exchanged faithfully is refused, with the path of the module."""

    def test_projected_states(self) -> None:
        with pytest.raises(ArgumentError, match=r"upgrade: body\.1: got proj_size=2, wanted proj_size=0\..*Linear"):
            upgrade(nested(nn.LSTM(INPUT, HIDDEN, proj_size=2)))

    def test_projected_states_of_the_model_itself(self) -> None:
        with pytest.raises(ArgumentError, match="upgrade: the model itself: got proj_size=2"):
            upgrade(nn.LSTM(INPUT, HIDDEN, proj_size=2))

    def test_parametrized_weights(self) -> None:
        layer = parametrizations.orthogonal(nn.RNN(INPUT, HIDDEN), "weight_hh_l0")
        with pytest.raises(ArgumentError, match=r"upgrade: body\.1: got a parametrized layer, wanted plain weights"):
            upgrade(nested(layer))

    def test_pruned_weights(self) -> None:
        layer = nn.RNN(INPUT, HIDDEN)
        prune.l1_unstructured(layer, "weight_hh_l0", amount=0.5)
        with pytest.raises(ArgumentError, match=r"upgrade: body\.1: got .*weight_hh_l0_orig.*pruning"):
            upgrade(nested(layer))

    def test_further_parameters_and_buffers(self) -> None:
        for register in (nn.Module.register_parameter, nn.Module.register_buffer):
            layer = nn.GRU(INPUT, HIDDEN)
            register(layer, "scale", nn.Parameter(torch.ones(1)))
            with pytest.raises(ArgumentError, match=r"upgrade: body\.1: got .*'scale'.*nothing else"):
                upgrade(nested(layer))

    def test_subclasses(self) -> None:
        with pytest.raises(ArgumentError, match=r"upgrade: body\.1: got Subclass, a subclass.*by hand"):
            upgrade(nested(Subclass(INPUT, HIDDEN)))

    @pytest.mark.parametrize(
        "model", [nn.Linear(2, 2), nn.Sequential(), nn.LSTMCell(2, 2), nn.Sequential(LSTM(2, 2))], ids=str
    )
    def test_a_model_without_a_recurrent_layer_of_torch(self, model: nn.Module) -> None:
        with pytest.raises(ArgumentError, match=f"got {type(model).__name__} without a recurrent layer"):
            upgrade(model)

    def test_what_is_no_model(self) -> None:
        model: Any = {"rnn": nn.LSTM(2, 2)}
        with as_users_have_it(), pytest.raises(DtypeError, match=r"got dict, wanted a torch\.nn\.Module"):
            upgrade(model)

    def test_transforms_that_do_not_fit_name_the_module(self) -> None:
        with pytest.raises(ArgumentError, match="from 0 to 0") as caught:
            upgrade(nested(nn.LSTM(INPUT, HIDDEN)), transforms=Centroids(3, layers=(1,)))
        assert caught.value.__notes__ == ["upgrade: body.1"]

    def test_an_unknown_engine(self) -> None:
        with pytest.raises(ArgumentError, match="got gpu, wanted one of auto"):
            upgrade(nn.LSTM(INPUT, HIDDEN), engine="gpu")

    def test_a_refusal_leaves_the_model_as_it_was(self, x: Tensor) -> None:
        model = nn.ModuleList([nn.LSTM(INPUT, HIDDEN), nn.LSTM(INPUT, HIDDEN, proj_size=2)])
        with pytest.raises(ArgumentError, match=r"upgrade: 1"):
            upgrade(model)
        assert [type(module) for module in model] == [nn.LSTM, nn.LSTM]
