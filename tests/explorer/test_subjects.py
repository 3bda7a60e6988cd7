"""What the explorer says of a network is what the network itself computes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from statewise import RNN, Centroids
from statewise.data import TokenStream
from statewise.errors import ArgumentError, LengthError, StatewiseError, UnknownSymbolError
from statewise.explorer import Explorer, Setting
from statewise.explorer.classifying import ClassifierSubject
from statewise.explorer.disturbance import Disturbance
from statewise.explorer.speaking import LanguageSubject
from statewise.explorer.subjects import Example
from statewise.explorer.tagging import TaggerSubject
from statewise.train.evaluation import evaluate_stream
from support import tolerance

CLASSIFIED = {"automaton": "1100100", "lstm": "0100110", "texts": "the film was wonderful of a scene"}
EVERY_CLASSIFIER = pytest.mark.parametrize("name", CLASSIFIED)


def classifier(explorers: dict[str, Explorer], name: str) -> ClassifierSubject:
    subject = explorers[name].runs[0].subject
    assert isinstance(subject, ClassifierSubject)
    return subject


@EVERY_CLASSIFIER
def test_the_classes_after_each_step_are_those_of_the_prefixes(explorers: dict[str, Explorer], name: str) -> None:
    subject = classifier(explorers, name)
    tokens = subject.read(CLASSIFIED[name])
    followed = subject.follow([tokens], Setting())
    known = [token if subject.known(token) else "<unk>" for token in tokens]
    truth = subject.model.probabilities([known[:end] for end in range(len(tokens) + 1)])
    np.testing.assert_allclose(followed.shares[0].numpy(), truth, **tolerance(torch.float32))


@EVERY_CLASSIFIER
def test_states_and_gates_are_those_of_the_model(explorers: dict[str, Explorer], name: str) -> None:
    subject = classifier(explorers, name)
    tokens = subject.read(CLASSIFIED[name])
    told = explorers[name].trace(0, CLASSIFIED[name], Setting())
    symbols = subject.model.symbols or ()
    ids = torch.tensor([[symbols.index(token) for token in tokens]])
    trace = subject.model.states(ids, collect=("states", "cells", "gates", "probabilities"))
    (layer,) = told["layers"]
    torch.testing.assert_close(torch.tensor(layer["states"]), trace.states[0][0], atol=1e-4, rtol=0)
    for gate, values in trace.gates[0].items():
        torch.testing.assert_close(torch.tensor(layer["gates"][gate]), values[0], atol=1e-4, rtol=0)
    centroids = trace.probabilities[0]
    assert centroids is not None
    torch.testing.assert_close(torch.tensor(layer["centroids"]), centroids[0], atol=1e-4, rtol=0)
    assert (layer["cells"] is not None) == (name == "lstm")


def test_rows_of_different_lengths_do_not_disturb_each_other(explorers: dict[str, Explorer]) -> None:
    for name, texts in {
        "lstm": ["01", "", "11010"],
        "speaker": ["the cat", "a"],
        "tagger": ["Anna saw", "Otto"],
    }.items():
        subject = explorers[name].runs[0].subject
        rows = [subject.read(text) for text in texts]
        together = subject.follow(rows, Setting())
        for place, row in enumerate(rows):
            alone = subject.follow([row], Setting())
            length = int(alone.trace.lengths[0])
            torch.testing.assert_close(together.shares[place, :length], alone.shares[0], **tolerance(torch.float32))
            torch.testing.assert_close(together.top[place, :length], alone.top[0], **tolerance(torch.float32))


def test_a_language_model_expects_what_it_expects(explorers: dict[str, Explorer]) -> None:
    subject = explorers["speaker"].runs[0].subject
    assert isinstance(subject, LanguageSubject)
    words = explorers["speaker"].runs[0].examples[0].tokens
    ids = [subject.vocabulary.end_id, *subject.vocabulary.encode(list(words))]
    with torch.no_grad():
        logs, _ = subject.model(torch.tensor(ids).unsqueeze(1))
    followed = subject.follow([words], Setting())
    torch.testing.assert_close(followed.shares[0], logs[:, 0].double().exp(), **tolerance(torch.float32))
    told = explorers["speaker"].trace(0, subject.text(words), Setting())
    truth = [float(logs[step, 0, word].exp()) for step, word in enumerate(ids[1:])]
    assert told["expected"][-1] is None
    assert told["expected"][:-1] == pytest.approx(truth, abs=1e-4)


def test_the_quality_of_a_language_model_is_one_over_its_perplexity(explorers: dict[str, Explorer]) -> None:
    subject = explorers["speaker"].runs[0].subject
    assert isinstance(subject, LanguageSubject)
    examples = list(explorers["speaker"].runs[0].examples[:3])
    found = subject.quality(subject.follow([each.tokens for each in examples], Setting()), examples)
    for quality, example in zip(found.tolist(), examples, strict=True):
        ids = [subject.vocabulary.end_id, *subject.vocabulary.encode(list(example.tokens)), subject.vocabulary.end_id]
        score = evaluate_stream(subject.model, TokenStream(np.array(ids)), device=torch.device("cpu"))
        assert quality == pytest.approx(1 / score.perplexity, rel=1e-4)


def test_a_tagger_says_what_it_says_of_the_sentence_and_of_its_beginnings(explorers: dict[str, Explorer]) -> None:
    subject, example = explorers["tagger"].runs[0].subject, explorers["tagger"].runs[0].examples[1]
    assert isinstance(subject, TaggerSubject)
    words = list(example.tokens)
    with torch.no_grad():
        shares = subject.tagger.probabilities(subject.tagger.read([words]))
    followed = subject.follow([example.tokens], Setting())
    torch.testing.assert_close(followed.shares[0], shares[:, 0].double(), **tolerance(torch.float32))
    assert [list(row) for row in subject.answers(followed)] == subject.tagger.tag([words])
    beginnings = [words[:end] for end in range(1, len(words) + 1)]
    assert [list(row) for row in subject.prefixes(example.tokens, Setting())] == subject.tagger.tag(beginnings)
    right = [subject.outcomes.index(tag) for tag in example.answer]
    truth = float(shares[torch.arange(len(words)), 0, torch.tensor(right)].mean())
    assert float(subject.quality(followed, [example])[0]) == pytest.approx(truth, rel=1e-5)


def test_the_noise_is_added_to_the_state_and_fed_back(generator: torch.Generator) -> None:
    layer = RNN(3, 5, generator=generator)
    inputs = torch.randn(6, 2, 3, generator=generator)
    for mode in ("additive", "multiplicative"):
        view = RNN(3, 5)
        view.load_state_dict(layer.state_dict())
        view.eval().add_first(Disturbance(0.4, mode=mode))
        draws = view.draw(inputs, generator=torch.Generator().manual_seed(1))
        (drawn,) = draws.tensors[0, 0, 0]
        state, states = torch.zeros(2, 5), []
        for step, given in enumerate(inputs):
            plain = torch.tanh(
                given @ layer.weight_ih_l0.T + layer.bias_ih_l0 + state @ layer.weight_hh_l0.T + layer.bias_hh_l0
            )
            state = plain + drawn[step] if mode == "additive" else plain * drawn[step]
            states.append(state)
        found, _ = view(inputs, draws=draws)
        torch.testing.assert_close(found, torch.stack(states))


def test_what_is_learnt_cannot_be_put_before_the_others() -> None:
    with pytest.raises(ArgumentError, match=r"add_first: got Centroids, which is learnt"):
        RNN(3, 5).add_first(Centroids(4))


def test_a_trace_without_its_states_has_no_answers(explorers: dict[str, Explorer]) -> None:
    model = classifier(explorers, "lstm").model
    with pytest.raises(ArgumentError, match="a trace without cells"):
        model.prefix_logits(model.states(torch.tensor([[0, 1]]), collect=("states",)))


def test_noise_has_the_spread_that_was_asked_for(explorers: dict[str, Explorer]) -> None:
    """The first state of a network without centroids, many times over."""
    subject = explorers["speaker"].runs[0].subject
    setting = Setting(gamma=0.25, seed=4)
    calm, noisy = subject.follow([("the",)], setting), subject.follow([("the",)] * 400, setting, noisy=True)
    apart = (noisy.top[:, 0] - calm.top[0, 0]).double()
    count = apart.numel()
    assert abs(float(apart.mean())) < 5 * 0.25 / count**0.5
    assert float(apart.std()) == pytest.approx(0.25, rel=5 / (2 * count) ** 0.5)


def test_a_seed_repeats_its_draws_and_another_does_not(explorers: dict[str, Explorer]) -> None:
    for name, text in {"automaton": "110010", "speaker": "the cat", "tagger": "Anna saw Otto"}.items():
        asked = [explorers[name].trace(0, text, Setting(gamma=0.5, seed=seed)) for seed in (7, 7, 8)]
        assert asked[0] == asked[1]
        assert asked[0]["variation"]["moved"] != asked[2]["variation"]["moved"]


def test_without_noise_there_is_no_variation_and_draws_differ_with_it(explorers: dict[str, Explorer]) -> None:
    told = explorers["lstm"].trace(0, "0101", Setting())
    assert told["variation"] is None
    noisy = [explorers["lstm"].trace(0, "0101", Setting(gamma=0.5, draws=3), shown=shown) for shown in range(4)]
    assert noisy[0]["layers"] == told["layers"]
    assert len({str(each["layers"]) for each in noisy}) == 4
    variation = noisy[0]["variation"]
    assert variation["draws"] == 3 == sum(times for _, times in variation["answers"])
    shares = np.array([[share for _, share in each["outcomes"][-1]] for each in noisy[1:]])
    np.testing.assert_allclose(variation["low"][-1], shares.min(0), atol=1e-4)
    np.testing.assert_allclose(variation["high"][-1], shares.max(0), atol=1e-4)


def test_a_temperature_changes_what_is_shown_and_not_the_model(explorers: dict[str, Explorer]) -> None:
    subject = classifier(explorers, "lstm")
    trained = subject.temperature
    cold = explorers["lstm"].trace(0, "0110", Setting(temperature=0.01))["layers"][0]["centroids"]
    warm = explorers["lstm"].trace(0, "0110", Setting(temperature=100.0))["layers"][0]["centroids"]
    assert max(cold[-1]) > 0.9 > 0.3 > max(warm[-1])
    assert subject.temperature == trained
    truth = subject.model.with_transition(subject.model.config.transition, temperature=0.01)
    ids = torch.tensor([[0, 1, 1, 0]])
    centroids = truth.states(ids).probabilities[0]
    assert centroids is not None
    torch.testing.assert_close(torch.tensor(cold), centroids[0], atol=1e-4, rtol=0)


def test_what_cannot_be_read_is_refused_by_name(explorers: dict[str, Explorer]) -> None:
    with pytest.raises(UnknownSymbolError, match=r"symbol 2.*'x'.*one of '0', '1'"):
        explorers["automaton"].trace(0, "0x", Setting())
    with pytest.raises(LengthError, match=r"257 tokens.*at most 256"):
        explorers["automaton"].trace(0, "01" * 128 + "1", Setting())
    with pytest.raises(LengthError, match="no tokens"):
        explorers["tagger"].trace(0, " ", Setting())
    with pytest.raises(ArgumentError, match="run: got 1"):
        explorers["tagger"].trace(1, "a", Setting())


def test_a_strange_word_is_read_as_unknown_and_marked(explorers: dict[str, Explorer]) -> None:
    told = explorers["texts"].trace(0, "the zebra", Setting())
    assert [token["known"] for token in told["tokens"]] == [True, False]
    same = explorers["texts"].trace(0, "the <script>alert(1)</script>", Setting())
    assert told["outcomes"][0] == same["outcomes"][0]


def test_bounds_of_a_setting() -> None:
    bad: dict[str, tuple[Any, ...]] = {
        "gamma": (-0.1, 10.5, float("nan")),
        "temperature": (0.0, 1e9, float("inf")),
        "draws": (0, 33, True),
        "seed": (-1, 2**31),
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(StatewiseError, match=name):
                Setting(**{name: value})


def test_examples_keep_their_answers(explorers: dict[str, Explorer]) -> None:
    for name, parts in product(explorers, ({"train", "valid"},)):
        examples = explorers[name].runs[0].examples
        assert 48 <= len(examples) <= 60
        assert {each.part for each in examples} == (parts if name != "automaton" else {"train"})
        assert all(isinstance(each, Example) for each in examples)
    automaton = explorers["automaton"].runs[0]
    for each in automaton.examples:
        assert each.answer == (("reject", "accept")["000" not in "".join(each.tokens)],)
