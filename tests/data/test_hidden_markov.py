"""Tasks of hidden Markov models: drawn as they should be, and the best possible tagger is the best."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import HiddenMarkovTagger, hidden_markov_features, hidden_markov_sentences, score_spans
from statewise.data.hidden_markov import best_states, state_posteriors
from statewise.data.tag_schemes import find_malformed
from statewise.errors import ArgumentError, UnknownSymbolError


@given(seed=st.integers(0, 2**32 - 1), states=st.integers(1, 3), steps=st.integers(1, 5))
def test_recursions_agree_with_a_list_of_all_chains(seed: int, states: int, steps: int) -> None:
    generator = np.random.default_rng(seed)
    start = generator.dirichlet(np.ones(states))
    moves = generator.dirichlet(np.ones(states), size=states)
    likelihood = generator.random((steps, states)) + 1e-3
    chains = list(product(range(states), repeat=steps))

    def joint(chain: tuple[int, ...], upto: int) -> float:
        found = start[chain[0]] * likelihood[0, chain[0]]
        for step in range(1, upto):
            found *= moves[chain[step - 1], chain[step]] * likelihood[step, chain[step]]
        return float(found)

    for causal in (False, True):
        wanted = np.zeros((steps, states))
        for step in range(steps):
            upto = step + 1 if causal else steps
            for chain in product(range(states), repeat=upto):
                wanted[step, chain[step]] += joint(chain, upto)
        wanted /= wanted.sum(-1, keepdims=True)
        found = state_posteriors(start, moves, likelihood, causal=causal)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    best = tuple(best_states(start, moves, likelihood).tolist())
    assert joint(best, steps) == pytest.approx(max(joint(chain, steps) for chain in chains), rel=1e-10)


class TestFeatures:
    def test_the_task_of_the_paper_s_stand_in(self) -> None:
        train, test = hidden_markov_features(), hidden_markov_features(2000, seed=777)
        assert (train.inputs.shape, train.targets.shape, train.means.shape) == ((100, 12, 8), (100, 12), (5, 8))
        assert (train.inputs.dtype, train.targets.dtype) == (torch.float32, torch.int64)
        assert torch.equal(train.means, test.means)
        assert torch.equal(train.means, torch.from_numpy(np.random.default_rng(123).standard_normal((5, 8))))
        # 22,000 moves: a class is kept with probability 0.8 + 0.2 / 5; the noise has a deviation of 1.5.
        assert float((test.targets[:, 1:] == test.targets[:, :-1]).double().mean()) == pytest.approx(0.84, abs=0.01)
        assert test.targets[:, 0].bincount(minlength=5).tolist() == pytest.approx([400] * 5, abs=80)
        assert float((test.inputs - test.means[test.targets]).std()) == pytest.approx(1.5, rel=0.01)

    def test_the_same_seed_gives_the_same_sequences(self) -> None:
        assert torch.equal(hidden_markov_features(3, seed=1).inputs, hidden_markov_features(3, seed=1).inputs)
        assert not torch.equal(hidden_markov_features(3, seed=1).inputs, hidden_markov_features(3, seed=2).inputs)

    def test_posteriors_are_calibrated_and_know_more_with_the_future(self) -> None:
        test = hidden_markov_features(2000, seed=777)
        whole, past = test.best(), test.best(causal=True)
        assert past.error > whole.error
        assert past.nll > whole.nll
        for causal, best in ((False, whole), (True, past)):
            found = test.posteriors(causal=causal)
            torch.testing.assert_close(found.sum(-1), torch.ones_like(found.sum(-1)))
            # Whoever is right about the probabilities is as often right as he says.
            assert float(found.amax(-1).mean()) == pytest.approx(best.accuracy, abs=0.01)

    def test_classes_that_never_stay_or_always_do(self) -> None:
        fixed = hidden_markov_features(50, stay=1.0)
        assert (fixed.targets == fixed.targets[:, :1]).all()
        torch.testing.assert_close(fixed.posteriors()[:, 0], fixed.posteriors()[:, -1])
        alone = hidden_markov_features(50, stay=0.0)
        torch.testing.assert_close(alone.posteriors(), alone.posteriors(causal=True))

    def test_bad_settings_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"hidden_markov_features\.count: got 0"):
            hidden_markov_features(0)
        with pytest.raises(ArgumentError, match=r"stay=1\.5"):
            hidden_markov_features(stay=1.5)


class TestSentences:
    DATA = hidden_markov_sentences(train=300, valid=10, test=300, seed=4)

    def test_they_are_well_formed_and_repeatable(self) -> None:
        data = self.DATA
        assert (len(data.train), len(data.valid), len(data.test)) == (300, 10, 300)
        assert data.train.scheme == "iob2"
        assert find_malformed(data.train.tags, "iob2") is None
        assert set(data.train.spans_by_type()) == {"LOC", "ORG", "PER"}
        again = hidden_markov_sentences(train=5, valid=10, test=300, seed=4)
        assert (again.valid, again.test) == (data.valid, data.test)
        assert hidden_markov_sentences(train=5, seed=5).train != again.train

    def test_probabilities_sum_to_one(self) -> None:
        model = HiddenMarkovTagger()
        np.testing.assert_allclose(model.moves.sum(-1), 1)
        np.testing.assert_allclose(model.shown.sum(-1), 1)
        assert model.start.sum() == pytest.approx(1)

    def test_context_matters(self) -> None:
        """A tagger that knows each word's most frequent tag is far behind the one that reads its neighbours."""
        model, test = self.DATA.model, self.DATA.test
        frequency = model.shown * np.linalg.matrix_power(model.moves.T, 50)[:, :1]
        of_word = {word: model.tags[state] for word, state in zip(model.words, frequency.argmax(0), strict=True)}
        alone = score_spans(test, [[of_word[word] for word in row] for row in test.sentences])
        best = score_spans(test, model.tag(test.sentences))
        assert best.f1 > alone.f1 + 0.25
        assert best.accuracy == pytest.approx(model.best(test).accuracy)

    def test_posterior_tags_are_the_most_accurate_and_viterbis_are_well_formed(self) -> None:
        model = self.DATA.model
        data = model.sample(400, seed=9)
        best, chains = model.tag(data.sentences), model.viterbi(data.sentences)
        assert score_spans(data, best).accuracy >= score_spans(data, chains).accuracy - 0.005
        assert find_malformed(chains, "iob2") is None
        # As often right as the probabilities say.
        sure = np.concatenate([model.posteriors(row).max(-1) for row in data.sentences])
        assert model.best(data).accuracy == pytest.approx(float(sure.mean()), abs=0.015)

    def test_words_that_all_types_share_make_it_harder(self) -> None:
        errors = [
            HiddenMarkovTagger(ambiguity).best(HiddenMarkovTagger(ambiguity).sample(300, seed=1)).error
            for ambiguity in (0.0, 0.9)
        ]
        assert errors[0] < 0.5 * errors[1]

    def test_what_does_not_fit_is_refused(self) -> None:
        with pytest.raises(UnknownSymbolError, match="token 1: got 'zebra'"):
            HiddenMarkovTagger().tag([["the", "zebra"]])
        with pytest.raises(ArgumentError, match=r"HiddenMarkovTagger\.ambiguity: got 2"):
            HiddenMarkovTagger(ambiguity=2.0)
        with pytest.raises(ArgumentError, match="lengths="):
            HiddenMarkovTagger().sample(3, lengths=(0, 2))
