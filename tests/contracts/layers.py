"""What every layer promises, whatever its cell: torch.nn's interface, packing, padding, and that all can be seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from contracts.members import MEMBERS, Member
from contracts.passes import (
    COMPILED,
    EVERY_FORM,
    Case,
    FreshInputs,
    Pass,
    as_argument,
    assert_close,
    assert_same,
    cases,
    differentiate,
    few_examples,
    insist,
    run,
    some_examples,
    tidy,
)
from statewise import Centroids, Collected, Noise, OutputDropout, RecurrentLayer, Zoneout
from statewise.errors import EngineError, SecondDerivativeError

KINDS = ("states", "cells", "gates", "probabilities")


class LayerContract(FreshInputs):
    """Inherit it, and name the member."""

    name: ClassVar[str]

    @property
    def member(self) -> Member:
        return MEMBERS[self.name]

    @pytest.fixture(autouse=True)
    def _has_code(self, request: pytest.FixtureRequest) -> None:
        """Leave out the forms that say in their plan that they have no code for the member's cell."""
        form = request.node.callspec.params.get("form") if hasattr(request.node, "callspec") else None
        if form in COMPILED and not self.member.compiled:
            pytest.skip(f"no kernel has code for the cell of {self.name}")

    def settled(self, case: Case) -> Case:
        """The case with a given state where the layer would draw one, which no other computation could repeat."""
        return replace(case, given_state=case.given_state or self.member.start == "random")

    # --- values and gradients

    @pytest.mark.parametrize("engine", ["auto", "cpu", "reference"])
    @pytest.mark.parametrize("transforms", [(), (Noise("gaussian", 0.5), Zoneout(0.2), Centroids(3))], ids=len)
    def test_an_empty_batch_has_empty_outputs_and_no_gradient(self, engine: str, transforms: Any) -> None:
        case = Case(layers=2, bidirectional=True, steps=3)
        layer = self.member.build(case, transforms=transforms)
        layer.engine = engine
        x = torch.zeros(3, 0, case.inputs, dtype=case.dtype, requires_grad=True)
        output, final = layer(x)
        assert output.shape == (3, 0, 2 * case.hidden)
        assert all(state.shape == (4, 0, case.hidden) for state in ([final] if isinstance(final, Tensor) else final))
        output.sum().backward()
        assert x.grad is not None
        assert not any(parameter.grad is None or parameter.grad.any() for parameter in layer.parameters())
        assert "the batch is empty" in layer.plan(x).why_not

    @EVERY_FORM
    @some_examples
    @given(case=cases())
    def test_outputs_states_and_all_gradients_are_those_computed_by_hand(self, form: str, case: Case) -> None:
        case = self.settled(case)
        layer = self.member.build(case)
        assert_same(run(layer, case, form=form), self.member.by_hand(layer, case))

    @EVERY_FORM
    def test_gradcheck(self, form: str, seed: int) -> None:
        case = self.settled(small(seed))
        layer = self.member.build(case)
        with insist(layer, form):
            assert torch.autograd.gradcheck(*_as_function(layer, case), fast_mode=True)

    @pytest.mark.slow
    def test_gradgradcheck_on_the_reference_engine(self, seed: int) -> None:
        case = self.settled(small(seed))
        layer = self.member.build(case)
        with insist(layer, "loop"):
            assert torch.autograd.gradgradcheck(*_as_function(layer, case), fast_mode=True)

    @pytest.mark.parametrize("form", ["native"])
    @pytest.mark.parametrize("of", ["inputs", "weights"])
    def test_a_second_derivative_is_refused_by_the_cpu_engine(self, form: str, of: str, seed: int) -> None:
        case = self.settled(small(seed))
        layer = self.member.build(case)
        with insist(layer, form):
            x, states = case.leaves(has_memory=layer.cell.has_memory)
            output = tidy(layer(case.arrange(x), as_argument(states))[0], case)
            leaf = x if of == "inputs" else next(iter(layer.parameters()))
            (grad,) = torch.autograd.grad(output.square().sum(), leaf, create_graph=True)
            with pytest.raises(SecondDerivativeError, match="engine='reference'"):
                grad.square().sum().backward()

    # --- the forms of an input

    @EVERY_FORM
    @few_examples
    @given(case=cases(packed=True))
    def test_a_packed_batch_equals_its_sequences_one_by_one(self, form: str, case: Case) -> None:
        case = self.settled(case)
        layer = self.member.build(case)
        with insist(layer, form):
            one_by_one = self._one_by_one(layer, case)
        assert_same(run(layer, case, form=form), one_by_one)

    @staticmethod
    def _one_by_one(layer: RecurrentLayer, case: Case) -> Pass:
        x, states = case.leaves(has_memory=layer.cell.has_memory)
        rows, ends = [], []
        for row, length in enumerate(case.true_lengths):
            alone = x[:length, row : row + 1]
            start = as_argument(tuple(state[:, row : row + 1] for state in states))
            output, final = layer(alone.transpose(0, 1) if case.batch_first else alone, start)
            output = output.transpose(0, 1) if case.batch_first else output
            rows.append(torch.cat((output, output.new_zeros(case.steps - length, 1, output.shape[2]))))
            ends.append(final if isinstance(final, tuple) else (final,))
        finals = tuple(torch.cat(parts, dim=1) for parts in zip(*ends, strict=True))
        return differentiate(layer, case, x, states, torch.cat(rows, dim=1), finals)

    @EVERY_FORM
    @few_examples
    @given(case=cases(packed=True))
    def test_padding_never_leaks(self, form: str, case: Case) -> None:
        """NaN in the padding changes no bit of outputs, states or gradients, and no gradient reaches it."""
        layer = self.member.build(case)
        clean = run(layer, case, form=form)
        assert_same(run(layer, case, form=form, dirt=float("nan")), clean, exactly=True)
        assert not clean.values["output"][case.padding].any()
        assert not clean.gradients["inputs"][case.padding].any()
        assert all(gradient.isfinite().all() for gradient in clean.gradients.values())

    @EVERY_FORM
    @few_examples
    @given(case=cases(packed=True))
    def test_what_is_drawn_for_the_padding_never_leaks(self, form: str, case: Case) -> None:
        layer = self.member.build(case, transforms=BUSY)
        draws = layer.draw(case.arrange(case.leaves(has_memory=False)[0]), generator=case.generator("draws"))
        poisoned = replace(draws, tensors={key: _poison(drawn, case) for key, drawn in draws.tensors.items()})
        clean = run(layer, case, form=form, draws=draws)
        assert_same(run(layer, case, form=form, draws=poisoned), clean, exactly=True)

    @EVERY_FORM
    @few_examples
    @given(case=cases(packed=True))
    def test_the_order_of_an_unsorted_pack_is_restored(self, form: str, case: Case) -> None:
        """It equals the same batch sorted by hand, longest first."""
        layer = self.member.build(case)
        order = sorted(range(case.batch), key=lambda row: -case.true_lengths[row])
        lengths = torch.tensor([case.true_lengths[row] for row in order])
        x, states = case.leaves(has_memory=layer.cell.has_memory)
        states = states or case_states(layer, case)
        with insist(layer, form):
            given_out, given_final = layer(case.arrange(x), as_argument(states))
            assert isinstance(given_out, PackedSequence)
            packed = pack_padded_sequence(x[:, order], lengths)
            sorted_out, sorted_final = layer(packed, as_argument(tuple(state[:, order] for state in states)))
        assert torch.equal(tidy(given_out, case)[:, order], pad_packed_sequence(sorted_out)[0])
        for left, right in zip(_tensors(given_final), _tensors(sorted_final), strict=True):
            assert torch.equal(left[:, order], right)

    @EVERY_FORM
    @few_examples
    @given(case=cases(batch_first=True, batched=True))
    def test_batch_first_changes_only_the_order_of_dimensions(self, form: str, case: Case) -> None:
        timed = replace(case, batch_first=False)
        layer, other = self.member.build(case), self.member.build(timed)
        assert_same(run(layer, case, form=form), run(other, timed, form=form), exactly=True)

    @EVERY_FORM
    @few_examples
    @given(case=cases(batched=False))
    def test_an_unbatched_sequence_is_a_batch_of_one(self, form: str, case: Case) -> None:
        layer, batched = self.member.build(case), replace(case, batched=True)
        assert_same(run(layer, case, form=form), run(layer, batched, form=form), exactly=True)
        x, states = case.leaves(has_memory=layer.cell.has_memory)
        output, final = layer(case.arrange(x), as_argument(states, batched=False))
        assert output.shape == (case.steps, case.hidden * case.directions)
        assert all(part.shape == (case.layers * case.directions, case.hidden) for part in _tensors(final))

    @EVERY_FORM
    @some_examples
    @given(case=cases())
    def test_the_final_state_is_the_last_valid_output(self, form: str, case: Case) -> None:
        """Of the top layer: forward where each sequence ends, backward where it begins; nothing is left to rounding."""
        values = run(self.member.build(case), case, form=form).values
        last = torch.tensor(case.true_lengths) - 1
        top, rows = values["final state"][-case.directions :], torch.arange(case.batch)
        assert torch.equal(top[0], values["output"][last, rows, : case.hidden])
        if case.bidirectional:
            assert torch.equal(top[1], values["output"][0, :, case.hidden :])

    # --- what can be seen

    @EVERY_FORM
    @some_examples
    @given(case=cases())
    def test_everything_can_be_seen_at_every_step_of_every_layer(self, form: str, case: Case) -> None:
        layer = self.member.build(case, transforms=Centroids(3))
        seen = run(layer, case, form=form, collect=KINDS)
        expected = run(layer, case, form="loop", collect=KINDS)
        assert_same(seen, run(layer, case, form=form), exactly=True)
        shown, truth = _named(seen.collected), _named(expected.collected)
        assert list(shown) == list(truth) == self._names(layer)
        for name, tensor in shown.items():
            width = 3 if name.startswith("probabilities") else case.hidden
            tensor = tidy(tensor, case)
            assert tensor.shape == (case.steps, case.batch, width * case.directions)
            assert not tensor.requires_grad
            assert not tensor[case.padding].any()
            assert_close(tensor, tidy(truth[name], case), name)
            if name.startswith("probabilities"):
                total = tensor.unflatten(2, (case.directions, 3)).sum(3)[~case.padding]
                assert_close(total, torch.ones_like(total), "sum of the probabilities")
        top = tidy(seen.collected.states[-1], case)
        assert torch.equal(top, seen.values["output"])

    def test_a_layer_that_is_given_its_states_draws_nothing_without_transforms(self, seed: int) -> None:
        case = Case(layers=2, seed=seed)
        layer = self.member.build(case)
        x, states = case.leaves(has_memory=layer.cell.has_memory)
        before = torch.get_rng_state()
        layer(case.arrange(x), as_argument(states, batched=case.batched))
        assert torch.equal(torch.get_rng_state(), before)

    @staticmethod
    def _names(layer: RecurrentLayer) -> list[str]:
        places = range(layer.num_layers)
        cells = [f"cells {place}" for place in places] if layer.cell.has_memory else []
        gates = [f"{gate} {place}" for place in places for gate in layer.cell.observed]
        return [*(f"states {p}" for p in places), *cells, *gates, *(f"probabilities {p}" for p in places)]

    @EVERY_FORM
    def test_only_what_is_asked_for_is_shown(self, form: str, seed: int) -> None:
        case = Case(layers=2, seed=seed)
        layer = self.member.build(case, transforms=Centroids(3, layers=(1,)))
        for kind in KINDS:
            shown = run(layer, case, form=form, collect=(kind,)).collected
            assert [k for k in KINDS if k != kind and getattr(shown, k)] == []
        assert shown.probabilities[0] is None
        assert shown.probabilities[1] is not None

    @few_examples
    @given(case=cases())
    def test_collected_tensors_carry_gradients_where_asked(self, case: Case) -> None:
        """The gradient through the collected states of the top layer is the one through the output."""
        layer = self.member.build(case)
        layer.engine = "auto"
        x, states = case.leaves(has_memory=layer.cell.has_memory)
        arranged, start = case.arrange(x), as_argument(states, batched=case.batched)
        layer.eval()
        output, final, shown = layer(
            arranged, start, collect=KINDS, collect_grad=True, generator=case.generator("layer")
        )
        weights = case.tensor("weights", case.steps, case.batch, case.hidden * case.directions)
        leaves = [x, *states, *layer.parameters()]
        through = [
            torch.autograd.grad((tensor * weights).sum(), leaves, retain_graph=True, allow_unused=True)
            for tensor in (tidy(output, case), tidy(shown.states[-1], case))
        ]
        for left, right in zip(*through, strict=True):
            assert (left is None) == (right is None)
            if left is not None and right is not None:
                assert_close(right, left, "gradient", scale=float(left.norm()))
        for tensor in _named(shown).values():
            assert torch.autograd.grad(tensor.sum(), x, retain_graph=True)[0].isfinite().all()
        if layer.cell.has_memory and not case.bidirectional and case.lengths is None:
            ended = tidy(shown.cells[-1], case)[-1]
            assert torch.equal(ended, _tensors(final)[1][-1].reshape_as(ended))
            (left,) = torch.autograd.grad(ended.sum(), x, retain_graph=True)
            assert_close(left, torch.autograd.grad(_tensors(final)[1][-1].sum(), x)[0], "gradient through the memory")

    def test_the_cpu_engine_refuses_to_carry_gradients_through_what_it_shows(self) -> None:
        case = Case()
        layer = self.member.build(case, engine="cpu")
        with pytest.raises(EngineError, match="engine='auto'"):
            layer(case.leaves(has_memory=False)[0], collect="states", collect_grad=True)

    # --- randomness

    @EVERY_FORM
    @few_examples
    @given(case=cases())
    def test_in_eval_mode_there_is_no_noise(self, form: str, case: Case) -> None:
        layer, plain = self.member.build(case, transforms=QUIET_IN_EVAL), self.member.build(case)
        state = torch.random.get_rng_state()
        assert_same(run(layer.eval(), case, form=form), run(plain, case, form=form), exactly=True)
        assert torch.equal(torch.random.get_rng_state(), state)

    @few_examples
    @given(case=cases())
    def test_a_generator_repeats_a_pass(self, case: Case) -> None:
        """The same seed gives the same pass, another seed another; the global generator is left alone."""
        layer = self.member.build(case, transforms=BUSY)
        state = torch.random.get_rng_state()
        first, again, other = (run(layer, case, generator=case.generator(seed)) for seed in "aab")
        assert_same(first, again, exactly=True)
        assert torch.equal(torch.random.get_rng_state(), state)
        if case.steps * case.batch * case.hidden > 8:
            assert not torch.equal(first.values["output"], other.values["output"])

    @few_examples
    @given(case=cases(given_state=False))
    def test_draws_repeat_a_pass_exactly(self, case: Case) -> None:
        """What ``draw`` gives is all that is random in a pass, the initial state included."""
        layer = self.member.build(case, transforms=BUSY)
        arranged = case.arrange(case.leaves(has_memory=False)[0])
        draws = layer.draw(arranged, generator=case.generator("draws"))
        first, again = (tidy(layer(arranged, draws=draws)[0], case) for _ in range(2))
        assert torch.equal(first, again)

    @EVERY_FORM
    @few_examples
    @given(case=cases(packed=False))
    def test_gradients_off_or_inference_mode_change_no_value(self, form: str, case: Case) -> None:
        layer = self.member.build(case, transforms=BUSY)
        expected = run(layer, case, form=form).values["output"]
        with insist(layer, form):
            for mode in (torch.no_grad(), torch.inference_mode()):
                with mode:
                    x, states = case.leaves(has_memory=layer.cell.has_memory)
                    output = layer(case.arrange(x), as_argument(states), generator=case.generator("layer"))[0]
                    assert torch.equal(tidy(output, case), expected)
                    assert not output.requires_grad

    @few_examples
    @given(case=cases(layers=3))
    def test_dropout_acts_between_the_layers(self, case: Case) -> None:
        """As the argument of torch.nn: on the output of every layer but the last, in training only."""
        layer, plain = self.member.build(case, dropout=0.4), self.member.build(case)
        explicit = self.member.build(case, transforms=OutputDropout(0.4, layers=(0, 1)))
        assert_same(run(layer, case), run(explicit, case), exactly=True)
        assert_same(run(layer.eval(), case), run(plain, case), exactly=True)

    # --- parameters

    @few_examples
    @given(case=cases())
    def test_a_state_dict_goes_round(self, case: Case) -> None:
        layer, other = (self.member.build(replace(case, seed=seed), transforms=BUSY) for seed in (case.seed, 1))
        assert other.load_state_dict(layer.state_dict()).missing_keys == []
        assert_same(run(other, case), run(layer, case), exactly=True)

    def test_a_seed_repeats_the_initial_weights(self, seed: int) -> None:
        case = Case(layers=2, bidirectional=True, seed=seed)
        first, again = (self.member.build(case, transforms=BUSY).state_dict() for _ in range(2))
        assert all(torch.equal(first[name], again[name]) for name in first)


