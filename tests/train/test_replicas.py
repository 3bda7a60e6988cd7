"""Classifiers side by side are what each would be alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from statewise.automata import MooreMachine, extract
from statewise.data import Sequences
from statewise.errors import ArgumentError, NotMemorylessError
from statewise.models import ClassifierConfig
from statewise.train.prefix_tree import PrefixTree
from statewise.train.replicas import Replicas

TEXTS = ["", "a", "b", "ab", "ba", "abb", "bbb", "aabb"]
WORDS = Sequences.from_words(TEXTS, [0, 1, 2, 0, 1, 2, 0, 1], classes=("x", "y", "z"))
CONFIGS = [
    ClassifierConfig(cell="multiplicative", hidden=6, embedding=4, centroids=(5,)),
    ClassifierConfig(cell="gru", hidden=6, embedding=4, centroids=(5,)),
    ClassifierConfig(cell="gru", hidden=6, centroids=(5,), reset_before=True, readout="h"),
    ClassifierConfig(cell="mgu", hidden=6, embedding=4, centroids=(5,), similarity="euclidean"),
    ClassifierConfig(cell="rnn", hidden=6, embedding=4, centroids=(5,), similarity="sqeuclidean"),
    ClassifierConfig(cell="rnn", nonlinearity="modrelu", hidden=6, embedding=4, centroids=(5,), temperature=0.5),
    ClassifierConfig(cell="rac", hidden=6, embedding=4, centroids=(5,)),
]


def names(config: ClassifierConfig) -> str:
    return f"{config.cell}-{config.similarity}-{config.readout}-{config.nonlinearity}"


@pytest.mark.parametrize("config", CONFIGS, ids=names)
class TestReplicas:
    def test_logits_and_all_gradients_are_those_of_each_model(self, config: ClassifierConfig) -> None:
        replicas = Replicas(config, WORDS, seeds=(3, 4, 5))
        tree = PrefixTree.of(WORDS)
        weights = torch.randn(3, len(WORDS), 3, generator=torch.Generator().manual_seed(0))
        logits = replicas.read_out(replicas.states(tree, noise=None)[:, torch.from_numpy(tree.ends)])
        (logits * weights).sum().backward()
        for replica in range(3):
            model = replicas.model(replica)
            tokens, lengths, _ = WORDS.padded(range(len(WORDS)))
            alone = model(tokens, lengths)
            torch.testing.assert_close(logits[replica], alone, rtol=1e-4, atol=1e-5)
            (alone * weights[replica]).sum().backward()
            for name, parameter in model.named_parameters():
                grad = replicas.parameters[name].grad
                expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                found = torch.zeros_like(parameter) if grad is None else grad[replica]
                torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)

    def test_the_tables_are_those_that_extraction_reads_off_each_model(self, config: ClassifierConfig) -> None:
        replicas = Replicas(config, WORDS, seeds=(3, 4))
        with torch.no_grad():
            for parameter in replicas.parameters.values():
                parameter.mul_(2.5)  # far from ties, and with several states
        successors, starts, outputs = replicas.tables()
        for replica in range(2):
            read = MooreMachine(
                alphabet=WORDS.symbols,
                transitions=successors[replica],
                outputs=outputs[replica],
                start=int(starts[replica]),
                classes=WORDS.classes,
            )
            assert read.minimise() == extract(replicas.model(replica), classes=WORDS.classes).machine


def test_seeds_give_different_weights_and_the_same_seed_the_same() -> None:
    first, second = Replicas(CONFIGS[0], WORDS, seeds=(3, 4)), Replicas(CONFIGS[0], WORDS, seeds=(4, 3))
    for name, stacked in first.parameters.items():
        torch.testing.assert_close(stacked.flip(0), second.parameters[name])
    assert not torch.equal(*first.parameters["layer.weight_hh_l0"])


def test_noise_enters_before_the_softmax() -> None:
    replicas = Replicas(CONFIGS[0], WORDS, seeds=(3,))
    tree = PrefixTree.of(WORDS)
    noise = torch.zeros(1, len(tree), 5)
    torch.testing.assert_close(replicas.states(tree, noise), replicas.states(tree, None))
    noise[:, :, 2] = 1e4
    forced = replicas.parameters["layer.centroids_l0"][:, 2:3].expand(-1, len(tree), -1)
    torch.testing.assert_close(replicas.states(tree, noise), forced)


@pytest.mark.parametrize(
    "config",
    [
        ClassifierConfig(cell="lstm", hidden=4, centroids=(3,)),
        ClassifierConfig(hidden=4),
        ClassifierConfig(hidden=4, layers=2, centroids=(3,)),
        ClassifierConfig(hidden=4, centroids=(3,), start_token=False),
    ],
)
def test_what_is_no_automaton_is_refused(config: ClassifierConfig) -> None:
    with pytest.raises(NotMemorylessError, match="wanted one layer of a memory-less cell"):
        Replicas(config, WORDS, seeds=(0,))


def test_nothing_is_drawn_from_the_global_generator() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    Replicas(CONFIGS[0], WORDS, seeds=(1, 2)).model(0)
    assert np.array_equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", ["dropout", "embedding_dropout", "zoneout", "weight_drop", "recurrent_dropout"])
def test_dropout_is_refused_rather_than_forgotten(name: str) -> None:
    config = replace(ClassifierConfig(hidden=4, centroids=(3,)), **{name: 0.5})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=rf"ClassifierConfig\.{name}: got 0\.5.*train_classifier has it"):
        Replicas(config, WORDS, seeds=(1,))
