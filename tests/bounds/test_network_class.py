"""Stacks of layers in one direction or two, embeddings, heads, starts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from contracts.network_classes import Form, common_class, lipschitz, random_network
from statewise.bounds.elman import ElmanClass
from statewise.bounds.gru import GRUClass
from statewise.bounds.layer_class import OffCentreBlock, Start
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.network_class import EmbeddingClass, NetworkClass
from statewise.errors import ArgumentError, AssumptionError


def elman(hidden: int = 4, features: int = 2, U: float = 0.5, W: float = 1.0, **options: object) -> ElmanClass:
    made = ElmanClass(hidden=hidden, features=features, norms={"U": U, "W": W}, largest=math.inf)
    return dataclasses.replace(made, **options)  # type: ignore[arg-type]


def network(*layers: ElmanClass | tuple[ElmanClass, ...], steps: int = 3, **options: object) -> NetworkClass:
    made = NetworkClass(layers=layers, head_norm=2.0, classes=3, steps=steps, input_bound=1.0)
    return dataclasses.replace(made, **options)  # type: ignore[arg-type]


class TestNames:
    def names(self, form: Form) -> list[str]:
        return [block.name for block in common_class(form, 1.0, random_network(np.random.default_rng(0), form))._blocks]

    def test_of_a_single_layer_are_those_of_its_matrices(self) -> None:
        assert self.names(Form(kind="rnn")) == ["W", "U", "V"]
        assert self.names(Form(kind="mgu", start=True, tokens=3)) == [
            "embedding", "W forget", "U forget", "W candidate", "U candidate", "start", "V",
        ]  # fmt: skip

    def test_of_a_stack_say_which_layer_and_direction(self) -> None:
        assert self.names(Form(kind="rnn", layers=2)) == ["layer 0: W", "layer 0: U", "layer 1: W", "layer 1: U", "V"]
        both = self.names(Form(kind="rnn", directions=2))
        assert both == ["layer 0: W", "layer 0: U", "layer 0 backward: W", "layer 0 backward: U", "V"]


class TestKnownAnswers:
    """Small stacks whose constants can be worked out with a pencil."""

    def test_two_linear_layers_over_two_steps(self) -> None:
        """States at most 1, then 1.5 long below; 2, then 2·1.5 + 1 = 4 above; a difference doubles on its way up."""
        found = lipschitz(network(elman(), elman(features=4, W=2.0), steps=2).profile())
        assert found["V"] == pytest.approx(4.0)
        # Above: what it reads at the two steps, the first halved; and its state after the first.
        assert found["layer 1: W"] == pytest.approx(2 * (1.0 * 0.5 + 1.5))
        assert found["layer 1: U"] == pytest.approx(2 * 2.0)
        # Below: moved by 1, then 1.5, for W; by 0, then 1, for U.
        assert found["layer 0: W"] == pytest.approx(2 * (2 * 1.0 * 0.5 + 2 * 1.5))
        assert found["layer 0: U"] == pytest.approx(2 * 2 * 1.0)

    def test_both_directions_add_up_as_pythagoras_says(self) -> None:
        one, two = network(elman()).profile(), network((elman(), elman())).profile()
        assert two.log_hidden == pytest.approx(one.log_hidden + math.log(2) / 2)
        assert lipschitz(two)["layer 0 backward: U"] == pytest.approx(lipschitz(one)["U"])
        above = network((elman(), elman()), elman(features=8), steps=1).profile()
        assert lipschitz(above)["layer 1: W"] == pytest.approx(2 * math.sqrt(2))
        assert lipschitz(above)["layer 0 backward: W"] == pytest.approx(2 * 1.0)

    def test_above_both_directions_any_step_may_be_the_first(self) -> None:
        """What has been read backward is longest where the layer above begins: 1.5 √2 at both of two steps."""
        found = lipschitz(network((elman(), elman()), elman(features=8), steps=2).profile())
        assert found["layer 1: W"] == pytest.approx(2 * 1.5 * math.sqrt(2) * (0.5 + 1))
        assert found["layer 0 backward: W"] == pytest.approx(2 * 1.5 * (0.5 + 1))

    def test_an_embedding_moves_what_an_input_does(self) -> None:
        """Each step's input moves by the distance of the tables' rows, and is passed on by W."""
        table = EmbeddingClass(tokens=7, features=2, bound=0.25)
        found = network(elman(W=3.0), embedding=table, input_bound=math.inf).profile()
        assert lipschitz(found)["embedding"] == pytest.approx(2 * 3.0 * 1.75)
        assert lipschitz(found)["W"] == pytest.approx(2 * 0.25 * 1.75)
        assert (found.blocks[0].parameters, found.blocks[0].bound) == (14, 0.25)

    def test_biases_are_columns_and_ones(self) -> None:
        found = network(elman(bias=True), head_bias=True).profile()
        root = math.sqrt(2)
        assert lipschitz(found)["W"] == pytest.approx(2 * root * 1.75)
        assert lipschitz(found)["V"] == pytest.approx(math.sqrt((root * 1.75) ** 2 + 1))
        assert [(block.rows, block.columns) for block in found.blocks] == [(4, 3), (4, 4), (3, 5)]
        assert math.exp(found.log_output) == pytest.approx(2 * math.sqrt((root * 1.75) ** 2 + 1))

    def test_a_learned_start_counts_where_it_is_felt_most(self) -> None:
        """``β^s`` at step s: of a network that forgets the shortest sequences, of one that grows the longest."""
        start = Start(norm=3.0, learned=True)
        assert lipschitz(network(elman(start=start)).profile())["start"] == pytest.approx(2 * 0.5)
        assert lipschitz(network(elman(U=2.0, start=start)).profile())["start"] == pytest.approx(2 * 8.0)

    def test_a_fixed_start_is_no_matrix_but_makes_states_longer(self) -> None:
        """3, then 3·0.5 + 1 = 2.5, 2.25, 2.125; U reads the ones before."""
        found = network(elman(start=Start(norm=3.0)), steps=3).profile()
        assert math.exp(found.log_hidden) == pytest.approx(2.5)
        assert lipschitz(found)["U"] == pytest.approx(2 * (3.0 / 4 + 2.5 / 2 + 2.25))
        assert "start" not in lipschitz(found)

    def test_a_reset_gates_bias_is_one_more_column(self) -> None:
        """One step from zero, nothing known of gates: U_n reads [0; 1], its bias is at most μ = 0.3 per entry."""
        norms = {f"{side} {gate}": 0.5 for side in "WU" for gate in ("reset", "update", "candidate")}
        layer = GRUClass(hidden=4, features=2, norms=norms, bias=True, state_bias=True, row_sum=0.3)
        made = NetworkClass(layers=(layer,), head_norm=1.0, classes=2, steps=1, input_bound=1.0)
        found, root = lipschitz(made.profile()), math.sqrt(2)
        assert found["U candidate"] == pytest.approx(1.0)
        assert found["W reset"] == pytest.approx(0.3 / 4 * root)
        assert found["W update"] == pytest.approx(root / 2)
        assert found["W candidate"] == pytest.approx(root)
        assert found["U reset"] == found["U update"] == 0
        assert found["V"] == pytest.approx(0.5 * root + 0.5)


class TestRadii:
    def test_a_reference_makes_balls_smaller_and_moves_their_middle(self) -> None:
        plain = network(elman())
        near = dataclasses.replace(plain, radii={"U": 0.1, "W": 5.0})
        bounds = {block.name: block.bound for block in near.profile().blocks}
        assert bounds == {"U": 0.1, "W": 1.0, "V": 2.0}
        assert lipschitz(near.profile()) == lipschitz(plain.profile())
        assert [isinstance(block, OffCentreBlock) for block in near.profile().blocks] == [True, True, False]
        assert near.profile().cover_nats(-2.0) < plain.profile().cover_nats(-2.0)

    def test_a_name_that_is_none_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="radii"):
            network(elman(), radii={"X": 1.0})


class TestRefusals:
    def test_layers_that_do_not_fit(self) -> None:
        with pytest.raises(ArgumentError, match="a layer of 2 features above 4 numbers"):
            network(elman(), elman())
        with pytest.raises(ArgumentError, match="directions"):
            network((elman(), elman(), elman()))
        with pytest.raises(ArgumentError, match="at least 1"):
            network()

    def test_a_memory_that_is_not_there(self) -> None:
        with pytest.raises(ArgumentError, match="only an LSTM"):
            network(elman(), readout="c")
        with pytest.raises(ArgumentError, match="readout"):
            network(elman(), readout="x")

    def test_numbers_out_of_range(self) -> None:
        for name, wrong in (("steps", 0), ("classes", 1)):
            with pytest.raises(ArgumentError, match=name):
                network(elman(), **{name: wrong})
        for wrong_bound in (0.0, -1.0, math.inf, math.nan):
            with pytest.raises(AssumptionError, match="input_bound"):
                network(elman(), input_bound=wrong_bound)
        with pytest.raises(ArgumentError, match="norm of U"):
            elman(U=math.inf)

    def test_an_activation_that_is_not_0_at_0(self) -> None:
        form = Form(kind="rnn", activation="sigmoid")
        with pytest.raises(AssumptionError, match="activation"):
            common_class(form, 1.0, random_network(np.random.default_rng(0), form))


def test_memory_and_state_together_are_longer_than_each() -> None:
    norms = {f"{side} {gate}": 0.5 for side in "WU" for gate in ("input", "forget", "candidate", "output")}
    layer = LSTMClass(hidden=4, features=2, norms=norms)
    made = NetworkClass(layers=(layer,), head_norm=1.0, classes=2, steps=5, input_bound=1.0)
    h, c, hc = (dataclasses.replace(made, readout=readout).profile() for readout in ("h", "c", "hc"))
    assert math.exp(2 * hc.log_hidden) == pytest.approx(math.exp(2 * h.log_hidden) + math.exp(2 * c.log_hidden))
    assert (h.blocks[-1].columns, hc.blocks[-1].columns) == (4, 8)
    for one, other, both in zip(h.blocks[:-1], c.blocks[:-1], hc.blocks[:-1], strict=True):
        assert math.exp(2 * both.log_lipschitz) == pytest.approx(
            math.exp(2 * one.log_lipschitz) + math.exp(2 * other.log_lipschitz)
        )
