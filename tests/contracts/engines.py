"""What every engine promises: on the same draws it equals the reference, in all values and ALL gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.chains import CHAINS, Chain
from contracts.members import EVERY_CELL, MEMBERS, Member
from contracts.passes import (
    COMPILED,
    Case,
    FreshInputs,
    Pass,
    as_argument,
    assert_close,
    assert_same,
    cases,
    insist,
    only,
    run,
    some_examples,
    tidy,
)
from statewise import Centroids, RecurrentLayer
from statewise.engine import Drawn, Mixed, choose
from statewise.transforms.centroids import SIMILARITIES

FOR_EVERY_CELL = pytest.mark.parametrize("name", EVERY_CELL)
ENGINE = {"loop": "reference", "native": "cpu"}
SIZES = (
    "noise, centroids, zoneout",
    "masks and states",
    "centroids, zoneout, noise",
    "every place",
    "mix with masks",
    "mix, noise, centroids, zoneout",
)
TWO_PRODUCTS = ("MGU", "GRU(reset_before)")  # cells in which no kernel mixes through time


class EngineContract(FreshInputs):
    """Inherit it, and name the form of the engine."""

    form: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _available(self, request: pytest.FixtureRequest) -> None:
        """Leave out a form that cannot be had, and cells of which it says in its plan that it has no code for them."""
        with only(self.form):
            pass
        name = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else None
        if name is not None and self.form in COMPILED and not MEMBERS[name].compiled:
            pytest.skip(f"no kernel has code for the cell of {name}")

    def compare(self, member: Member, chain: Chain, case: Case) -> None:
        """The engine and the reference on the same weights, inputs and draws."""
        layer = member.build(case, transforms=chain.transforms).train(chain.training)
        options = _options(layer, chain, case)
        if self.form == "native" and (not chain.native or (chain.mixes and layer.cell.name in TWO_PRODUCTS)):
            # The kernel has no code for it: the reference serves, and the plan says why.
            planned = layer.plan(case.arrange(case.leaves(has_memory=False)[0]), pairing=options.get("pairing"))
            assert planned.form == "loop"
            assert planned.why_not[0].startswith("cpu: ")
            done = run(layer, case, form="loop", **options)
            assert all(value.isfinite().all() for value in (*done.values.values(), *done.gradients.values()))
            return
        assert_same(self.run(layer, chain, case, **options), run(layer, case, form="loop", **options))

    def run(self, layer: RecurrentLayer, chain: Chain, case: Case, **options: Any) -> Pass:
        return run(layer, case, form=self.form, **options)

    @pytest.mark.parametrize("chain", CHAINS)
    @FOR_EVERY_CELL
    def test_every_cell_with_every_chain_equals_the_reference(self, name: str, chain: str, seed: int) -> None:
        """Packed, stacked, in both directions, from a given state; and padded, in float32, from the layer's own."""
        packed = Case(layers=2, bidirectional=True, steps=3, batch=4, lengths=(2, 3, 1, 3), inputs=3, seed=seed)
        layers = 2 if any(transform.layers for transform in CHAINS[chain].transforms) else 1
        padded = Case(layers=layers, steps=3, bias=False, given_state=False, dtype=torch.float32, seed=seed)
        for case in (packed, padded):
            self.compare(MEMBERS[name], CHAINS[chain], case)

    @FOR_EVERY_CELL
    @some_examples
    @given(case=cases())
    def test_a_plain_layer_of_any_size_equals_the_reference(self, name: str, case: Case) -> None:
        self.compare(MEMBERS[name], CHAINS["plain"], case)

    @FOR_EVERY_CELL
    @some_examples
    @given(case=cases(layers=2), chain=st.sampled_from(SIZES))
    def test_a_long_chain_in_a_layer_of_any_size_equals_the_reference(self, name: str, chain: str, case: Case) -> None:
        self.compare(MEMBERS[name], CHAINS[chain], case)

    @pytest.mark.parametrize(("reverse", "constant"), [(False, True), (True, False)])
    @FOR_EVERY_CELL
    def test_the_two_terms_of_a_pair_have_gradients_of_their_own(
        self, name: str, reverse: bool, constant: bool, seed: int
    ) -> None:
        """Both input terms given, ragged, in either direction, with coefficients that vary in time or do not."""
        case = Case(lengths=(1, 3, 2), seed=seed)
        layer = MEMBERS[name].build(case)
        if layer.cell.name in TWO_PRODUCTS and self.form in COMPILED:
            pytest.skip("no kernel mixes through time in this cell")
        call, _ = layer.first_recurrence(case.arrange(case.leaves(has_memory=False)[0]))
        call = replace(call, inputs=None, weight_ih=None, bias_ih=None, reverse=reverse)
        rows, width = call.layout.rows, call.weight_hh.shape[0]
        weights = torch.rand(case.batch if constant else rows, 1, generator=case.generator("weights")).to(case.dtype)

        def unrolled(form: str) -> list[torch.Tensor]:
            terms = [case.tensor(f"term {which}", rows, width).requires_grad_() for which in range(2)]
            both = replace(call, input_term=terms[0], mixed=Mixed(terms[1], Drawn(weights, constant)))
            with only(form):
                plan = choose(both, engine=ENGINE.get(form, "triton"), differentiable_record=False)
                assert plan.form == form
                done = plan.unroll(both)
            results = [one for one in (done.states, done.final_state, done.final_memory) if one is not None]
            upstream = [case.tensor(f"upstream {place}", *one.shape) for place, one in enumerate(results)]
            leaves = [*terms, *(p for named, p in layer.named_parameters() if "_ih" not in named)]
            return [*results, *torch.autograd.grad(results, leaves, upstream)]

        for found, expected in zip(unrolled(self.form), unrolled("loop"), strict=True):
            assert_close(found, expected, "result or gradient")

    @pytest.mark.parametrize("amplitude", [0.0, 1e-30, 1e3])
    @FOR_EVERY_CELL
    def test_silence_and_saturation_have_the_values_and_gradients_of_the_reference(
        self, name: str, amplitude: float, seed: int
    ) -> None:
        """Where an activation has its kink, and where it has reached its end."""
        given_state = True
        if name == "RAC":
            amplitude = min(amplitude, 1.0)  # a polynomial never saturates: it overflows
            given_state = amplitude > 0  # from a state of zeros it would never leave, which it refuses
        case = Case(layers=2, bias=False, given_state=given_state, amplitude=amplitude, lengths=(2, 4, 3), seed=seed)
        for chain in ("plain", "centroids, zoneout, noise"):
            self.compare(MEMBERS[name], CHAINS[chain], case)

    @pytest.mark.parametrize("similarity", SIMILARITIES)
    def test_a_state_that_lies_on_a_centroid_has_the_gradients_of_the_reference(
        self, similarity: str, seed: int
    ) -> None:
        """There the distance has no derivative, and the convention is zero."""
        case, transform = Case(seed=seed), Centroids(4, similarity=similarity)
        layer: Any = MEMBERS["identity"].build(case, transforms=transform)
        with torch.no_grad():
            for weight in (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0):
                weight.zero_()
            layer.bias_hh_l0.copy_(layer.centroids_l0[1])
        done = run(layer, case, form=self.form)
        assert_same(done, run(layer, case, form="loop"))
        assert all(gradient.isfinite().all() for gradient in done.gradients.values())

    @FOR_EVERY_CELL
    def test_a_graph_that_is_kept_can_be_walked_backward_again(self, name: str, seed: int) -> None:
        case, chain = Case(lengths=(2, 4, 3), seed=seed), CHAINS["noise, centroids, zoneout"]
        layer = MEMBERS[name].build(case, transforms=chain.transforms)
        with insist(layer, self.form):
            x, states = case.leaves(has_memory=layer.cell.has_memory)
            output = tidy(layer(case.arrange(x), as_argument(states))[0], case)
            leaves = [x, *states, *layer.parameters()]
            first, again = (
                torch.autograd.grad(output.square().sum(), leaves, retain_graph=True, allow_unused=True)
                for _ in range(2)
            )
        for left, right in zip(first, again, strict=True):
            assert (left is None and right is None) or torch.equal(left, right)

    @FOR_EVERY_CELL
    @some_examples
    @given(seed=st.integers(0, 2**32 - 1), chosen=st.integers(0, 2**6 - 1))
    def test_gradients_that_nobody_asks_for_change_none_that_somebody_does(
        self, name: str, seed: int, chosen: int
    ) -> None:
        """Any subset of the parameters may be frozen."""
        case, chain = Case(seed=seed), CHAINS["noise, centroids"]
        layer = MEMBERS[name].build(case, transforms=chain.transforms)
        everything = run(layer, case, form=self.form)
        for place, parameter in enumerate(layer.parameters()):
            parameter.requires_grad_(bool(chosen >> place & 1))
        some = run(layer, case, form=self.form)
        for named, gradient in some.gradients.items():
            assert_close(gradient, everything.gradients[named], named)

    @FOR_EVERY_CELL
    def test_a_loss_on_one_result_alone_has_the_gradients_of_the_reference(self, name: str, seed: int) -> None:
        """The output alone, the final state alone, the final memory alone: the others give no gradient at all."""
        case, chain = Case(lengths=(2, 4, 3), seed=seed), CHAINS["centroids, zoneout, noise"]
        layer = MEMBERS[name].build(case, transforms=chain.transforms)
        leaves = [*layer.parameters()]
        draws = layer.draw(case.arrange(case.leaves(has_memory=False)[0]), generator=case.generator("draws"))

        def gradients(form: str, which: int) -> list[torch.Tensor | None]:
            with insist(layer, form):
                x, states = case.leaves(has_memory=layer.cell.has_memory)
                output, final = layer(case.arrange(x), as_argument(states), draws=draws)
                results = (tidy(output, case), *(final if isinstance(final, tuple) else (final,)))
                found = torch.autograd.grad(results[which].square().sum(), [x, *states, *leaves], allow_unused=True)
                return list(found)

        for which in range(2 + layer.cell.has_memory):
            for left, right in zip(gradients(self.form, which), gradients("loop", which), strict=True):
                if left is not None and right is not None:
                    assert_close(left, right, "gradient")
                else:
                    assert all(one is None or not one.any() for one in (left, right))

    @FOR_EVERY_CELL
    def test_no_two_parameters_share_the_memory_of_their_gradients(self, name: str, seed: int) -> None:
        """Else an optimiser or a clipping in place would act on some of them twice."""
        case = Case(layers=2, bidirectional=True, seed=seed)
        layer = MEMBERS[name].build(case, transforms=CHAINS["noise, centroids"].transforms)
        with insist(layer, self.form):
            layer(case.leaves(has_memory=False)[0])[0].sum().backward()
        places = [parameter.grad.data_ptr() for parameter in layer.parameters() if parameter.grad is not None]
        assert len(places) == len(set(places)) == len(list(layer.parameters()))

    @FOR_EVERY_CELL
    def test_weights_that_changed_before_the_backward_pass_are_noticed(self, name: str, seed: int) -> None:
        case = Case(seed=seed)
        layer = MEMBERS[name].build(case)
        with insist(layer, self.form):
            output = layer(case.leaves(has_memory=False)[0])[0]
            with torch.no_grad():
                layer.weight_hh_l0.mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                output.sum().backward()


def _options(layer: RecurrentLayer, chain: Chain, case: Case) -> dict[str, Any]:
    """What makes two passes of one case the same: the draws, and the pairing if the chain mixes."""
    arranged = case.arrange(case.leaves(has_memory=False)[0])
    options: dict[str, Any] = {"pairing": case.pairing()} if chain.mixes else {}
    return options | {"draws": layer.draw(arranged, generator=case.generator("draws"), **options)}
