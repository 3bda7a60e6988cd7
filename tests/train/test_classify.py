"""Training classifiers of sequences, of pictures and of steps, in folders that can be killed and loaded."""

from __future__ import annotations

import itertools
import json
import math
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from statewise.data import Images, Sequences, copying, tomita_sets
from statewise.errors import ArgumentError, DataError, DivergedError, RunFolderError
from statewise.models import ClassifierConfig
from statewise.models.steps import StepConfig
from statewise.train import (
    ClassifierSettings,
    RunFolder,
    load_classifier,
    load_language_model,
    load_steps,
    train_classifier,
    train_steps,
)
from statewise.train.classify_data import OnDevice
from statewise.train.tasks import Measured, measure
from statewise.train.tensor_file import read_tensors, write_tensors
from train.forks import Forks
from train.killed import Outcome, outcome, undisturbed_outcomes

SMALL = ClassifierConfig(hidden=12, embedding=4, centroids=(6,))
SETTINGS = ClassifierSettings(epochs=2, batch=32, lr=0.01)
KINDS = ("classifier", "cosine", "certified", "mixed")
QUICK = {("classifier", 6), ("cosine", 9), ("certified", 7), ("mixed", 7)}


@cache
def tomita(number: int) -> tuple[Sequences, Sequences]:
    return tomita_sets(number, 0)


def few(count: int = 60) -> Sequences:
    """Short words, accepted if they have an even number of ones."""
    words = [format(number, "b") for number in range(count)]
    return Sequences.from_words(words, [word.count("1") % 2 for word in words])


def test_the_fourth_language_of_tomita_is_learnt_in_seconds(tmp_path: Path) -> None:
    train, valid = tomita(4)
    settings = replace(SETTINGS, epochs=10, lr=0.02)
    config = ClassifierConfig(hidden=16, embedding=8)
    result = train_classifier(config, settings, train.where_length(7), valid, {"again": valid}, tmp_path / "run")
    assert result.valid.soft.error < 0.01
    assert result.tests["again"].soft == result.valid.soft
    assert result.valid.hard is None
    assert result.seconds < 60


def test_growing_noise_makes_the_nearest_centroids_answer_as_the_network_does(tmp_path: Path) -> None:
    train, valid = tomita(1)
    settings = ClassifierSettings(epochs=25, batch=32, lr=0.02, patience=None, noise_ramp=0.1)
    config = replace(SMALL, hidden=16, transition="noisy")
    result = train_classifier(config, settings, train.where_length(8), valid, {}, tmp_path / "run")
    records = [record for record in RunFolder(tmp_path / "run").metrics() if "epoch" in record]
    noises = [record["noise"] for record in records]
    assert noises == sorted(noises)
    assert noises[0] == 0.0
    assert noises[-1] == 1.0
    assert result.valid.soft.error == 0.0
    assert result.valid.hard is not None
    assert result.valid.hard.error == 0.0


def test_a_run_is_a_folder_with_the_best_model_and_all_that_was_measured(tmp_path: Path) -> None:
    train, valid = tomita(1)
    records: list[dict[str, Any]] = []
    source = {"data": "tomita:1"}
    settings = replace(SETTINGS, epochs=4)
    result = train_classifier(
        SMALL, settings, train, valid, {}, tmp_path / "run", on_epoch=records.append, source=source
    )
    told = RunFolder(tmp_path / "run").metrics()
    assert [record["epoch"] for record in records] == [1, 2, 3, 4]
    assert told[:-1] == records
    assert told[-1]["valid"]["error"] == result.valid.soft.error
    errors = [(record["valid_error"], record["valid_loss"]) for record in records]
    assert result.best_epoch == errors.index(min(errors)) + 1
    model, about = load_classifier(tmp_path / "run")
    assert about["examples"]["symbols"] == ["0", "1"]
    assert about["examples"]["classes"] == ["reject", "accept"]
    assert about["source"] == source
    wrong = (model.classify(valid.texts()) != valid.labels).mean()
    assert wrong == result.valid.soft.error


