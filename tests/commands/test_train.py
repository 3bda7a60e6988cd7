"""``statewise train lm`` as a user types it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from commands.typing_commands import SMALL, Typed
from statewise.commands.compare import conclusion, gains, variants
from statewise.commands.train_lm import _tell
from statewise.data import sample_corpus
from statewise.models import LanguageModelConfig
from statewise.train import TrainingResult, load_language_model
from statewise.train.run import RunFolder
from statewise.train.settings import TrainingSettings


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_a_text_file_becomes_a_run_that_can_be_loaded(typed: Typed, tmp_path: Path) -> None:
    words = sample_corpus().vocabulary.decode(sample_corpus().train[:3000])
    (tmp_path / "my.txt").write_text(" ".join(words).replace(" <eos> ", "\n"), encoding="utf-8")
    said = typed("train", "lm", "--data", "my.txt", "--hidden", "12", "--epochs", "1", "--batch", "5", "--lower")
    assert re.search(r"^valid \d+\.\d\d, test \d+\.\d\d, best after epoch 1 of 1", said, flags=re.MULTILINE)
    assert "statewise generate runs/my" in said
    model, vocabulary, told = load_language_model(tmp_path / "runs" / "my")
    assert model.words == len(vocabulary)
    assert told["source"]["data"] == str(tmp_path / "my.txt")
    assert told["training"]["lr"] == 20.0


def test_every_field_of_model_and_training_is_an_option(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        typed("train", "lm", "--help")
    told = capsys.readouterr().out
    for entry in (*fields(LanguageModelConfig), *fields(TrainingSettings)):
        assert f"--{entry.name.replace('_', '-')} " in told, entry.name


def test_curves_for_tensorboard_can_be_read_by_it(typed: Typed, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    typed("train", "lm", *SMALL, "--out", "run", "--epochs", "2", "--tensorboard", "--quiet")
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    drawn = {point.step: point.value for point in found.Scalars("valid_perplexity")}
    kept = {r["epoch"]: r["valid_perplexity"] for r in RunFolder(tmp_path / "run").metrics() if "epoch" in r}
    assert drawn == pytest.approx(kept)


def drawn(folder: Path) -> list[int]:
    """The epochs of a curve, as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard"))
    found.Reload()
    return [point.step for point in found.Scalars("valid_perplexity")]


def test_epochs_that_are_trained_again_are_drawn_once(typed: Typed, tmp_path: Path) -> None:
    typed("train", "lm", *SMALL, "--out", "run", "--epochs", "2", "--tensorboard", "--quiet")
    # A run that was killed before it could write where it was begins again.
    (tmp_path / "run" / "resume.safetensors").unlink()
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    events.rename(events.with_name("events.out.tfevents.0000000001.earlier"))  # the order of files is that of seconds
    typed("train", "lm", "--resume", "--out", "run", "--tensorboard", "--quiet", "--device", "cpu")
    assert drawn(tmp_path / "run") == [1, 2]


