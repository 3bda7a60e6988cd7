"""The classifier of sequences: what it shows, how it is asked, and what it refuses."""

from __future__ import annotations

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import functional_call, vmap

from statewise import Centroids
from statewise.errors import ArgumentError, DtypeError, LengthError, ShapeError, UnknownSymbolError
from statewise.models import ClassifierConfig, SequenceClassifier
from support import tolerance, weight

CELLS = ("gru", "lstm", "peephole", "rnn", "mgu", "rac")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def built(**settings: Any) -> SequenceClassifier:
    own: dict[str, Any] = {"hidden": 5, "centroids": (3,)}
    config = ClassifierConfig(**own | settings)
    return config.build(tokens=2, classes=2, symbols="01", generator=seeded())


IDS, LENGTHS = torch.tensor([[0, 1, 1], [1, 0, 0], [0, 0, 1]]), torch.tensor([3, 0, 2])


class TestWeights:
    @pytest.mark.parametrize("cell", ["lstm", "peephole"])
    def test_the_forget_gates_two_biases_add_up_to_what_is_asked_and_all_others_are_zero(self, cell: str) -> None:
        model = built(cell=cell, layers=2, forget_bias=1.5)
        for layer in range(2):
            total = weight(model.layer, f"bias_ih_l{layer}") + weight(model.layer, f"bias_hh_l{layer}")
            assert total.tolist() == [0.0] * 5 + [1.5] * 5 + [0.0] * 10
        assert not model.head.bias.any()

    @pytest.mark.parametrize("cell", CELLS)
    def test_a_generator_makes_all_weights_and_the_global_one_is_left_alone(self, cell: str) -> None:
        before = torch.get_rng_state()
        one, same = (built(cell=cell, layers=2, centroids=(3, 2), orthogonal=True) for _ in range(2))
        assert torch.equal(torch.get_rng_state(), before)
        other = ClassifierConfig(cell=cell, hidden=5, layers=2, centroids=(3, 2)).build(
            tokens=2, classes=2, generator=seeded(1)
        )
        for (name, ours), theirs in zip(one.named_parameters(), same.parameters(), strict=True):
            assert torch.equal(ours, theirs)
            drawn = "bias" not in name and "weight_ph" not in name
            assert torch.equal(ours, other.get_parameter(name)) != drawn, name

    def test_recurrent_matrices_are_uniform_or_orthogonal_gate_by_gate(self) -> None:
        plain, orthogonal = (weight(built(orthogonal=each).layer, "weight_hh_l0").detach() for each in (False, True))
        assert 0.9 * 5**-0.5 < float(plain.abs().max()) <= 5**-0.5
        for gate in orthogonal.chunk(3):
            torch.testing.assert_close(gate @ gate.T, torch.eye(5), **tolerance(torch.float32))

    @pytest.mark.parametrize("cell", [*CELLS, "multiplicative"])
    def test_a_network_starts_as_if_what_it_reads_were_standardised(self, cell: str) -> None:
        mean = 0.0 if cell == "rac" else 0.7
        readout = "hc" if cell in ("lstm", "peephole") else "h"
        shared: dict[str, Any] = {"cell": cell, "hidden": 5, "layers": 2, "readout": readout, "input_gain": 2.0}
        plain = ClassifierConfig(**shared).build(features=3, classes=2, generator=seeded())
        config = ClassifierConfig(**shared, input_mean=mean, input_deviation=0.2)
        model = config.build(features=3, classes=2, generator=seeded())
        x = mean + 0.2 * torch.randn(4, 6, 3, generator=seeded(1))
        torch.testing.assert_close(model(x), plain((x - mean) / 0.2), **tolerance(torch.float32))
        assert not torch.allclose(model(x), plain(x), atol=1e-3)

    def test_the_weights_of_the_input_are_as_wide_as_its_gain_says(self) -> None:
        model = ClassifierConfig(hidden=64, readout="h", layers=2, input_gain=3.0).build(
            features=4, classes=2, generator=seeded()
        )
        assert 0.97 * 1.5 < float(weight(model.layer, "weight_ih_l0").detach().abs().max()) <= 1.5
        assert float(weight(model.layer, "weight_ih_l1").detach().abs().max()) <= 64**-0.5

    def test_centroids_start_between_minus_a_half_and_a_half(self) -> None:
        found = built(hidden=64, centroids=(50,)).centroids_of(0)
        assert found is not None
        assert 0.49 < float(found[1].detach().max()) <= 0.5
        assert -0.5 <= float(found[1].detach().min()) < -0.49

    def test_layers_may_have_different_numbers_of_centroids_or_none(self) -> None:
        model = built(layers=4, centroids=(3, 0, 2, 3))
        sizes = [None if (found := model.centroids_of(layer)) is None else found[1].shape[0] for layer in range(4)]
        assert sizes == [3, None, 2, 3]
        assert [None if found is None else found.shape[2] for found in model.states(IDS).probabilities] == sizes


