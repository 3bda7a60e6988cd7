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

from statewise.data import Columns, TokenStream, sample_corpus
from statewise.errors import ArgumentError, DivergedError, RunFolderError
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.train import (
    Checkpoints,
    LanguageTraining,
    RunFolder,
    TrainingSettings,
    load_language_model,
    precisely,
    train_language_model,
)
from support import tolerance


def first(stream: TokenStream, tokens: int) -> TokenStream:
    return TokenStream(stream[:tokens].numpy())


CPU = torch.device("cpu")
WHOLE = sample_corpus()
CORPUS = replace(WHOLE, train=first(WHOLE.train, 2500), valid=first(WHOLE.valid, 500), test=first(WHOLE.test, 300))
CONFIG = LanguageModelConfig(hidden=(8, 8))
SETTINGS = TrainingSettings(epochs=2, batch=10, bptt=20, lr=5.0)


def seeded(config: LanguageModelConfig = CONFIG) -> LanguageModel:
    return config.build(len(CORPUS.vocabulary), generator=torch.Generator().manual_seed(1111))


def trained(settings: TrainingSettings, model: LanguageModel, epochs: int = 1) -> LanguageTraining:
    training = LanguageTraining(model, settings, CORPUS, device=CPU)
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
    rows = len(CORPUS.train) // 10
    text = CORPUS.train[: rows * 10].view(10, rows).T
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
    train_language_model(CONFIG, SETTINGS, CORPUS, tmp_path / "run", on_epoch=records.append)
    perplexities, weights = by_hand(seeded(), 2)
    assert [record["train_perplexity"] for record in records] == pytest.approx(perplexities, rel=1e-5)
    found = RunFolder(tmp_path / "run").load_resume()
    assert found is not None
    last = found[0]
    torch.testing.assert_close(last["model.embedding.weight"], weights[-2], **tolerance(torch.float32))
    torch.testing.assert_close(last["model.layers.0.weight_hh_l1"], weights[5], **tolerance(torch.float32))


