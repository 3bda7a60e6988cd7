"""Runs from beginning to end: what they refuse, what they remember, how they stop."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.data import Corpus, TokenStream, sample_corpus
from statewise.errors import ArgumentError, LengthError, RunFolderError
from statewise.models import LanguageModelConfig
from statewise.train import (
    Checkpoints,
    LanguageTraining,
    RunFolder,
    TrainingSettings,
    evaluate_with_noise,
    load_language_model,
    precisely,
    train_language_model,
)
from statewise.train.distributed import joined
from statewise.train.interruption import Interruption
from statewise.train.snapshot import restore, snapshot

CPU = torch.device("cpu")
CONFIG = LanguageModelConfig(hidden=(8,))
SETTINGS = TrainingSettings(epochs=1, batch=10, bptt=40, lr=5.0)


def shortened(**tokens: int) -> Corpus:
    """The sample with some parts cut off."""
    whole = sample_corpus()
    parts = {name: getattr(whole, name) for name in ("train", "valid", "test")}
    parts |= {name: TokenStream(parts[name][:count].numpy()) for name, count in tokens.items()}
    return Corpus("sample", whole.vocabulary, **parts)


@pytest.mark.parametrize(
    ("config", "settings", "corpus", "error"),
    [
        (CONFIG, replace(SETTINGS, batch=5000), sample_corpus(), LengthError),
        (replace(CONFIG, head="adaptive"), SETTINGS, sample_corpus(), ArgumentError),
        (CONFIG, SETTINGS, shortened(test=1), LengthError),
        (CONFIG, SETTINGS, shortened(valid=0), LengthError),
    ],
    ids=["batch", "head", "test", "valid"],
)
def test_what_is_refused_leaves_no_folder_behind(
    config: LanguageModelConfig, settings: TrainingSettings, corpus: Corpus, error: Any, tmp_path: Path
) -> None:
    with pytest.raises(error):
        train_language_model(config, settings, corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_short_texts_are_read_in_fewer_columns(tmp_path: Path) -> None:
    result = train_language_model(CONFIG, SETTINGS, shortened(valid=3, test=2), tmp_path / "run")
    assert result.valid_perplexity > 1


def test_a_run_does_not_go_on_with_another_text_but_does_under_another_name(tmp_path: Path) -> None:
    whole = sample_corpus()
    train_language_model(CONFIG, SETTINGS, whole, tmp_path / "run")
    longer = replace(SETTINGS, epochs=2)
    backwards = TokenStream(whole.train[: len(whole.train)].flip(0).numpy())
    other = Corpus("sample", whole.vocabulary, backwards, whole.valid, whole.test)
    with pytest.raises(RunFolderError, match="train_checksum"):
        train_language_model(CONFIG, longer, other, tmp_path / "run", resume=True)
    renamed = Corpus("moved", whole.vocabulary, whole.train, whole.valid, whole.test)
    assert train_language_model(CONFIG, longer, renamed, tmp_path / "run", resume=True).epochs == 2


def test_patience_may_be_raised_after_an_early_stop(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=30, lr=60.0, patience=1)
    stopped = train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run")
    assert stopped.epochs < 30
    more = replace(settings, patience=None, epochs=stopped.epochs + 2)
    assert train_language_model(CONFIG, more, sample_corpus(), tmp_path / "run", resume=True).epochs == more.epochs


def test_the_non_monotone_test_can_end_a_run(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=40, lr=60.0, divide=None, non_monotone=2, stop_non_monotone=True)
    records: list[dict[str, Any]] = []
    train_language_model(CONFIG, settings, sample_corpus(), tmp_path / "run", on_epoch=records.append)
    losses = [record["valid_perplexity"] for record in records]
    fired = [i for i in range(len(losses)) if i > 2 and losses[i] > min(losses[: i - 2])]
    assert fired == [len(losses) - 1]


def test_fine_tuning_never_ends_worse_than_it_began(tmp_path: Path) -> None:
    first = train_language_model(CONFIG, replace(SETTINGS, epochs=2), sample_corpus(), tmp_path / "first")
    model, _, _ = load_language_model(tmp_path / "first")
    bad = replace(SETTINGS, lr=500.0, averaging="always")
    weights = model.state_dict()
    tuned = train_language_model(CONFIG, bad, sample_corpus(), tmp_path / "tuned", weights=weights)
    assert (tuned.best_epoch, tuned.valid_perplexity) == (0, first.valid_perplexity)
    kept = load_language_model(tmp_path / "tuned")[0].state_dict()
    assert all(torch.equal(kept[name], weights[name]) for name in weights)


def test_a_run_that_began_with_weights_does_not_go_on_without_them(tmp_path: Path) -> None:
    model = CONFIG.build(len(sample_corpus().vocabulary))
    train_language_model(CONFIG, SETTINGS, sample_corpus(), tmp_path / "run", weights=model.state_dict())
    with pytest.raises(RunFolderError, match="begins_with"):
        train_language_model(CONFIG, replace(SETTINGS, epochs=2), sample_corpus(), tmp_path / "run", resume=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_writes_first_and_then_goes_on_exactly(number: signal.Signals, tmp_path: Path) -> None:
    config, settings = replace(CONFIG, noise="gaussian", gamma=0.5), replace(SETTINGS, epochs=3)
    whole = train_language_model(config, settings, sample_corpus(), tmp_path / "whole")

    class TerminatedError(Exception):
        """What SIGTERM does in this test."""

    def terminate(*_: object) -> None:
        raise TerminatedError

    def ask(record: dict[str, Any]) -> None:
        if record["epoch"] == 2:
            os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with pytest.raises(KeyboardInterrupt if number is signal.SIGINT else TerminatedError):
            train_language_model(config, settings, sample_corpus(), tmp_path / "run", on_epoch=ask)
        assert signal.getsignal(signal.SIGTERM) is terminate
    finally:
        signal.signal(signal.SIGTERM, before)
    found = RunFolder(tmp_path / "run").load_resume()
    assert found is not None
    assert found[1]["position"]["epoch"] == 2
    resumed = train_language_model(config, settings, sample_corpus(), tmp_path / "run", resume=True)
    assert resumed.test_perplexity == whole.test_perplexity


def test_a_second_signal_acts_at_once() -> None:
    with Interruption():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def handled() -> Iterator[dict[signal.Signals, int]]:
    """Handlers of the user's that only take note, as those of clusters do; gives how often each was called."""
    calls = {signal.SIGINT: 0, signal.SIGTERM: 0}

    def note(number: int, _: object) -> None:
        calls[signal.Signals(number)] += 1

    before = {number: signal.signal(number, note) for number in calls}
    yield calls
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_handler_that_goes_on_is_called_once_and_so_does_the_run(
    number: signal.Signals, handled: dict[signal.Signals, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    save = RunFolder.save_resume

    def counted(*given: Any) -> None:
        written.append(1)
        save(*given)

    monkeypatch.setattr(RunFolder, "save_resume", counted)

    def ask(record: dict[str, Any]) -> None:
        if record["epoch"] == 1:
            os.kill(os.getpid(), number)

    result = train_language_model(CONFIG, replace(SETTINGS, epochs=3), sample_corpus(), tmp_path / "run", on_epoch=ask)
    assert result.epochs == 3
    assert handled[number] == 1
    assert len(written) == 2, "once for the signal, and once at the end"


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            assert interruption.asked is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_of_another_kind_is_a_second_one(handled: dict[signal.Signals, int]) -> None:
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert handled == {signal.SIGINT: 0, signal.SIGTERM: 0}
        os.kill(os.getpid(), signal.SIGTERM)
        assert handled == {signal.SIGINT: 0, signal.SIGTERM: 1}
        interruption.obey()
    assert handled == {signal.SIGINT: 0, signal.SIGTERM: 1}


def test_the_seconds_of_a_run_are_those_of_all_its_parts(tmp_path: Path) -> None:
    class StoppedError(Exception):
        """What stops this run."""

    def stop(record: dict[str, Any]) -> None:
        if record["epoch"] == 2:
            raise StoppedError

    every = Checkpoints(updates=3)
    with pytest.raises(StoppedError):
        train_language_model(
            CONFIG, replace(SETTINGS, epochs=3), sample_corpus(), tmp_path, checkpoints=every, on_epoch=stop
        )
    found = RunFolder(tmp_path).load_resume()
    assert found is not None
    result = train_language_model(CONFIG, replace(SETTINGS, epochs=3), sample_corpus(), tmp_path, resume=True)
    assert result.seconds > found[1]["seconds"] > 0
    assert RunFolder(tmp_path).metrics()[-1]["seconds"] == round(result.seconds, 3)


def test_a_world_of_one_that_nobody_has_started_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.delenv("RANK", raising=False)
    with joined(CPU) as world:
        assert (world.rank, world.size) == (0, 1)


def test_a_run_goes_on_only_where_its_noise_is_drawn() -> None:
    model = CONFIG.build(len(sample_corpus().vocabulary))
    training = LanguageTraining(model, SETTINGS, sample_corpus(), device=CPU)
    next(training.updates())
    tensors, document = snapshot(training)
    with pytest.raises(RunFolderError, match="wanted cuda"):
        restore(training, tensors, {**document, "device": "cuda"})


def test_only_generators_that_are_used_are_seeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("seeds the devices of others")

    monkeypatch.setattr(torch, "manual_seed", refuse)
    train_language_model(CONFIG, SETTINGS, sample_corpus(), tmp_path / "run")


def test_precision_leaves_both_of_torchs_interfaces_as_they_were() -> None:
    for value in ("none", "tf32"):
        torch.backends.cuda.matmul.fp32_precision = value
        try:
            for precision in ("single", "tf32"):
                with precisely(precision, CPU):
                    assert torch.backends.cuda.matmul.fp32_precision == ("ieee" if precision == "single" else "tf32")
                assert torch.backends.cuda.matmul.fp32_precision == value
        finally:
            torch.backends.cuda.matmul.fp32_precision = "none"


def test_senseless_checkpoints_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"updates: got 0"):
        Checkpoints(updates=0)
    with pytest.raises(ArgumentError, match=r"seconds: got -1"):
        Checkpoints(seconds=-1)


def test_draws_of_dropped_weights_and_words_differ_between_samples() -> None:
    for option in ({"weight_drop": 0.5}, {"embedding_dropout": 0.5}):
        model = replace(CONFIG, **option).build(len(sample_corpus().vocabulary))  # type: ignore[arg-type]
        stream = TokenStream(sample_corpus().valid[:60].numpy())
        with warnings.catch_warnings():
            scores = [
                evaluate_with_noise(model, stream, samples=n, generator=torch.Generator().manual_seed(0)).nll
                for n in (1, 8)
            ]
        assert scores[0] != scores[1]
