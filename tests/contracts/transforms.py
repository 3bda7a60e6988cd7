"""What every transform promises: an immutable value, whose randomness is data, and which does nothing at strength 0."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.members import MEMBERS
from contracts.passes import (
    Case,
    FreshInputs,
    Pass,
    assert_same,
    cases,
    few_examples,
    run,
    seeds,
    some_examples,
    tidy,
)
from statewise import Noise, RecurrentLayer, Transform, Zoneout
from statewise.native import NativeStatus
from statewise.transforms import Randomness, Sizes, streams

NEIGHBOURS: tuple[Transform, ...] = (Noise("gaussian", 0.5, placement="outputs"), Zoneout(0.4), Noise("beta", 0.1))
LAYERS = ("tanh", "LSTM", "GRU")  # one cell of each kind: squashed state, with memory, linear path


class TransformContract(FreshInputs):
    """Inherit it, and say which settings there are, what they draw, and what they do in eval mode."""

    kind: ClassVar[type[Any]]

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        """Any settings that do something."""
        raise NotImplementedError

    def make(self, data: st.DataObject) -> Any:
        """A transform with any settings; not made by a strategy, where run-time type checks may not roll their dice."""
        return self.kind(**data.draw(self.settings()))

    def shapes(self, transform: Any, sizes: Sizes) -> list[tuple[int, ...]] | None:
        """The shapes of what it draws while training; None if it draws nothing."""
        raise NotImplementedError

    def off_in_eval(self, transform: Any) -> bool:
        """Whether a layer in eval mode equals the plain one."""
        return True

    def random_in_eval(self, transform: Any) -> bool:
        """Whether something is drawn in eval mode too."""
        return False

    def options(self, case: Case) -> dict[str, Any]:
        """What a call needs besides: a pairing."""
        return {}

    # --- the value

    @few_examples
    @given(data=st.data())
    def test_it_is_an_immutable_value(self, data: st.DataObject) -> None:
        """Equal by value, hashable, copied and pickled as itself, and changed only by making another."""
        transform = self.make(data)
        for twin in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform)), dataclasses.replace(transform)):
            assert twin == transform
            assert hash(twin) == hash(transform)
        for name in (field.name for field in dataclasses.fields(transform)):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(transform, name, None)
        moved = dataclasses.replace(transform, layers=(7,))
        assert moved != transform
        assert (moved.layers, transform.layers) != (transform.layers, moved.layers)

    # --- the draws

    @some_examples
    @given(data=st.data(), case=cases(packed=False), training=st.booleans())
    def test_draws_have_a_step_a_row_and_a_width(self, data: st.DataObject, case: Case, training: bool) -> None:
        transform, sizes = self.make(data), sizes_of(case)
        drawn = draw(transform, sizes, case.seed, training=training)
        if training:
            wanted = self.shapes(transform, sizes)
            assert (None if drawn is None else [tuple(tensor.shape) for tensor in drawn]) == wanted
        for tensor in drawn or ():
            assert tensor.shape[0] in (1, case.steps)
            assert tensor.shape[1] == case.batch
            assert tensor.dtype == case.dtype
            assert not tensor.requires_grad

    @some_examples
    @given(data=st.data(), case=cases(packed=False))
    def test_a_seed_repeats_the_draws(self, data: st.DataObject, case: Case) -> None:
        transform, sizes = self.make(data), sizes_of(dataclasses.replace(case, batch=5, hidden=20))
        first, again, other = (draw(transform, sizes, seed) for seed in (case.seed, case.seed, case.seed + 1))
        assert_equal_draws(first, again)
        random = [pair for pair in zip(first or (), other or (), strict=True) if pair[0].numel()]
        # A mask of one locked row may come out the same; a hundred numbers do not.
        assert not any(torch.equal(*pair) for pair in random if pair[0].numel() > 50 and self.varies(transform))

    def varies(self, transform: Any) -> bool:
        """Whether every tensor it draws is random."""
        return True

    @some_examples
    @given(data=st.data(), steps=st.integers(1, 6), more=st.integers(1, 6) | st.integers(40, 60), seed=seeds)
    def test_a_step_draws_the_same_whatever_the_number_of_steps(
        self, data: st.DataObject, steps: int, more: int, seed: int
    ) -> None:
        """Also where the longer draw is large enough for the kernel."""
        transform = self.make(data)
        sizes = sizes_of(Case(steps=steps, batch=5, inputs=20, hidden=23))
        shorter = draw(transform, sizes, seed)
        longer = draw(transform, sizes._replace(steps=steps + more), seed)
        assert_equal_draws(shorter, None if longer is None else tuple(t[:steps] for t in longer))

    @some_examples
    @given(data=st.data(), seed=seeds, dtype=st.sampled_from([torch.float32, torch.float64]))
    def test_the_draws_are_the_same_without_the_kernel(
        self, data: st.DataObject, seed: int, dtype: torch.dtype
    ) -> None:
        transform, sizes = self.make(data), sizes_of(Case(steps=50, batch=7, inputs=31, hidden=33, dtype=dtype))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streams, "load_native", lambda: NativeStatus(available=False, reason="left out by a test"))
            without = draw(transform, sizes, seed)
        assert_equal_draws(draw(transform, sizes, seed), without)

    @some_examples
    @given(data=st.data(), case=cases(packed=True, layers=2))
    def test_padding_moves_no_draw(self, data: st.DataObject, case: Case) -> None:
        """A packed batch draws what the same batch draws without packing."""
        layer = build("LSTM", case, (self.make(data),))
        x = case.leaves(has_memory=True)[0]
        packed = layer.draw(case.arrange(x), generator=case.generator("draws"))
        whole = dataclasses.replace(case, lengths=None)
        padded = layer.draw(whole.arrange(x), generator=case.generator("draws"))
        assert list(packed.tensors) == list(padded.tensors)
        for key, drawn in packed.tensors.items():
            assert_equal_draws(drawn, padded.tensors[key])

    @some_examples
    @given(data=st.data(), case=cases(layers=2), place=st.integers(0, 2))
    def test_the_other_transforms_of_a_layer_move_no_draw(self, data: st.DataObject, case: Case, place: int) -> None:
        """At the same place among them it draws the same, whatever the others are and draw, and how many follow."""
        transform = self.make(data)
        x = case.arrange(case.leaves(has_memory=True)[0])
        found = []
        for before, after in ((NEIGHBOURS[:place], ()), (NEIGHBOURS[1 : place + 1], NEIGHBOURS[:2])):
            chain = self.legal([*before, transform, *after])
            place = chain.index(transform)
            draws = build("LSTM", case, tuple(chain)).draw(x, generator=case.generator("draws")).tensors
            found.append({key[1:]: drawn for key, drawn in draws.items() if key[0] == place})
        assert list(found[0]) == list(found[1])
        for key, drawn in found[0].items():
            assert_equal_draws(drawn, found[1][key])

    def legal(self, chain: list[Transform]) -> list[Transform]:
        """The chain in an order that a layer accepts."""
        return chain

    # --- what it does to a layer

    @some_examples
    @given(data=st.data(), case=cases(), name=st.sampled_from(LAYERS))
    def test_it_is_off_in_eval_mode_where_that_is_documented(self, data: st.DataObject, case: Case, name: str) -> None:
        """And then takes nothing from the global generator."""
        transform = self.make(data)
        layer, plain = build(name, case, (transform,)).eval(), build(name, case)
        x = case.arrange(case.leaves(has_memory=False)[0])
        if self.off_in_eval(transform):
            assert_same(without_own(run(layer, case)), run(plain, case), exactly=True)
        if not self.random_in_eval(transform):
            state = torch.random.get_rng_state()
            first, again = (tidy(layer(x)[0], case) for _ in range(2))
            assert torch.equal(first, again)
            assert torch.equal(torch.random.get_rng_state(), state)

    @some_examples
    @given(data=st.data(), name=st.sampled_from(LAYERS), seed=seeds)
    def test_it_acts_on_the_layers_it_names(self, data: st.DataObject, name: str, seed: int) -> None:
        """Named for the second layer it leaves the first as it is, and changes the output."""
        case = Case(layers=2, steps=5, batch=4, hidden=12, inputs=3, seed=seed)
        transform = dataclasses.replace(self.make(data), layers=(1,))
        layer, plain = build(name, case, (transform,)), build(name, case)
        acted, untouched = (
            run(module, case, collect=("states",), **options)
            for module, options in ((layer, self.options(case)), (plain, {}))
        )
        assert torch.equal(acted.collected.states[0], untouched.collected.states[0])
        assert not torch.equal(acted.values["output"], untouched.values["output"])
        assert all("_l1" in learnt for learnt in set(acted.gradients) - set(untouched.gradients))


class StrengthContract(TransformContract):
    """The contract of a transform that has a strength, and at strength zero does nothing."""

    def silent(self) -> list[dict[str, Any]]:
        """The settings of strength zero, where a layer must equal the plain one bit by bit."""
        raise NotImplementedError

    @some_examples
    @given(data=st.data(), case=cases(), name=st.sampled_from(LAYERS))
    def test_at_strength_zero_the_layer_is_the_plain_one(self, data: st.DataObject, case: Case, name: str) -> None:
        """Bit by bit in values and gradients, and nothing is taken from the global generator."""
        layer = build(name, case, (self.kind(**data.draw(st.sampled_from(self.silent()))),))
        state = torch.random.get_rng_state()
        assert_same(without_own(run(layer, case)), run(build(name, case), case), exactly=True)
        layer(case.arrange(case.leaves(has_memory=False)[0]))
        assert torch.equal(torch.random.get_rng_state(), state)


def build(name: str, case: Case, transforms: tuple[Transform, ...] = ()) -> RecurrentLayer:
    """A layer of the members by name."""
    return MEMBERS[name].build(case, transforms=transforms)


def sizes_of(case: Case) -> Sizes:
    """The sizes for which a layer of an LSTM's blocks asks a transform to draw."""
    return Sizes(case.steps, case.batch, case.inputs, case.hidden, 4, case.dtype, torch.device("cpu"))


def draw(transform: Transform, sizes: Sizes, seed: int, *, training: bool = True) -> tuple[Tensor, ...] | None:
    """What a transform draws from a seed."""
    stream = Randomness(torch.Generator().manual_seed(seed)).stream(0, 0, 0)
    return transform.draw(sizes, stream, training=training)


def assert_equal_draws(actual: tuple[Tensor, ...] | None, expected: tuple[Tensor, ...] | None) -> None:
    """Two draws are the same number by number."""
    assert (actual is None) == (expected is None)
    for left, right in zip(actual or (), expected or (), strict=True):
        assert torch.equal(left, right)


def without_own(done: Pass) -> Pass:
    """A pass without the gradients of what a transform learns."""
    kept = {name: value for name, value in done.gradients.items() if not name.startswith("centroids")}
    return Pass(done.values, kept)