class TorchLayerContract(LayerContract):
    """The contract of a layer that torch.nn has too: it can take its place."""

    def torchs(self, case: Case) -> Any:
        assert self.member.torch_layer is not None
        return self.member.torch_layer(**self.member.arguments(case), **self.member.options)

    @EVERY_FORM
    @some_examples
    @given(case=cases())
    def test_outputs_states_and_all_gradients_are_torchs(self, form: str, case: Case) -> None:
        ours, theirs = self.member.build(case), self.torchs(case)
        theirs.load_state_dict(ours.state_dict())
        assert_same(run(ours, case, form=form), run(theirs, case))

    @few_examples
    @given(case=cases())
    def test_state_dicts_go_to_torch_and_back(self, case: Case) -> None:
        """The keys, their order and the shapes are torch's, and so are the names of all parameters."""
        ours, theirs = self.member.build(case), self.torchs(case)
        described = [
            [(name, tensor.shape, tensor.dtype) for name, tensor in module.state_dict().items()]
            for module in (ours, theirs)
        ]
        assert described[0] == described[1]
        assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
        held = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
        ours.load_state_dict(theirs.state_dict())
        self.torchs(case).load_state_dict(ours.state_dict())
        assert all(torch.equal(tensor, held[name]) for name, tensor in ours.state_dict().items())
        pairs = zip(chain(*ours.all_weights), chain(*theirs.all_weights), strict=True)
        assert all(torch.equal(left, right) for left, right in pairs)

    @few_examples
    @given(case=cases())
    def test_the_same_seed_gives_torchs_initial_weights(self, case: Case) -> None:
        """Also with transforms that learn something: theirs is drawn last."""
        torch.manual_seed(case.seed)
        theirs = self.torchs(case).state_dict()
        for transforms in ((), Centroids(3)):
            torch.manual_seed(case.seed)
            ours = self.member.layer(**self.member.arguments(case), **self.member.options, transforms=transforms)
            assert all(torch.equal(ours.state_dict()[name], value) for name, value in theirs.items())