class TestReadouts:
    @pytest.mark.parametrize("readout", ["h", "c", "hc"])
    def test_the_head_reads_the_final_state_of_the_top_layer(self, readout: str) -> None:
        model = built(cell="peephole", layers=2, readout=readout)
        trace = model.states(IDS, LENGTHS, collect=("states", "cells"))
        last = trace.lengths - 1
        rows = torch.arange(3)
        parts = {"h": trace.states[-1][rows, last], "c": trace.cells[-1][rows, last]}
        wanted = model.head(torch.cat([parts[name] for name in readout], dim=1))
        torch.testing.assert_close(model(IDS, LENGTHS), wanted, **tolerance(torch.float32))

    def test_features_are_read_without_tokens(self) -> None:
        model = ClassifierConfig(cell="lstm", hidden=5, readout="hc", centroids=(3,)).build(features=2, classes=10)
        inputs, lengths = torch.randn(3, 6, 2), torch.tensor([6, 1, 4])
        together = model(inputs, lengths)
        apart = torch.cat([model(inputs[row : row + 1, :length]) for row, length in enumerate(lengths.tolist())])
        torch.testing.assert_close(together, apart, **tolerance(torch.float32))
        assert model.embedding is None
        assert model.states(inputs, lengths).has_start is False

    def test_equal_lengths_run_as_a_dense_batch_cut_to_them(self) -> None:
        model = built(start_token=False)
        shorter = model(IDS, torch.tensor([2, 2, 2]))
        assert torch.equal(shorter, model(IDS[:, :2]))

    def test_an_empty_batch_gives_empty_logits_that_carry_a_gradient(self) -> None:
        for steps in (0, 3):
            logits = built()(IDS[:0, :steps], LENGTHS[:0])
            assert logits.shape == (0, 2)
            logits.sum().backward()