def test_the_folder_holds_the_best_model_and_its_numbers(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=4, lr=20.0)
    result = train_language_model(CONFIG, settings, CORPUS, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    epochs, final = run.metrics()[:-1], run.metrics()[-1]
    assert result.valid_perplexity == min(record["valid_perplexity"] for record in epochs)
    assert final == {
        "best_epoch": result.best_epoch,
        "valid_perplexity": result.valid_perplexity,
        "test_perplexity": result.test_perplexity,
        "seconds": round(result.seconds, 3),
    }
    model, vocabulary, told = load_language_model(tmp_path / "run")
    assert vocabulary == CORPUS.vocabulary
    assert told["training"]["lr"] == 20.0
    from statewise.train import evaluate_stream

    assert evaluate_stream(model, CORPUS.test).perplexity == result.test_perplexity
    assert math.isclose(
        evaluate_stream(model, CORPUS.valid, batch=10).perplexity, result.valid_perplexity, rel_tol=1e-12
    )


def test_the_global_generator_is_left_as_it_was(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    config = replace(CONFIG, noise="gaussian", gamma=0.5)
    train_language_model(config, replace(SETTINGS, epochs=1), CORPUS, tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


def test_one_seed_gives_one_run_and_another_seed_another(tmp_path: Path) -> None:
    config = replace(CONFIG, noise="gaussian", gamma=0.5)
    found = [
        train_language_model(config, replace(SETTINGS, seed=seed), CORPUS, tmp_path / str(i)).test_perplexity
        for i, seed in enumerate((1, 1, 2))
    ]
    assert found[0] == found[1] != found[2]


def test_a_complete_run_goes_on_when_epochs_are_raised(tmp_path: Path) -> None:
    train_language_model(CONFIG, SETTINGS, CORPUS, tmp_path / "run")
    longer = replace(SETTINGS, epochs=4)
    raised = train_language_model(CONFIG, longer, CORPUS, tmp_path / "run", resume=True)
    at_once = train_language_model(CONFIG, longer, CORPUS, tmp_path / "other")
    assert (raised.test_perplexity, raised.best_epoch, raised.epochs) == (
        at_once.test_perplexity,
        at_once.best_epoch,
        4,
    )
    again = train_language_model(CONFIG, longer, CORPUS, tmp_path / "run", resume=True)
    assert again.test_perplexity == raised.test_perplexity
    assert len(RunFolder(tmp_path / "run").metrics()) == 5


def test_another_model_cannot_go_on_in_its_folder(tmp_path: Path) -> None:
    train_language_model(CONFIG, SETTINGS, CORPUS, tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"a folder with a run"):
        train_language_model(CONFIG, SETTINGS, CORPUS, tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"model.tied was True and is now False"):
        train_language_model(replace(CONFIG, tied=False), SETTINGS, CORPUS, tmp_path / "run", resume=True)


def test_averaging_begins_when_the_validation_loss_stops_falling(tmp_path: Path) -> None:
    # A rate so high that the loss jumps about makes the test fire.
    settings = replace(SETTINGS, epochs=12, lr=60.0, non_monotone=2, divide=None, averaging="non-monotone")
    records: list[dict[str, Any]] = []
    train_language_model(CONFIG, settings, CORPUS, tmp_path / "run", on_epoch=records.append)
    losses = [math.log(record["valid_perplexity"]) for record in records]
    fired = next(i for i in range(len(losses)) if i > 2 and losses[i] > min(losses[: i - 2]))
    assert [record["averaged"] for record in records] == [False] * (fired + 1) + [True] * (11 - fired)


def test_with_averaging_the_mean_of_the_iterates_is_validated() -> None:
    training = LanguageTraining(seeded(), replace(SETTINGS, averaging="always"), CORPUS, device=CPU)
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
    train_language_model(CONFIG, settings, CORPUS, tmp_path / "run", on_epoch=records.append)
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
    result = train_language_model(CONFIG, replace(settings, lr=60.0), CORPUS, tmp_path / "run")
    assert result.epochs == result.best_epoch + 2 < 50


def test_random_lengths_cover_the_text_and_scale_the_rate() -> None:
    settings = replace(SETTINGS, random_bptt=True, lr=2.0, bptt=30)
    training = LanguageTraining(seeded(), settings, CORPUS, device=CPU)
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
    """Each column has three states, and the loss is the mean over what the three say."""
    noisy = replace(CONFIG, noise="gaussian", gamma=0.5)
    training = LanguageTraining(seeded(noisy), replace(SETTINGS, samples=3), CORPUS, device=CPU)
    torch.manual_seed(0)
    for _ in zip(range(2), training.updates(), strict=False):
        pass

    model, state, summed = seeded(noisy).train(), None, 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    torch.manual_seed(0)
    for start in (0, 20):
        tokens, targets = Columns(CORPUS.train, 10).segment(start, 20)
        features, _, state = model.features(torch.cat([tokens] * 3, 1), state)
        log_probabilities = model.head.log_prob(features).unflatten(1, (3, 10))
        said = -log_probabilities.gather(-1, targets[:, None, :, None].expand(-1, 3, -1, 1)).squeeze(-1)
        each = said.mean((0, 2))
        assert len(set(each.tolist())) == 3, "the samples share their noise"
        optimizer.zero_grad()
        each.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        state = tuple(tuple(part.detach() for part in layer) for layer in state)
        summed += float(said.detach().sum())
    assert float(training.summed_nll) == pytest.approx(summed, rel=1e-5)
    for (name, found), wanted in zip(training.model.named_parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, **tolerance(torch.float32), msg=name)


def test_one_sample_follows_the_stream_of_the_plain_objective() -> None:
    noisy = replace(CONFIG, noise="gaussian", gamma=0.5)
    training = trained(replace(SETTINGS, samples=1), seeded(noisy))

    model, state = seeded(noisy).train(), None
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    torch.manual_seed(0)
    for tokens, targets in Columns(CORPUS.train, 10).segments(20):
        losses = model.loss(tokens, targets, state)
        optimizer.zero_grad()
        losses.total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        state = tuple(tuple(part.detach() for part in layer) for layer in losses.state)
    for found, wanted in zip(training.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop"])
@pytest.mark.parametrize("precision", ["single", "tf32", "bf16"])
def test_it_learns_with_every_optimiser_and_precision(optimizer: str, precision: str, tmp_path: Path) -> None:
    lr = 5.0 if optimizer == "sgd" else 0.02
    settings = replace(SETTINGS, optimizer=optimizer, precision=precision, lr=lr)
    before = torch.get_float32_matmul_precision()
    result = train_language_model(CONFIG, settings, CORPUS, tmp_path / "run")
    assert result.valid_perplexity < 70 < len(CORPUS.vocabulary)
    assert torch.get_float32_matmul_precision() == before


def test_a_run_that_comes_to_nothing_says_where_and_what_is_left(tmp_path: Path) -> None:
    """A decay far above 2 / lr makes every weight a million times as large at every step, until it is infinite."""
    settings = replace(SETTINGS, weight_decay=2e5)
    checkpoints = Checkpoints(updates=5)
    with pytest.raises(DivergedError) as caught:
        train_language_model(CONFIG, settings, CORPUS, tmp_path / "run", checkpoints=checkpoints)
    error, run = caught.value, RunFolder(tmp_path / "run")
    assert f"step {error.step}: " in str(error)
    assert error.culprit in {f"the gradient of {name}" for name, _ in seeded().named_parameters()}
    assert error.culprit in str(error)
    assert error.checkpoint == str(run.resume_path)
    assert error.remedy.endswith(f"The last good weights are in {run.resume_path}.")
    found = run.load_resume()
    assert found is not None
    good = found[1]["position"]["updates"]
    assert 5 <= good < error.step <= good + 5
    assert all(tensor.isfinite().all() for tensor in found[0].values())


def test_an_exploding_rate_is_reported_not_trained_on(tmp_path: Path) -> None:
    settings = replace(SETTINGS, lr=1e38, clip=None)
    with pytest.raises(DivergedError, match=r"lower learning rate"):
        train_language_model(CONFIG, settings, CORPUS, tmp_path / "run")


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
        training = LanguageTraining(model, replace(SETTINGS, precision="bf16"), CORPUS, device=device)
        for _ in training.updates():
            pass
        assert training.close_epoch()["valid_perplexity"] < len(CORPUS.vocabulary)
        for _, _ in zip(training.updates(), range(6), strict=False):
            pass
        assert training.step.plan().captured, (law, str(training.step.plan()))