QUIET_IN_EVAL = (
    Noise("gaussian", 0.5, placement="recurrent"),
    Noise("gamma", 0.3, placement="last"),
    OutputDropout(0.3),
)
BUSY = (
    Noise("laplace", 0.3, placement="recurrent"),
    Centroids(3, transition="noisy"),
    Zoneout(0.3),
    OutputDropout(0.2),
)


def small(seed: int) -> Case:
    """Little of everything, since gradcheck calls a layer once for each number."""
    return Case(steps=3, batch=2, hidden=2, layers=2, bidirectional=True, lengths=(2, 3), seed=seed)


def case_states(layer: RecurrentLayer, case: Case) -> tuple[Tensor, ...]:
    return replace(case, given_state=True).leaves(has_memory=layer.cell.has_memory)[1]


def _as_function(layer: RecurrentLayer, case: Case) -> tuple[Any, tuple[Tensor, ...]]:
    """A layer as a function of all its tensors, as gradcheck wants it."""
    x, states = case.leaves(has_memory=layer.cell.has_memory)
    learnt = tuple(layer.parameters())

    def call(x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        output, final = layer(case.arrange(x), as_argument(others[: len(states)]))
        return tidy(output, case), *_tensors(final)

    # The parameters are leaves of the layer itself, so gradcheck disturbs them in place.
    return call, (x, *states, *learnt)


def _tensors(final: Any) -> tuple[Tensor, ...]:
    return final if isinstance(final, tuple) else (final,)


def _poison(drawn: tuple[Tensor, ...], case: Case) -> tuple[Tensor, ...]:
    nan = torch.tensor(float("nan"))
    return tuple(
        tensor
        if tensor.shape[0] != case.steps
        else torch.where(case.padding.unsqueeze(2), nan.to(tensor.dtype), tensor)
        for tensor in drawn
    )


def _named(collected: Collected) -> dict[str, Tensor]:
    """All that was collected, by name and layer; what a layer does not have is left out."""
    found: dict[str, Tensor | None] = {}
    for kind, tensors in (("states", collected.states), ("cells", collected.cells)):
        found |= {f"{kind} {place}": tensor for place, tensor in enumerate(tensors)}
    for place, gates in enumerate(collected.gates):
        found |= {f"{name} {place}": gate for name, gate in gates.items()}
    found |= {f"probabilities {place}": tensor for place, tensor in enumerate(collected.probabilities)}
    return {name: tensor for name, tensor in found.items() if tensor is not None}
