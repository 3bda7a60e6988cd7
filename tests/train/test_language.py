"""The training loop of language models."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statewise.data import Columns, sample_corpus
from statewise.errors import ArgumentError, DivergedError, RunFolderError
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.train import (
    LanguageTraining,
    RunFolder,
    TrainingSettings,
    load_language_model,
    precisely,
    train_language_model,
)
from support import tolerance

CPU = torch.device("cpu")
CONFIG = LanguageModelConfig(hidden=(8, 8))
SETTINGS = TrainingSettings(epochs=2, batch=10, bptt=20, lr=5.0)

pytestmark = pytest.mark.usefixtures("one_thread")


def seeded(config: LanguageModelConfig = CONFIG) -> LanguageModel:
    return config.build(len(sample_corpus().vocabulary), generator=torch.Generator().manual_seed(1111))


def trained(settings: TrainingSettings, model: LanguageModel, epochs: int = 1) -> LanguageTraining:
    training = LanguageTraining(model, settings, sample_corpus(), device=CPU)
    torch.manual_seed(0)
    for _ in range(epochs):
        for _ in training.updates():
            pass
        training.close_epoch()
    return training


def by_hand(model: LanguageModel, epochs: int) -> tuple[list[float], list[Tensor]]:
    """The recipe written out with torch's own modules: perplexities of training, and the weights."""
    lstm = nn.LSTM(8, 8, 2)
    lstm.load_state_dict(model.layers[0].state_dict())
    embedding, bias = nn.Parameter(model.embedding.weight.detach().clone()), nn.Parameter(torch.zeros(model.words))
    parameters = [*lstm.parameters(), embedding, bias]
    optimizer = torch.optim.SGD(parameters, lr=5.0)
    rows = len(sample_corpus().train) // 10
    text = sample_corpus().train[: rows * 10].view(10, rows).T
    perplexities = []
    for _ in range(epochs):
        total, count, state = 0.0, 0, None
        for start in range(0, rows - 1, 20):
            stop = min(start + 20, rows - 1)
            hidden, state = lstm(F.embedding(text[start:stop], embedding), state)
            logits = F.linear(hidden, embedding, bias)
            loss = F.cross_entropy(logits.flatten(0, 1), text[start + 1 : stop + 1].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.25)
            optimizer.step()
            state = (state[0].detach(), state[1].detach())
            total, count = total + float(loss.detach()) * (stop - start) * 10, count + (stop - start) * 10
        perplexities.append(math.exp(total / count))
    return perplexities, [parameter.detach() for parameter in parameters]