class TestDropout:
    def test_nothing_is_dropped_at_rest(self) -> None:
        model, plain = built(embedding_dropout=0.5, dropout=0.5).eval(), built()
        assert torch.equal(model(IDS, LENGTHS), plain(IDS, LENGTHS))
        assert torch.equal(model.train().states(IDS).states[0], plain.states(IDS).states[0])

    @pytest.mark.parametrize("name", ["embedding_dropout", "dropout"])
    def test_what_is_dropped_is_drawn_from_the_generator(self, name: str) -> None:
        model, before = built(**{name: 0.5}), torch.get_rng_state()
        one, same, *others = (model(IDS, LENGTHS, generator=seeded(seed)) for seed in (1, 1, *range(2, 20)))
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.equal(one, same)
        assert not all(torch.equal(one, other) for other in others)

    def test_a_token_falls_out_everywhere_and_the_marks_of_begin_and_end_never(self) -> None:
        model = built(embedding_dropout=0.9, centroids=())
        empty, one = torch.zeros(1, 0, dtype=torch.long), torch.tensor([[0, 0, 0]])
        at_rest = built(centroids=())
        silent = copy.deepcopy(at_rest)
        assert silent.embedding is not None
        with torch.no_grad():
            silent.embedding.weight[:2] = 0
        dropped = 0
        for seed in range(30):
            assert torch.equal(model(empty, generator=seeded(seed)), at_rest(empty))
            dropped += int(torch.allclose(model(one, generator=seeded(seed)), silent(one)))
        assert 20 <= dropped < 30  # 27 are expected, with a deviation of 1.6

    def test_entries_of_embeddings_are_dropped_each_for_itself(self) -> None:
        model = built(dropout=0.5, embedding=400)
        read: list[torch.Tensor] = []
        model.layer.register_forward_pre_hook(lambda _, given: read.append(given[0]))
        model(torch.tensor([[0, 1]]), generator=seeded())
        assert model.embedding is not None
        for row, token in zip(read[0][:, 0], [model.start_id, 0, 1], strict=True):
            factor = (row / model.embedding.weight[token]).detach()
            torch.testing.assert_close(factor[factor != 0], torch.full_like(factor[factor != 0], 2.0))
            assert 140 < int((factor == 0).sum()) < 260

    @pytest.mark.parametrize("name", ["embedding_dropout", "dropout"])
    def test_replicas_draw_masks_of_their_own(self, name: str) -> None:
        model = built(**{name: 0.5})
        weights = {key: torch.stack([value.detach()] * 20) for key, value in model.named_parameters()}

        def logits(own: dict[str, torch.Tensor]) -> torch.Tensor:
            found: torch.Tensor = functional_call(model, own, (IDS,))
            return found

        one, *others = vmap(logits, randomness="different")(weights)
        assert not all(torch.equal(one, other) for other in others)

    def test_what_the_head_reads_keeps_its_mean(self) -> None:
        model = ClassifierConfig(hidden=5, readout="h", dropout=0.3).build(features=1, classes=2, generator=seeded())
        x = torch.ones(20_000, 2, 1)
        with torch.no_grad():
            logits = model(x, generator=seeded())
            torch.testing.assert_close(logits.mean(0), model.eval()(x[:1])[0], rtol=0.0, atol=0.005)
        assert float(logits.std(0).min()) > 0.02


class TestTraces:
    def test_a_trace_shows_start_and_every_letter_and_nothing_beyond_the_end(self) -> None:
        model = built(cell="lstm", layers=2, centroids=(3, 2)).train()
        trace = model.states(IDS, LENGTHS, collect=("states", "cells", "gates", "probabilities"))
        assert trace.has_start
        assert trace.lengths.tolist() == [4, 1, 3]
        assert [tuple(each.shape) for each in trace.states] == [(3, 4, 5)] * 2
        shown = [each for each in trace.probabilities if each is not None]
        for each in (*shown, *trace.states, *trace.cells, *trace.gates[0].values()):
            assert not each.requires_grad
            assert not each[~trace.mask].any()
            assert bool((each[trace.mask] != 0).any(1).all())
        torch.testing.assert_close(shown[0].sum(2), trace.mask.float(), **tolerance(torch.float32))

    def test_the_path_is_the_likeliest_centroid_and_minus_one_beyond_the_end(self) -> None:
        model = built(layers=2, centroids=(3, 2)).with_transition("argmax")
        trace = model.states(IDS, LENGTHS)
        for layer in range(2):
            found = model.centroids_of(layer)
            assert found is not None
            path = trace.path(layer)
            assert torch.equal(path < 0, ~trace.mask)
            chosen = found[1][path.clamp(min=0)]
            torch.testing.assert_close(
                trace.states[layer][trace.mask], chosen[trace.mask], **tolerance(torch.float32)
            )  # fmt: skip

    def test_a_path_that_was_not_collected_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="without probabilities"):
            built().states(IDS, collect=("states",)).path()
        with pytest.raises(ArgumentError, match="with centroids"):
            built(centroids=()).states(IDS).path()