def test_the_best_model_is_loaded_at_the_temperature_at_which_it_was_found(tmp_path: Path) -> None:
    train, valid = tomita(1)
    settings = replace(SETTINGS, epochs=5, temperature_end=0.25)
    result = train_classifier(SMALL, settings, train, valid, {}, tmp_path / "run")
    records = RunFolder(tmp_path / "run").metrics()[:-1]
    temperatures = [record["temperature"] for record in records]
    assert temperatures == pytest.approx([1.0, 0.25**0.25, 0.5, 0.25**0.75, 0.25])
    model, _ = load_classifier(tmp_path / "run")
    assert model.config.temperature == temperatures[result.best_epoch - 1]
    assert model.layer.transforms[0].temperature == model.config.temperature  # type: ignore[attr-defined]
    found = measure(model, OnDevice(valid, torch.device("cpu")), batch=64)
    assert found.loss == pytest.approx(result.valid.soft.loss, rel=1e-6)


def test_a_curriculum_begins_where_two_classes_are_and_shows_all_at_the_end(tmp_path: Path) -> None:
    train, valid = tomita(2)  # of its words the empty one is accepted, and 10, 1010
    settings = replace(SETTINGS, epochs=6, curriculum_start=0, curriculum_step=7, curriculum_every=1)
    train_classifier(SMALL, settings, train, valid, {}, tmp_path / "run")
    longest = [record["longest"] for record in RunFolder(tmp_path / "run").metrics()[:-1]]
    assert longest == [1, 8, 12, 19, 22, 22]


def test_patience_begins_when_the_curriculum_is_complete(tmp_path: Path) -> None:
    data = few()
    # A rate so small that nothing changes, so that the first epoch stays the best.
    settings = replace(SETTINGS, epochs=30, lr=1e-30, patience=2, curriculum_start=1, curriculum_every=2)
    result = train_classifier(replace(SMALL, centroids=()), settings, data, data, {}, tmp_path / "run")
    longest = [record["longest"] for record in RunFolder(tmp_path / "run").metrics()[:-1]]
    assert result.best_epoch == 1
    assert longest == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]


@pytest.mark.parametrize(
    ("schedule", "falls"),
    [("constant", lambda rates: rates == [0.01] * 4), ("cosine", lambda rates: rates == sorted(rates, reverse=True))],
)
def test_the_learning_rate_follows_its_schedule(tmp_path: Path, schedule: str, falls: Any) -> None:
    data = few()
    settings = replace(SETTINGS, epochs=4, schedule=schedule)
    train_classifier(SMALL, settings, data, data, {}, tmp_path / "run")
    rates = [record["lr"] for record in RunFolder(tmp_path / "run").metrics()[:-1]]
    assert falls(rates)
    assert (len(set(rates)) == 4) == (schedule == "cosine")


def test_on_a_plateau_the_learning_rate_is_divided(tmp_path: Path) -> None:
    data = few()
    settings = replace(SETTINGS, epochs=4, lr=1e-12, schedule="plateau", divide=4.0)
    train_classifier(SMALL, settings, data, data, {}, tmp_path / "run")
    rates = [record["lr"] for record in RunFolder(tmp_path / "run").metrics()[:-1]]
    assert rates[-1] < rates[0]
    assert all(later in (earlier, earlier / 4.0) for earlier, later in itertools.pairwise(rates))


def striped(count: int, seed: int) -> Images:
    """Pictures of 4 by 4: with a light row or a light column."""
    generator = np.random.default_rng(seed)
    pictures, labels = generator.integers(0, 60, size=(count, 4, 4)), generator.integers(2, size=count)
    for picture, label in zip(pictures, labels, strict=True):
        at = generator.integers(4)
        picture[at if label else slice(None), slice(None) if label else at] = 255
    return Images(values=pictures.reshape(count, 16), labels=labels, classes=("column", "row"), height=4, width=4)


