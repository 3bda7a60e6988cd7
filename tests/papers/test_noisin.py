"""The known answers and pitfalls of Noisin's language models: sizes, penalties, the mixture, what counts once.

The others are beside this file: the laws (``test_noisin_laws.py``), the noisy and the dropout LSTM
(``test_noisin_layers.py``, ``test_noisin_dropout.py``), and the theory of the penalty (``test_noisin_theory.py``). The
traces of the learning rate, of the averaging and of dynamic evaluation are with these, in ``tests/train``.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from statewise.data import sample_corpus
from statewise.heads import MixtureOfSoftmaxes
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.models.penalties import activation_penalty, temporal_penalty
from statewise.train import Averaging, LanguageTraining, TrainingSettings, evaluate_stream


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (LanguageModelConfig(hidden=(650, 650)), 13_280_400),
        (LanguageModelConfig(hidden=(1500, 1500)), 51_034_000),
        (LanguageModelConfig(hidden=(650, 650), tied=False), 19_780_400),
        (LanguageModelConfig(hidden=(960, 960, 620), embedding=280, head="mixture"), 21_500_620),
        (LanguageModelConfig(hidden=(1150, 1150, 400)), 24_221_600),
    ],
    ids=["medium", "large", "untied", "mixture", "awd"],
)
def test_models_of_the_papers_have_their_numbers_of_parameters(config: LanguageModelConfig, count: int) -> None:
    # Known answer 20, on 10,000 words.
    with torch.device("meta"):
        model = config.build(10_000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_two_experts_mix_their_probabilities_by_their_weights() -> None:
    # Known answer 22: experts (0.9, 0.1) and (0.2, 0.8), evenly mixed, give (0.55, 0.45).
    head = MixtureOfSoftmaxes(1, 2, experts=2, latent=2).double()
    logits = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64).log()
    scale = 10.0  # tanh must reach the logits
    with torch.no_grad():
        head.prior.weight.zero_()
        head.latent.weight.zero_()
        head.latent.bias.copy_((logits / scale).atanh().flatten())
        head.weight.copy_(scale * torch.eye(2))
    found = head.log_prob(torch.ones(1, 1, 1, dtype=torch.float64)).exp().flatten()
    torch.testing.assert_close(found, torch.tensor([0.55, 0.45], dtype=torch.float64))


def test_only_a_mixture_breaks_the_rank_of_the_states(generator: torch.Generator) -> None:
    # Known answer 22: d = 3 gives rank 4 at most, four experts the full rank of 30 words.
    states = torch.randn(40, 1, 3, generator=generator, dtype=torch.float64)
    one = MixtureOfSoftmaxes(3, 30, experts=1).double()
    four = MixtureOfSoftmaxes(3, 30, experts=4).double()
    for head in (one, four):
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.normal_(std=1.5, generator=generator)
            head.bias.zero_()
    ranks = [int(torch.linalg.matrix_rank(head.log_prob(states).squeeze(1).detach())) for head in (one, four)]
    assert ranks == [4, 30]


def test_activation_penalties_of_two_steps() -> None:
    # Known answer 21: factors 2 and 1 give 15 and 4.
    outputs = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    assert 2 * float(activation_penalty(outputs)) == 15.0
    assert float(temporal_penalty(outputs)) == 4.0


def small(**options: object) -> LanguageModel:
    return LanguageModelConfig(hidden=(6, 6), **options).build(len(sample_corpus().vocabulary))  # type: ignore[arg-type]


def test_evaluation_divides_by_the_tokens_that_were_scored() -> None:
    # Pitfall: dividing by the rows of ten columns makes 75.70 of PTB's validation part 75.66.
    stream = sample_corpus().valid
    found = evaluate_stream(small(), stream, batch=10)
    assert found.tokens == len(stream) - 1
    assert math.log(found.perplexity) == pytest.approx(found.nll / (len(stream) - 1))


def test_a_tied_matrix_is_decayed_clipped_and_averaged_once() -> None:
    training = LanguageTraining(small(), TrainingSettings(batch=10), sample_corpus(), device=torch.device("cpu"))
    moved = [id(p) for group in training.optimizer.param_groups for p in group["params"]]
    assert len(moved) == len(set(moved)) == len(list(training.model.parameters()))
    matrix = id(training.model.embedding.weight)
    assert moved.count(matrix) == 1
    assert [id(p) for p in Averaging([*training.model.parameters()] * 2).parameters].count(matrix) == 1


def test_the_norm_of_the_whole_gradient_is_clipped_not_that_of_each_tensor() -> None:
    # Pitfall: at lr 30 the clip of 0.25 bounds an update to 7.5 in norm.
    training = LanguageTraining(small(), TrainingSettings(batch=10), sample_corpus(), device=torch.device("cpu"))
    before = [p.detach().clone() for p in training.model.parameters()]
    next(training.updates())
    moved = torch.cat([(p.detach() - b).flatten() for p, b in zip(training.model.parameters(), before, strict=True)])
    assert float(moved.norm()) <= 7.5 * (1 + 1e-5)


def test_one_seed_gives_identical_noise_in_training() -> None:
    # Known answer 25, through the whole model.
    model, tokens = small(noise="chi-square", gamma=1.5), torch.randint(50, (12, 3))

    def loss(seed: int) -> Tensor:
        return model.loss(tokens[:-1], tokens[1:], generator=torch.Generator().manual_seed(seed)).nll

    assert torch.equal(loss(1111), loss(1111))
    assert not torch.equal(loss(1111), loss(1112))