class TestViews:
    def test_a_hard_view_shares_the_parameters_and_leaves_the_model_alone(self) -> None:
        model = built().train()
        hard = model.with_transition("argmax", temperature=0.5)
        assert (hard.config.transition, hard.config.temperature) == ("argmax", 0.5)
        assert hard.layer.transforms == (Centroids(3, transition="argmax", temperature=0.5, noise=0.0),)
        assert model.layer.transforms == (Centroids(3, noise=0.0),)
        assert model.config.transition == "mixture"
        before = hard(IDS)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.5)
        assert not torch.equal(hard(IDS), before), "what training does is seen by the view"
        assert [a is b for a, b in zip(model.parameters(), hard.parameters(), strict=True)] == [True] * 8
        hard.eval()
        assert all(module.training for module in model.modules())

    def test_asking_leaves_the_mode_as_it_is_and_draws_nothing(self) -> None:
        model = built(transition="noisy", noise=1.0).train()
        before = torch.get_rng_state()
        assert np.array_equal(model.probabilities(["01"]), model.probabilities(["01"]))
        assert torch.equal(model.states(IDS).states[0], model.states(IDS).states[0])
        assert torch.equal(torch.get_rng_state(), before)
        assert all(module.training for module in model.modules())
        soft = model.with_transition("mixture").eval()
        assert torch.equal(soft(IDS), model.eval()(IDS)), "at rest the noisy transition is the mixture"

    def test_threads_may_ask_while_others_train(self) -> None:
        model = built(transition="noisy", noise=1.0).train()
        words = ["01" * length for length in range(20)]
        wanted = model.probabilities(words)

        def ask(turn: int) -> bool:
            if turn % 2:
                model(IDS, generator=seeded(turn)).sum().backward()
                return all(module.training for module in model.modules())
            return np.array_equal(model.probabilities(words), wanted)

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, range(40)))

    def test_retuning_changes_the_config_with_the_layer(self) -> None:
        model = built(layers=2, centroids=(3, 2), transition="noisy")
        model.retune(noise=0.25, temperature=2.0)
        assert (model.config.noise, model.config.temperature) == (0.25, 2.0)
        assert [(each.noise, each.temperature) for each in model.layer.transforms] == [(0.25, 2.0)] * 2  # type: ignore[attr-defined]

    def test_settings_that_are_none_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="without centroids"):
            built(centroids=()).with_transition("argmax")
        with pytest.raises(ArgumentError, match=r"settings \['k'\]"):
            built().retune(k=4)
        with pytest.raises(ArgumentError, match="transition"):
            built().with_transition("hard")
        with pytest.raises(ArgumentError, match="argmax"):
            built().retune(temperature=0.0)

    def test_a_model_is_copied_and_its_weights_go_into_another(self) -> None:
        model = built(cell="peephole", layers=2, centroids=(3, 2))
        twin, other = copy.deepcopy(model), built(cell="peephole", layers=2, centroids=(3, 2), orthogonal=True)
        other.load_state_dict(model.state_dict())
        for each in (twin, other):
            assert torch.equal(each(IDS, LENGTHS), model(IDS, LENGTHS))

    def test_a_config_goes_through_a_file(self) -> None:
        config = ClassifierConfig(cell="lstm", layers=2, centroids=(3, 2), noise=0.5)
        read = json.loads(json.dumps(asdict(config)))
        assert ClassifierConfig(**read | {"centroids": tuple(read["centroids"])}) == config