def test_pictures_are_learnt_pixel_by_pixel_and_their_order_is_kept(tmp_path: Path) -> None:
    train, valid = striped(400, 0).permuted(seed=3), striped(200, 1).permuted(seed=3)
    config = ClassifierConfig(cell="peephole", hidden=16, readout="hc")
    settings = ClassifierSettings(epochs=12, batch=50, lr=0.01, optimizer="rmsprop", patience=None)
    result = train_classifier(config, settings, train, valid, {"train": train}, tmp_path / "run")
    assert result.valid.soft.error < 0.2
    model, told = load_classifier(tmp_path / "run")
    assert told["examples"]["permutation"] == train.permutation.tolist()  # type: ignore[union-attr]
    inputs, _, labels = valid.padded(range(200))
    assert float((model(inputs).argmax(1) != labels).float().mean()) == pytest.approx(result.valid.soft.error)


def test_pictures_are_learnt_row_by_row_and_going_on_by_pixels_is_refused(tmp_path: Path) -> None:
    train, valid = striped(400, 0).by_rows(), striped(200, 1).by_rows()
    config = ClassifierConfig(cell="gru", hidden=16, readout="h")
    settings = ClassifierSettings(epochs=6, batch=50, lr=0.02)
    result = train_classifier(config, settings, train, valid, {"train": train}, tmp_path / "run")
    assert result.valid.soft.error < 0.05
    model, told = load_classifier(tmp_path / "run")
    assert model.features == 4
    assert (told["examples"]["by"], told["data"]["by"]) == ("rows", "rows")
    inputs, _, labels = valid.padded(range(200))
    assert float((model(inputs).argmax(1) != labels).float().mean()) == pytest.approx(result.valid.soft.error)
    with pytest.raises(ArgumentError, match="valid: got examples with other by"):
        train_classifier(config, settings, train, striped(200, 1), {}, tmp_path / "other")
    pixels = striped(400, 0), striped(200, 1)
    with pytest.raises(RunFolderError, match=r"data\.by was rows and is now nothing"):
        train_classifier(config, settings, *pixels, {}, tmp_path / "run", resume=True)


def test_equal_lengths_are_given_without_lengths_so_that_a_step_can_be_captured() -> None:
    pictures = OnDevice(striped(6, 0), torch.device("cpu"))
    words = OnDevice(few(4), torch.device("cpu"))
    equal = OnDevice(Sequences.from_words(["ab", "ba"], [0, 1]), torch.device("cpu"))
    rows = torch.tensor([1, 0])
    assert pictures.batch(rows, rows.numpy()).lengths is None
    assert equal.batch(rows, rows.numpy()).lengths is None
    assert words.batch(rows, rows.numpy()).lengths is not None


@pytest.mark.parametrize(
    "examples", [few(40), striped(20, 0), striped(20, 0).by_rows(), copying(3, n=2, count=9, seed=1)]
)
def test_a_batch_of_indices_is_what_the_set_itself_gives(examples: Any) -> None:
    places = np.array([7, 0, 0, 3, 8])
    batch = OnDevice(examples, torch.device("cpu")).batch(torch.from_numpy(places), places)
    inputs, lengths, targets = examples.padded(places)
    assert torch.equal(batch.inputs, inputs)
    assert torch.equal(batch.targets, targets)
    assert (batch.lengths is None) == (lengths is None)
    assert lengths is None or torch.equal(batch.lengths, lengths)  # type: ignore[arg-type]


def test_empty_words_alone_make_a_batch() -> None:
    words = OnDevice(Sequences.from_words(["", "a", ""], [1, 0, 0]), torch.device("cpu"))
    batch = words.batch(torch.tensor([2, 0]), np.array([2, 0]))
    assert batch.inputs.shape == (2, 0)
    nothing = Sequences.from_words(["", ""], [1, 0], symbols="a")
    assert OnDevice(nothing, torch.device("cpu")).batch(torch.tensor([1]), np.array([1])).inputs.shape == (1, 0)


def test_symbols_that_are_shown_are_copied_at_once(tmp_path: Path) -> None:
    train, valid = copying(1, n=1, count=256, seed=0), copying(1, n=1, count=64, seed=1)
    settings = ClassifierSettings(epochs=12, batch=32, lr=0.02)
    config = StepConfig(cell="gru", hidden=16)
    result = train_steps(config, settings, train, valid, {"test": valid}, tmp_path / "run")
    assert result.tests["test"].soft.loss < 0.5 * train.baseline
    model, told = load_steps(tmp_path / "run")
    inputs, _, targets = valid.padded(range(64))
    loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    assert float(loss.detach()) == pytest.approx(result.valid.soft.loss, rel=1e-5)
    assert told["examples"]["kind"] == "copying"