@pytest.mark.parametrize("more", [[], ["--compare"]])
def test_without_tensorboard_nothing_is_trained_in_vain(
    refused: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert "statewise[track]" in refused("train", "lm", *SMALL, "--out", "run", "--tensorboard", *more)
    assert not list(tmp_path.rglob("metrics.jsonl"))


def test_a_run_that_stopped_early_is_told_what_would_go_on(typed: Typed, tmp_path: Path) -> None:
    said = typed("train", "lm", *SMALL, "--lr", "1e-30", "--patience", "1", "--epochs", "9", "--out", "run")
    epochs = sum("epoch" in record for record in RunFolder(tmp_path / "run").metrics())
    assert epochs < 9
    assert f"Stopped early, after {epochs} of 9 epochs." in said
    suggested = [line.strip() for line in said.splitlines() if "--resume" in line]
    assert suggested == ["statewise train lm --resume --out run --patience 2"]
    typed(*suggested[0].split()[1:], "--device", "cpu")
    assert sum("epoch" in record for record in RunFolder(tmp_path / "run").metrics()) > epochs


def test_a_run_that_its_other_rule_has_ended_is_not_told_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    result = TrainingResult(Path("run"), 80.0, 79.0, 2, 4, 1.0)
    for settings in (TrainingSettings(stop_non_monotone=True), TrainingSettings(stop_non_monotone=True, patience=2)):
        _tell(Console(), result, settings)
        said = capsys.readouterr().out
        assert "Stopped early" in said
        assert "--resume" not in said
    _tell(Console(), result, TrainingSettings(epochs=4))
    assert "--resume --out run --epochs 8" in capsys.readouterr().out


def test_a_text_in_a_hidden_folder_gets_a_run_with_a_name(typed: Typed, tmp_path: Path, brief: Path) -> None:
    shutil.copytree(brief, tmp_path / ".hid")
    typed("train", "lm", "--data", ".hid", "--hidden", "4", "--batch", "2", "--epochs", "1", "--device", "cpu")
    assert (tmp_path / "runs" / "hid" / "model.safetensors").exists()


def test_a_folder_that_is_a_file_is_told_without_a_traceback(refused: Typed, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a thesis", encoding="utf-8")
    for out in ("taken", "taken/below"):
        for command in (["train", "lm", *SMALL], ["train", "lm", *SMALL, "--compare"]):
            assert "taken" in refused(*command, "--epochs", "1", "--out", out)
        reproduce = ["reproduce", "noisin/table3", "--scale", "smoke", "--rows", "none", "--epochs", "1"]
        assert "taken" in refused(*reproduce, "--device", "cpu", "--out", out)


def test_options_reach_the_model_and_its_training(typed: Typed, tmp_path: Path) -> None:
    options = ["--hidden", "8,6", "--embedding", "6", "--noise", "gamma", "--placement", "outputs", "--locked", "yes"]
    options += ["--clip", "none", "--patience", "3", "--optimizer", "adam", "--lr", "0.01", "--epochs", "1"]
    typed("train", "lm", "--data", "sample", "--out", "run", "--batch", "10", "--quiet", *options)
    told = RunFolder(tmp_path / "run").config()
    assert told["model"]["hidden"] == [8, 6]
    assert (told["model"]["noise"], told["model"]["gamma"]) == ("gamma", 0.5)
    assert told["model"]["locked"] is True
    assert told["training"]["clip"] is None
    assert (told["training"]["patience"], told["training"]["optimizer"]) == (3, "adam")


def test_a_resumed_run_keeps_its_settings_and_ends_as_an_undisturbed_one(typed: Typed, tmp_path: Path) -> None:
    typed("train", "lm", *SMALL, "--noise", "gaussian", "--epochs", "3", "--out", "whole")
    typed("train", "lm", *SMALL, "--noise", "gaussian", "--epochs", "2", "--out", "parts")
    said = typed("train", "lm", "--resume", "--out", "parts", "--epochs", "3", "--device", "cpu")
    assert "epoch 3/3" in said
    assert "epoch 2/3" not in said
    whole, parts = (RunFolder(tmp_path / name).load_model()[0] for name in ("whole", "parts"))
    assert all(bool((whole[name] == parts[name]).all()) for name in whole)


def test_a_folder_with_a_run_is_not_overwritten(refused: Typed, trained: Path) -> None:
    said = refused("train", "lm", *SMALL, "--out", str(trained))
    assert "a folder with a run" in said
    assert "--resume" in said


def test_other_settings_than_those_of_the_run_are_refused(refused: Typed, trained: Path) -> None:
    said = refused("train", "lm", "--resume", "--out", str(trained), "--lr", "7", "--device", "cpu")
    assert "training.lr was 20.0 and is now 7.0" in said


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], "--data sample takes the embedded text"),
        (["--data", "nowhere"], "no such file or folder"),
        (["--data", "sample", "--noise", "gausian"], "Did you mean 'gaussian'?"),
        (["--data", "sample", "--hidden", "wide"], "such as 200,200"),
        (["--data", "sample", "--lr", "much"], "--lr: got much, wanted a number"),
        (["--data", "sample", "--tied", "maybe"], "true or false"),
        (["--data", "sample", "--device", "abacus"], "auto, cpu, cuda or cuda:0"),
        (["--data", "sample", "--epochs", "0"], "TrainingSettings.epochs"),
        (["--data", "sample", "--resume"], "--out runs/NAME"),
        (["--data", "sample", "--limit", "50"], "--limit with it, wanted the embedded text as it is"),
        (["--data", "sample", "--lower", "--min-count", "2"], "--min-count and --lower with it"),
    ],
)
def test_a_slip_is_explained(refused: Typed, arguments: list[str], wanted: str) -> None:
    assert wanted in refused("train", "lm", *arguments)