class TestWords:
    def test_texts_symbols_and_ids_are_the_same_word(self) -> None:
        model = built()
        found = model.probabilities(["", "0110", ["0", "1", "1", "0"], [0, 1, 1, 0], np.array([0, 1, 1, 0]).tolist()])
        assert found.shape == (5, 2)
        np.testing.assert_allclose(found.sum(1), 1.0)
        np.testing.assert_allclose(found[1:], np.broadcast_to(found[1], (4, 2)))
        assert not np.allclose(found[0], found[1])

    def test_the_size_of_a_batch_and_the_order_of_words_change_nothing(self) -> None:
        model = built().double()
        words = ["01" * (7 * i % 5) + "1" * (i % 3) for i in range(23)]
        whole = model.probabilities(words)
        np.testing.assert_allclose(model.probabilities(words, batch=4), whole, atol=1e-12)
        np.testing.assert_allclose(model.probabilities(words[::-1])[::-1], whole, atol=1e-12)
        classes = model.classify(words)
        assert classes.dtype == np.int64
        assert classes.tolist() == whole.argmax(1).tolist()
        assert model.classify([]).shape == (0,)

    def test_symbols_may_have_several_characters(self) -> None:
        model = ClassifierConfig(hidden=4).build(tokens=2, classes=3, symbols=("good", "bad"))
        assert model.classify([["good", "bad"], []]).shape == (2,)

    @pytest.mark.parametrize(
        ("word", "told"),
        [("012", r"words\[1\]\[2\]: got '2', wanted one of 0, 1"), ([0, 7], r"words\[1\]\[1\]: got 7, .* from 0 to 1")],
    )
    def test_an_unknown_symbol_is_named_with_its_place(self, word: Any, told: str) -> None:
        with pytest.raises(UnknownSymbolError, match=told):
            built().classify(["01", word])

    def test_words_need_an_alphabet(self) -> None:
        model = ClassifierConfig(hidden=4).build(tokens=2, classes=2)
        with pytest.raises(UnknownSymbolError, match="symbols="):
            model.classify(["01"])
        pixels = ClassifierConfig(hidden=4, readout="h").build(features=1, classes=2)
        with pytest.raises(ArgumentError, match="model of features"):
            pixels.classify([[1]])
        with pytest.raises(ArgumentError, match=r"Write \[word\]"):
            built().classify("01")

    def test_samples_average_to_the_law_of_the_sampled_network(self) -> None:
        model = built(transition="sample", temperature=0.3).double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)
        one = model.probabilities(["01"], generator=seeded())
        assert np.array_equal(one, model.probabilities(["01"], generator=seeded()))
        single = model.probabilities(["01"] * 3000, generator=seeded(1))
        assert single[:, 0].std() > 0.02, "single passes differ"
        mean = model.probabilities(["01", "1"], samples=3000, batch=500, generator=seeded(2))
        error = single[:, 0].std() * (2 / 3000) ** 0.5
        assert abs(mean[0, 0] - single[:, 0].mean()) < 4 * error
        np.testing.assert_allclose(mean.sum(1), 1.0)

    def test_samples_of_what_does_not_draw_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match='with_transition\\("sample"\\)'):
            built().classify(["01"], samples=5)
        with pytest.raises(ArgumentError, match="at least 1"):
            built(transition="sample").classify(["01"], samples=0)
        with pytest.raises(ArgumentError, match="at least 1"):
            built().classify(["01"], batch=0)