def test_what_is_measured_is_what_the_words_themselves_say() -> None:
    data = few()
    model = SMALL.build(tokens=2, classes=2, symbols="01", generator=torch.Generator().manual_seed(3))
    soft = measure(model, OnDevice(data, torch.device("cpu")), batch=7)
    hard = measure(model, OnDevice(data, torch.device("cpu")), batch=11, hard=True)
    for found, answers in (
        (soft, model.classify(data.texts())),
        (hard, model.with_transition("argmax").classify(data.texts())),
    ):
        assert found.error == (answers != data.labels).mean()
        table = [[int(((data.labels == i) & (answers == j)).sum()) for j in range(2)] for i in range(2)]
        assert found.confusion == tuple(map(tuple, table))
    assert model.training
    assert model.config.transition == "mixture"


def test_a_set_of_one_class_is_refused_and_no_folder_made(tmp_path: Path) -> None:
    data = Sequences.from_words(["ab", "b"], [1, 1])
    with pytest.raises(DataError, match="two classes"):
        train_classifier(SMALL, SETTINGS, data, data, {}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (Sequences.from_words(["ab"], [1], symbols="abc"), "valid: got examples with other symbols"),
        (Sequences.from_words([], [], symbols="01"), "valid: got no examples"),
        (Sequences.from_words(["1"], [1], symbols="01", classes=("no", "yes")), "other classes"),
    ],
)
def test_a_set_of_another_kind_is_refused(tmp_path: Path, other: Sequences, told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        train_classifier(SMALL, SETTINGS, few(), other, {}, tmp_path / "run")


def test_a_run_that_comes_to_nothing_says_so(tmp_path: Path) -> None:
    settings = replace(SETTINGS, optimizer="sgd", lr=1e30, clip=None, epochs=20)
    with pytest.raises(DivergedError):
        train_classifier(SMALL, settings, few(), few(), {}, tmp_path / "run")


def test_a_run_goes_on_with_more_epochs_and_with_nothing_else_changed(tmp_path: Path) -> None:
    data = few()
    train_classifier(SMALL, SETTINGS, data, data, {}, tmp_path / "run")
    longer = replace(SETTINGS, epochs=4)
    raised = train_classifier(SMALL, longer, data, data, {"new": data}, tmp_path / "run", resume=True)
    at_once = train_classifier(SMALL, longer, data, data, {"new": data}, tmp_path / "other")
    assert replace(raised, folder=at_once.folder, seconds=at_once.seconds) == at_once
    with pytest.raises(RunFolderError, match=r"training\.lr was"):
        train_classifier(SMALL, replace(longer, lr=0.5), data, data, {}, tmp_path / "run", resume=True)
    with pytest.raises(RunFolderError, match=r"data\.train\.checksum"):
        train_classifier(SMALL, longer, few().select(slice(59, None, -1)), data, {}, tmp_path / "run", resume=True)


@pytest.mark.parametrize("planned", [{"schedule": "cosine"}, {"temperature_end": 0.5}])
def test_a_run_whose_last_epoch_was_planned_does_not_go_on_with_more(tmp_path: Path, planned: dict[str, Any]) -> None:
    data, settings = few(), replace(SETTINGS, **planned)
    first = train_classifier(SMALL, settings, data, data, {}, tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"training\.epochs was 2 and is now 4.* another folder"):
        train_classifier(SMALL, replace(settings, epochs=4), data, data, {}, tmp_path / "run", resume=True)
    again = train_classifier(SMALL, settings, data, data, {}, tmp_path / "run", resume=True)
    assert (again.epochs, again.valid) == (first.epochs, first.valid)


def test_fewer_epochs_than_a_run_has_are_refused_and_not_written_down(tmp_path: Path) -> None:
    data = few()
    train_classifier(SMALL, replace(SETTINGS, epochs=3), data, data, {}, tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_bytes()
    with pytest.raises(RunFolderError, match=r"got 2 epochs, wanted at least the 3 .* another folder"):
        train_classifier(SMALL, SETTINGS, data, data, {}, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_an_epoch_whose_every_gradient_overflows_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    norms = itertools.cycle([math.inf, 1.0])
    monkeypatch.setattr("statewise.train.eager.clip_grad_norm_", lambda *_: torch.tensor(next(norms)))
    result = train_classifier(SMALL, SETTINGS, few(64), few(), {}, tmp_path / "some")
    told = RunFolder(tmp_path / "some").metrics()
    assert [record["skipped"] for record in told[: result.epochs]] == [1, 1], "one of two updates is no reason to end"
    monkeypatch.setattr("statewise.train.eager.clip_grad_norm_", lambda *_: torch.tensor(math.inf))
    with pytest.raises(DivergedError, match=r"each of its 2 updates.*--lr.*--clip.*--forget-bias") as stopped:
        train_classifier(SMALL, SETTINGS, few(64), few(), {}, tmp_path / "all")
    assert stopped.value.step == 2


@pytest.mark.parametrize("name", ["model.head.bias", "best.head.bias"])
def test_a_resume_point_without_one_parameter_is_refused(tmp_path: Path, name: str) -> None:
    data, longer = few(), replace(SETTINGS, epochs=4)
    train_classifier(SMALL, SETTINGS, data, data, {}, tmp_path / "run")
    path = tmp_path / "run" / "resume.safetensors"
    tensors, document = read_tensors(path)
    write_tensors(path, {each: tensor for each, tensor in tensors.items() if each != name}, document)
    with pytest.raises(RunFolderError, match=r"got no head\.bias, wanted every parameter"):
        train_classifier(SMALL, longer, data, data, {}, tmp_path / "run", resume=True)


def test_folders_of_other_tasks_are_not_loaded(tmp_path: Path) -> None:
    data = few()
    train_classifier(SMALL, replace(SETTINGS, epochs=1), data, data, {}, tmp_path / "run")
    with pytest.raises(RunFolderError, match="wanted 'language model'"):
        load_language_model(tmp_path / "run")
    with pytest.raises(RunFolderError, match="wanted 'step classifier'"):
        load_steps(tmp_path / "run")


def test_weights_may_be_given_and_are_never_made_worse(tmp_path: Path) -> None:
    train, valid = tomita(1)
    first = train_classifier(SMALL, replace(SETTINGS, epochs=6), train, valid, {}, tmp_path / "first")
    weights = load_classifier(tmp_path / "first")[0].state_dict()
    bad = replace(SETTINGS, epochs=1, lr=0.5)
    tuned = train_classifier(SMALL, bad, train, valid, {}, tmp_path / "tuned", weights=weights)
    assert tuned.valid.soft.error <= first.valid.soft.error


def test_a_run_that_is_older_than_a_setting_goes_on(tmp_path: Path) -> None:
    data, config = few(), tmp_path / "run" / "config.json"
    train_classifier(SMALL, SETTINGS, data, data, {}, tmp_path / "run")
    told = json.loads(config.read_text())
    for part, name in (("model", "input_gain"), ("model", "dropout"), ("training", "solved")):
        del told[part][name]
    config.write_text(json.dumps(told))
    longer = replace(SETTINGS, epochs=SETTINGS.epochs + 1)
    with pytest.raises(RunFolderError, match=r"model\.dropout was 0\.0 and is now 0\.1"):
        train_classifier(replace(SMALL, dropout=0.1), longer, data, data, {}, tmp_path / "run", resume=True)
    assert train_classifier(SMALL, longer, data, data, {}, tmp_path / "run", resume=True).epochs == longer.epochs
    assert json.loads(config.read_text())["model"]["dropout"] == 0.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("batch", 0),
        ("optimizer", "lbfgs"),
        ("schedule", "linear"),
        ("lr", -1.0),
        ("clip", 0),
        ("patience", 0),
        ("curriculum_start", -1),
        ("temperature_end", 0.0),
        ("noise_ramp", -0.1),
        ("divide", 1.0),
        ("seed", -1),
        ("precision", "half"),
    ],
)
def test_settings_outside_their_domain_are_named(field: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"ClassifierSettings\.{field}"):
        replace(SETTINGS, **{field: value})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def undisturbed(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return undisturbed_outcomes(forks, tmp_path_factory.mktemp("undisturbed"), KINDS)


def test_the_rules_act_in_these_runs(undisturbed: dict[str, Outcome]) -> None:
    """Otherwise the tests below would not see what a rule forgets."""
    records = undisturbed["classifier"][2][:-1]
    for name in ("longest", "noise", "temperature", "lr"):
        assert len({record[name] for record in records}) > 1, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_writes_often_is_the_run_that_writes_never(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str
) -> None:
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == undisturbed[kind]


@pytest.mark.parametrize(
    ("kind", "kill"),
    [
        pytest.param(kind, kill, marks=() if (kind, kill) in QUICK else pytest.mark.slow)
        for kind in KINDS
        for kill in (*range(1, 10), 14)
    ],
)
def test_killed_in_the_middle_of_a_write_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str, kill: int
) -> None:
    assert forks.run(str(tmp_path / "run"), "--kind", kind, "--die-at", str(kill)) == -signal.SIGKILL
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == undisturbed[kind]


def test_killed_between_epochs_whose_rules_have_acted_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    for epoch in (2, 5):
        assert forks.run(run, "--kind", "classifier", "--die-after", str(epoch)) == -signal.SIGKILL
    assert forks.run(run, "--kind", "classifier") == 0
    assert outcome(tmp_path / "run") == undisturbed["classifier"]


@pytest.mark.gpu
@pytest.mark.parametrize("transition", ["mixture", "noisy"])
def test_pictures_are_trained_by_graphs_that_follow_temperature_and_noise(tmp_path: Path, transition: str) -> None:
    train, valid = striped(200, 0), striped(60, 1)
    config = ClassifierConfig(cell="peephole", hidden=16, centroids=(5,), readout="hc", transition=transition)
    settings = ClassifierSettings(epochs=4, batch=20, temperature_end=0.5, solved=9.0, noise_ramp=0.02)
    found = []
    for graph in (True, False):
        folder = tmp_path / str(graph)
        train_classifier(config, settings, train, valid, {}, folder, device="cuda", graph=graph)
        found.append([record["valid_loss"] for record in RunFolder(folder).metrics()[:-1]])
    assert found[0] == pytest.approx(found[1], rel=1e-3)


@pytest.mark.gpu
def test_steps_of_a_copying_task_are_trained_by_graphs(tmp_path: Path) -> None:
    train, valid = copying(5, n=3, count=100, seed=0), copying(5, n=3, count=20, seed=1)
    config, settings = StepConfig(cell="lstm", hidden=16, centroids=(5,)), ClassifierSettings(epochs=3, batch=20)
    result = train_steps(config, settings, train, valid, {}, tmp_path / "run", device="cuda", graph=True)
    assert np.isfinite(result.valid.soft.loss)


@pytest.mark.gpu
def test_words_of_several_lengths_are_trained_alike_on_an_accelerator_and_a_cpu(tmp_path: Path) -> None:
    found = []
    for device in ("cpu", "cuda"):
        train_classifier(SMALL, SETTINGS, few(), few(), {}, tmp_path / device, device=device)
        found.append([record["valid_loss"] for record in RunFolder(tmp_path / device).metrics()[:-1]])
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_rare_class_shows_in_the_balanced_accuracy_and_in_matthews_correlation() -> None:
    always_the_same = Measured(0.1, 0.05, 20, ((19, 0), (1, 0)))
    assert always_the_same.balanced_accuracy == 0.5
    assert always_the_same.correlation == 0.0
    # Two classes: (TP TN - FP FN) over the root of the product of the four sums.
    two = Measured(0.1, 0.3, 10, ((4, 1), (2, 3)))
    assert two.correlation == pytest.approx((3 * 4 - 1 * 2) / (4 * 5 * 5 * 6) ** 0.5)
    assert Measured(0.0, 0.0, 6, ((2, 0, 0), (0, 1, 0), (0, 0, 3))).correlation == pytest.approx(1.0)
    assert Measured(0.0, 1.0, 2, ((0, 1), (1, 0))).correlation == pytest.approx(-1.0)