def test_it_does_what_the_recipe_written_by_hand_does(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = []
    train_language_model(CONFIG, SETTINGS, sample_corpus(), tmp_path / "run", on_epoch=records.append)
    perplexities, weights = by_hand(seeded(), 2)
    assert [record["train_perplexity"] for record in records] == pytest.approx(perplexities, rel=1e-5)
    found = RunFolder(tmp_path / "run").load_resume()
    assert found is not None
    last = found[0]
    torch.testing.assert_close(last["model.embedding.weight"], weights[-2], **tolerance(torch.float32))
    torch.testing.assert_close(last["model.layers.0.weight_hh_l1"], weights[5], **tolerance(torch.float32))


def test_the_folder_holds_the_best_model_and_its_numbers(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=4, lr=20.0)
    result = train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    epochs, final = run.metrics()[:-1], run.metrics()[-1]
    assert result.valid_perplexity == min(record["valid_perplexity"] for record in epochs)
    assert final == {
        "best_epoch": result.best_epoch,
        "valid_perplexity": result.valid_perplexity,
        "test_perplexity": result.test_perplexity,
    }
    model, vocabulary, told = load_language_model(tmp_path / "run")
    assert vocabulary == sample_corpus().vocabulary
    assert told["training"]["lr"] == 20.0
    from statewise.train import evaluate_stream

    assert evaluate_stream(model, sample_corpus().test).perplexity == result.test_perplexity
    assert math.isclose(
        evaluate_stream(model, sample_corpus().valid, batch=10).perplexity, result.valid_perplexity, rel_tol=1e-12
    )


def test_the_global_generator_is_left_as_it_was(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    config = replace(CONFIG, noise="gaussian", gamma=0.5)
    train_language_model(config, replace(SETTINGS, epochs=1), sample_corpus(), tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


def test_one_seed_gives_one_run_and_another_seed_another(tmp_path: Path) -> None:
    config = replace(CONFIG, noise="gaussian", gamma=0.5)
    found = [
        train_language_model(config, replace(SETTINGS, seed=seed), sample_corpus(), tmp_path / str(i)).test_perplexity
        for i, seed in enumerate((1, 1, 2))
    ]
    assert found[0] == found[1] != found[2]


def test_a_complete_run_goes_on_when_epochs_are_raised(tmp_path: Path) -> None:
    train_language_model(CONFIG, SETTINGS, sample_corpus(), tmp_path / "run")
    longer = replace(SETTINGS, epochs=4)
    raised = train_language_model(CONFIG, longer, sample_corpus(), tmp_path / "run", resume=True)
    at_once = train_language_model(CONFIG, longer, sample_corpus(), tmp_path / "other")
    assert (raised.test_perplexity, raised.best_epoch, raised.epochs) == (
        at_once.test_perplexity,
        at_once.best_epoch,
        4,
    )
    again = train_language_model(CONFIG, longer, sample_corpus(), tmp_path / "run", resume=True)
    assert again.test_perplexity == raised.test_perplexity
    assert len(RunFolder(tmp_path / "run").metrics()) == 5


def test_another_model_cannot_go_on_in_its_folder(tmp_path: Path) -> None:
    train_language_model(CONFIG, SETTINGS, sample_corpus(), tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"a folder with a run"):
        train_language_model(CONFIG, SETTINGS, sample_corpus(), tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"model.tied was True and is now False"):
        train_language_model(replace(CONFIG, tied=False), SETTINGS, sample_corpus(), tmp_path / "run", resume=True)


def test_averaging_begins_when_the_validation_loss_stops_falling(tmp_path: Path) -> None:
    # A rate so high that the loss jumps about makes the test fire.
    settings = replace(SETTINGS, epochs=12, lr=60.0, non_monotone=2, divide=None, averaging="non-monotone")
    records: list[dict[str, Any]] = []
    train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run", on_epoch=records.append)
    losses = [math.log(record["valid_perplexity"]) for record in records]
    fired = next(i for i in range(len(losses)) if i > 2 and losses[i] > min(losses[: i - 2]))
    assert [record["averaged"] for record in records] == [False] * (fired + 1) + [True] * (11 - fired)


def test_with_averaging_the_mean_of_the_iterates_is_validated() -> None:
    training = LanguageTraining(seeded(), replace(SETTINGS, averaging="always"), sample_corpus(), device=CPU)
    iterates = [training.model.embedding.weight.detach().clone() for _ in training.updates()]
    with training.averaging.swapped():
        mean = training.model.embedding.weight.detach().clone()
    torch.testing.assert_close(mean, torch.stack(iterates).mean(0), **tolerance(torch.float32))
    training.close_epoch()
    assert torch.equal(training.best.weights["embedding.weight"], mean)
    assert torch.equal(training.model.embedding.weight, iterates[-1]), "training goes on with the raw iterate"


def test_the_rate_falls_when_validation_is_no_new_best(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=8, lr=60.0, averaging="never")
    records: list[dict[str, Any]] = []
    train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run", on_epoch=records.append)
    best, lr = math.inf, 60.0
    for record in records:
        assert record["lr"] == pytest.approx(lr)
        if record["valid_perplexity"] < best:
            best = record["valid_perplexity"]
        else:
            lr /= 1.2
    assert lr < 60.0


def test_early_stopping_ends_the_run(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=50, lr=1e-9, patience=2, divide=None, averaging="never", precision="single")
    result = train_language_model(CONFIG, replace(settings, lr=60.0), sample_corpus(), tmp_path / "run")
    assert result.epochs == result.best_epoch + 2 < 50


def test_random_lengths_cover_the_text_and_scale_the_rate() -> None:
    settings = replace(SETTINGS, random_bptt=True, lr=2.0, bptt=30)
    training = LanguageTraining(seeded(), settings, sample_corpus(), device=CPU)
    rows, rates = [0], []
    for _ in training.updates():
        rows.append(training.position.row)
        rates.append(training.optimizer.param_groups[0]["lr"])
    lengths = [b - a for a, b in pairwise(rows)]
    assert sum(lengths) == len(training.columns)
    assert len(set(lengths)) > 3
    assert rates == pytest.approx([2.0 * length / 30 for length in lengths])
    training.close_epoch()
    assert training.lr == 2.0


def test_several_samples_of_noise_are_averaged_over_all_rows() -> None:
    noisy = replace(CONFIG, noise="gaussian", gamma=0.5)
    training = LanguageTraining(seeded(noisy), replace(SETTINGS, samples=3), sample_corpus(), device=CPU)
    seen: list[tuple[Tensor, Tensor]] = []

    def step(tokens: Tensor, targets: Tensor, state: object) -> tuple[Tensor, tuple[Tensor, None]]:
        seen.append((tokens, targets))
        return torch.ones(()), (torch.ones(()), None)

    training.step = step  # type: ignore[assignment]
    next(training.updates())
    tokens, targets = Columns(sample_corpus().train, 10).segment(0, 20)
    assert torch.equal(seen[0][0], torch.cat([tokens] * 3, dim=1))
    assert torch.equal(seen[0][1], torch.cat([targets] * 3, dim=1))


def test_one_sample_follows_the_stream_of_the_plain_objective() -> None:
    noisy = replace(CONFIG, noise="gaussian", gamma=0.5)
    one, other = (trained(replace(SETTINGS, samples=samples), seeded(noisy)) for samples in (1, 1))
    assert torch.equal(one.model.embedding.weight, other.model.embedding.weight)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop"])
@pytest.mark.parametrize("precision", ["single", "tf32", "bf16"])
def test_it_learns_with_every_optimiser_and_precision(optimizer: str, precision: str, tmp_path: Path) -> None:
    lr = 5.0 if optimizer == "sgd" else 0.02
    settings = replace(SETTINGS, optimizer=optimizer, precision=precision, lr=lr)
    before = torch.get_float32_matmul_precision()
    result = train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run")
    assert result.valid_perplexity < 70 < len(sample_corpus().vocabulary)
    assert torch.get_float32_matmul_precision() == before


def test_a_run_that_comes_to_nothing_says_where_and_what_is_left(tmp_path: Path) -> None:
    good = replace(SETTINGS, epochs=1)
    train_language_model(CONFIG, good, sample_corpus(), tmp_path / "run")
    with pytest.raises(DivergedError, match=r"step \d+.*resume\.safetensors"):
        run_with_broken_weights(tmp_path / "run")


def run_with_broken_weights(folder: Path) -> None:
    """Go on with the run, and put a NaN into a weight after some updates."""
    training = LanguageTraining(seeded(), replace(SETTINGS, epochs=3), sample_corpus(), device=CPU)
    checkpoint = str(RunFolder(folder).resume_path)
    for _ in training.updates(checkpoint=checkpoint):
        if training.position.updates == 7:
            with torch.no_grad():
                training.model.embedding.weight[3, 3] = math.nan
    training.close_epoch(checkpoint=checkpoint)


def test_an_exploding_rate_is_reported_not_trained_on(tmp_path: Path) -> None:
    settings = replace(SETTINGS, lr=1e38, clip=None)
    with pytest.raises(DivergedError, match=r"lower learning rate"):
        train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run")


@pytest.mark.parametrize(
    ("field", "value"),
    [("epochs", 0), ("lr", -1.0), ("lr", math.nan), ("clip", 0), ("optimizer", "lion"),
     ("averaging", "sometimes"), ("precision", "fp8"), ("weight_decay", -1.0), ("patience", 0)],
)  # fmt: skip
def test_senseless_settings_are_refused(field: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"TrainingSettings.{field}"):
        TrainingSettings(**{field: value})  # type: ignore[arg-type]


def test_precision_is_put_back_even_after_an_error() -> None:
    before = torch.get_float32_matmul_precision()
    with pytest.raises(ZeroDivisionError), precisely("bf16", CPU):
        _ = 1 / 0
    assert torch.get_float32_matmul_precision() == before
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.gpu
def test_on_a_device_the_whole_step_is_captured_with_every_law() -> None:
    device = torch.device("cuda")
    for law, gamma in [("gaussian", 1.0), ("bernoulli", 0.4), ("chi-square", 1.5), ("beta", 0.2), ("gamma", 0.4)]:
        config = replace(CONFIG, hidden=(64, 64), noise=law, gamma=gamma, output_dropout=0.5, recurrent_dropout=0.4)
        model = seeded(config).to(device)
        training = LanguageTraining(model, replace(SETTINGS, precision="bf16"), sample_corpus(), device=device)
        for _ in training.updates():
            pass
        assert training.close_epoch()["valid_perplexity"] < len(sample_corpus().vocabulary)
        for _, _ in zip(training.updates(), range(6), strict=False):
            pass
        assert training.step.plan().captured, (law, str(training.step.plan()))