class TestMemoryless:
    @pytest.mark.parametrize("cell", CELLS)
    def test_only_a_cell_without_memory_and_centroids_everywhere_make_an_automaton(self, cell: str) -> None:
        model = built(cell=cell, layers=2)
        assert model.memoryless == (cell not in ("lstm", "peephole"))
        assert ("memory" in model.why_not_memoryless) != model.memoryless

    def test_a_layer_without_centroids_is_named(self) -> None:
        assert built(layers=3, centroids=(3, 0, 2)).why_not_memoryless == "layer 1 (counted from 0) has no centroids"
        assert built(centroids=()).why_not_memoryless == "no layer has centroids"


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            ({"cell": "transformer"}, "cell"),
            ({"hidden": 0}, "hidden"),
            ({"layers": 1.5}, "layers"),
            ({"embedding": 0}, "embedding"),
            ({"centroids": 10}, r"\(10,\) gives every layer"),
            ({"centroids": (3, 3)}, "2 numbers for 1 layer"),
            ({"centroids": (-1,)}, "centroids"),
            ({"temperature": 0.0}, "temperature"),
            ({"similarity": "cosine"}, "similarity"),
            ({"transition": "hard"}, "transition"),
            ({"noise": -1.0}, "noise"),
            ({"forget_bias": float("nan")}, "forget_bias"),
            ({"input_gain": 0.0}, "input_gain: got 0.0, wanted a number above 0"),
            ({"input_deviation": -1.0}, "input_deviation: got -1.0, wanted a number above 0"),
            ({"input_mean": float("inf")}, "input_mean"),
            ({"input_mean": 0.5, "cell": "rac"}, "that cell has no bias"),
            ({"dropout": 1.5}, "ClassifierConfig.dropout"),
            ({"embedding_dropout": -0.1}, "embedding_dropout"),
            ({"readout": "mean"}, "readout"),
            ({"reset_before": True, "cell": "lstm"}, 'cell="gru" with it'),
            ({"nonlinearity": "relu"}, 'cell="rnn" with it'),
        ],
    )
    def test_settings_outside_their_domain_are_refused(self, settings: dict[str, Any], told: str) -> None:
        unchecked = ClassifierConfig.__new__(ClassifierConfig)  # past the run-time check of annotations
        for name, value in (asdict(ClassifierConfig()) | settings).items():
            object.__setattr__(unchecked, name, value)
        with pytest.raises(ArgumentError, match=told):
            unchecked.__post_init__()

    @pytest.mark.parametrize(
        ("sizes", "told"),
        [
            ({}, "neither tokens nor features"),
            ({"tokens": 2, "features": 1}, "tokens and features"),
            ({"tokens": 0}, "tokens"),
            ({"tokens": 2, "classes": 1}, "classes"),
            ({"tokens": 2, "symbols": "aa"}, "2 different texts"),
            ({"tokens": 2, "symbols": "abc"}, "2 different texts"),
            ({"features": 1}, 'Give readout="h"'),
        ],
    )
    def test_sizes_that_make_no_model_are_refused(self, sizes: dict[str, Any], told: str) -> None:
        with pytest.raises(ArgumentError, match=told):
            ClassifierConfig(hidden=4).build(**{"classes": 2} | sizes)

    def test_settings_that_mean_nothing_for_what_is_read_are_refused(self) -> None:
        for config in (ClassifierConfig(input_mean=0.5), ClassifierConfig(input_deviation=2.0)):
            with pytest.raises(ArgumentError, match=r"for tokens, wanted .* it is for features\. Embeddings start"):
                config.build(tokens=2, classes=2)
        with pytest.raises(ArgumentError, match=r"0\.1 for features, wanted 0\.0: it is for tokens"):
            ClassifierConfig(embedding_dropout=0.1, readout="h").build(features=1, classes=2)

    def test_a_readout_that_the_cell_or_the_inputs_do_not_have_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="memory c"):
            built(cell="gru", readout="hc")
        with pytest.raises(ArgumentError, match='Give readout="hc"'):
            ClassifierConfig(cell="lstm").build(features=1, classes=2)

    def test_tokens_outside_the_alphabet_are_named_with_row_and_step_but_not_in_the_padding(self) -> None:
        model = built()
        for wrong in (2, -1):
            ids = IDS.clone()
            ids[2, 1] = wrong
            with pytest.raises(ArgumentError, match=rf"inputs\[2, 1\]: got token {wrong}, wanted a token from 0 to 1"):
                model(ids, LENGTHS)
            assert torch.equal(model(ids, torch.tensor([3, 0, 1])), model(IDS, torch.tensor([3, 0, 1])))

    def test_lengths_that_do_not_fit_are_refused(self) -> None:
        model = built()
        with pytest.raises(LengthError, match=r"lengths\[1\]: got 4, wanted from 0 to 3"):
            model(IDS, torch.tensor([3, 4, 1]))
        with pytest.raises(LengthError, match=r"lengths\[2\]: got -1"):
            model(IDS, torch.tensor([3, 1, -1]))
        with pytest.raises(ShapeError, match=r"\(3,\)"):
            model(IDS, LENGTHS[:2])
        with pytest.raises(DtypeError, match="whole numbers"):
            model(IDS, LENGTHS.float())

    def test_an_empty_sequence_without_a_start_token_is_refused_by_its_row(self) -> None:
        model = built(start_token=False)
        with pytest.raises(LengthError, match=r"lengths\[1\]: got an empty sequence.*start_token=True"):
            model(IDS, LENGTHS)
        with pytest.raises(LengthError, match=r"lengths\[0\]"):
            model(IDS[:, :0])
        pixels = ClassifierConfig(hidden=4, readout="h").build(features=1, classes=2)
        with pytest.raises(LengthError, match=r"lengths\[1\].*Leave it out"):
            pixels(torch.zeros(2, 3, 1), torch.tensor([3, 0]))

    def test_inputs_of_another_kind_are_refused(self) -> None:
        model = built()
        with pytest.raises(DtypeError, match="ids of tokens"):
            model(IDS.float())
        with pytest.raises(ShapeError, match=r"\(batch, steps\)"):
            model(IDS[0])
        pixels = ClassifierConfig(hidden=4, readout="h").build(features=1, classes=2)
        with pytest.raises(ShapeError, match=r"\(batch, steps, 1\)"):
            pixels(torch.zeros(2, 3))
        with pytest.raises(DtypeError, match="float64"):
            pixels(torch.zeros(2, 3, 1, dtype=torch.float64))