def test_a_benchmark_that_is_not_here_says_where_to_get_it(
    refused: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("statewise.data.sets._checkout", lambda: tmp_path / "checkout")
    monkeypatch.setenv("STATEWISE_DATA", str(tmp_path))
    assert "simple-examples.tgz" in refused("train", "lm", "--data", "ptb")


def test_a_comparison_trains_without_with_dropout_and_with_noise(typed: Typed, tmp_path: Path) -> None:
    options = ["--compare", "--noise", "laplace", "--epochs", "1", "--out", "compared", "--tensorboard"]
    said = typed("train", "lm", *SMALL, *options)
    for name in ("none", "dropout", "laplace"):
        assert re.search(rf"^{name} +\d+\.\d\d +\d+\.\d\d", said, flags=re.MULTILINE), name
        assert (tmp_path / "compared" / name / "model.safetensors").exists()
        assert drawn(tmp_path / "compared" / name) == [1]
    assert re.search(r"^(Best by validation is|Nothing helped)", said, flags=re.MULTILINE)


def test_a_comparison_goes_on_with_what_was_asked(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    options = ["--compare", "--noise", "beta", "--gamma", "0.2", "--weight-drop", "0.1", "--epochs", "1", "--out", "c"]
    typed("train", "lm", *SMALL, *options, "--quiet")
    assert "runs of none" in refused("train", "lm", *SMALL, *options)
    again = ("train", "lm", "--compare", "--resume", "--out", "c", "--device", "cpu", "--quiet")
    assert "training.lr was 20.0 and is now 7.0" in refused(*again, "--lr", "7")
    assert re.search(r"^dropout\+beta ", typed(*again, "--epochs", "2"), flags=re.MULTILINE)
    for name in ("none", "dropout", "beta", "dropout+beta"):
        told = RunFolder(tmp_path / "c" / name).config()
        assert told["training"]["epochs"] == 2
        assert told["model"]["gamma"] == (0.2 if "beta" in name else None)
    typed(*again)
    assert RunFolder(tmp_path / "c" / "none").config()["training"]["epochs"] == 2


def test_variants_differ_in_regularization_only() -> None:
    config = LanguageModelConfig(
        hidden=(8, 8), head="mixture", experts=2, noise="beta", gamma=0.2, input_dropout=0.1, weight_drop=0.3,
        embedding_dropout=0.1, latent_dropout=0.2, activation=2.0, temporal=1.0, placement="outputs",
    )  # fmt: skip
    found = variants(config)
    assert found["dropout+beta"] == config
    assert found["dropout"] == replace(config, noise=None, gamma=None)
    bare = LanguageModelConfig(hidden=(8, 8), head="mixture", experts=2, placement="outputs")
    assert found["none"] == bare
    assert found["beta"] == replace(bare, noise="beta", gamma=0.2)


def test_variants_without_dropout_of_their_own_have_that_of_the_paper() -> None:
    two, one = (variants(LanguageModelConfig(hidden=widths))["dropout"] for widths in ((8, 8), (8,)))
    assert (two.recurrent_dropout, two.hidden_dropout) == (0.4, 0.5)
    assert (one.recurrent_dropout, one.hidden_dropout) == (0.4, 0.0)
    penalised = variants(LanguageModelConfig(activation=2.0))
    assert list(penalised) == ["none", "dropout", "gaussian", "penalties+gaussian"]
    assert (penalised["dropout"].activation, penalised["gaussian"].activation) == (2.0, 0.0)


def test_gains_are_those_of_the_test_perplexities() -> None:
    results = {"none": result(100.0), "dropout": result(80.0), "gaussian": result(60.0)}
    row = gains(results).rows[2]
    assert list(row[4:7]) == ["-40.0 %", "-25.0 %", "-"]
    assert "40.0 % lower than without regularization and 25.0 % lower than with dropout" in conclusion(results)


def test_validation_chooses_the_best_and_the_test_tells_how_good_it_is() -> None:
    results = {"none": result(100.0, valid=90.0), "dropout": result(70.0, valid=85.0), "beta": result(77.0, valid=80.0)}
    said = "Best by validation is beta: its test perplexity, 77.00, is 23.0 % lower than without regularization and "
    assert conclusion(results) == said + "10.0 % higher than with dropout."
    results = {"none": result(60.0, valid=50.0), "gaussian": result(50.0, valid=60.0)}
    assert conclusion(results).startswith("Nothing helped")


def result(test: float, *, valid: float | None = None) -> TrainingResult:
    return TrainingResult(Path("x"), test if valid is None else valid, test, 1, 1, 1.0)


@pytest.mark.slow
def test_two_processes_train_one_model_and_only_the_first_prints(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "statewise", "train", "lm", *SMALL, "--epochs", "1", "--out", "run"]
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 1/1") == 1
    assert done.stdout.count("Next:") == 1
    records = [json.loads(line) for line in lines_of(tmp_path / "run" / "metrics.jsonl")]
    assert records[0]["epoch"] == 1


def test_a_variant_that_diverges_is_an_answer_too(typed: Typed) -> None:
    wild = ["--cell", "rnn", "--nonlinearity", "relu", "--noise", "gaussian", "--gamma", "3", "--epochs", "3"]
    command = ("train", "lm", *SMALL, *wild, "--lr", "20", "--compare", "--quiet", "--out", "wild")
    said = typed(*command)
    assert "gaussian came to nothing: " in said
    assert "against none" in said
    assert "against gaussian" not in said
    assert "gaussian came to nothing" in typed(*command[:-2], "--out", "wild", "--resume")


def test_what_was_refused_is_not_what_a_comparison_goes_on_with(
    typed: Typed, refused: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", "lm", *SMALL, "--epochs", "1", "--compare", "--quiet", "--out", "one")
    refused(*command, "--head", "adaptive", "--cutoffs", "7")
    (tmp_path / "one").mkdir(exist_ok=True)
    (tmp_path / "one" / "compared.json").write_text(json.dumps({"model": {"head": "adaptive"}}))

    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("statewise.commands.compare.train_language_model", killed)
        with pytest.raises(SystemExit):
            typed(*command)
    assert json.loads((tmp_path / "one" / "compared.json").read_text())["model"]["head"] == "softmax"


def test_an_adaptive_optimiser_has_a_rate_of_its_own(typed: Typed, tmp_path: Path) -> None:
    typed("train", "lm", *SMALL, "--optimizer", "adam", "--epochs", "1", "--quiet", "--out", "adam")
    told = json.loads((tmp_path / "adam" / "config.json").read_text())["training"]
    assert (told["optimizer"], told["lr"]) == ("adam", 0.002)


@pytest.mark.parametrize("device", ["mps", "meta", "cuda:99", "abacus"])
def test_a_device_that_is_not_here_is_refused(refused: Typed, device: str) -> None:
    assert "--device: got" in refused("train", "lm", *SMALL[:-1], device)


def test_columns_of_a_text_are_mixed_where_that_is_asked_for(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    options = ["--zoneout", "0.1", "--zoneout-memory", "0.2", "--mixup", "input", "--mixup-alpha", "0.2"]
    said = typed("train", "lm", *SMALL, *options, "--epochs", "1", "--out", "mixed")
    assert "no noise, input mixup" in said
    told = RunFolder(tmp_path / "mixed").config()
    assert (told["training"]["mixup"], told["training"]["mixup_alpha"]) == ("input", 0.2)
    assert (told["model"]["zoneout"], told["model"]["zoneout_memory"]) == (0.1, 0.2)
    said = refused("train", "lm", *SMALL, "--mixup-rho", "0.1", "--out", "plain")
    assert "--mixup-rho" in said
    assert "without --mixup" in said
