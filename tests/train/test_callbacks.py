"""What acts on the weights while a classifier is trained: projection, the penalty on its class, rounding."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from statewise.bounds.grid import Ledger
from statewise.bounds.levels import find_levels
from statewise.bounds.measured_class import network_blocks, network_class
from statewise.bounds.penalty import smooth_cover_nats
from statewise.bounds.quantised import describe
from statewise.bounds.reading import read_model
from statewise.data import Images, Sequences, copying
from statewise.errors import ArgumentError, AssumptionError, DivergedError, DtypeError, RunFolderError
from statewise.models import ClassifierConfig
from statewise.models.steps import StepConfig
from statewise.train import (
    Callback,
    ClassifierSettings,
    CoverPenalty,
    RoundedWeights,
    RunFolder,
    SpectralProjection,
    callbacks_of,
    load_classifier,
    load_steps,
    promises,
    train_classifier,
    train_steps,
)
from statewise.train.callback_kinds import KINDS
from statewise.train.callbacks import Callbacks
from statewise.train.classify_data import OnDevice
from statewise.train.projection import project_folded_
from statewise.train.tasks import measure

CELLS = ("rnn", "mgu", "gru", "lstm")
CONFIG = ClassifierConfig(cell="rnn", hidden=6, readout="h")
#: Rates so high that norms go beyond every promise.
SETTINGS = ClassifierSettings(epochs=2, batch=20, lr=0.05)
PROJECTION = SpectralProjection(recurrent=0.7, input=1.5, head=0.9)
TERNARY = RoundedWeights(levels=3, bias_levels=7)


def striped(count: int, seed: int = 0) -> Images:
    """Pictures of 4 by 3, read row by row: with a light row or a light column."""
    generator = np.random.default_rng(seed)
    pictures, labels = generator.integers(0, 60, size=(count, 4, 3)), np.arange(count) % 2
    for picture, label in zip(pictures, labels, strict=True):
        at = generator.integers(3)
        picture[at if label else slice(None), slice(None) if label else at] = 255
    values = pictures.reshape(count, 12)
    return Images(values=values, labels=labels, classes=("column", "row"), height=4, width=3).by_rows()


TRAIN, VALID = striped(80), striped(40, seed=1)
COVER = CoverPenalty(strength=1.0, sequences=80, steps=4, input_bound=math.sqrt(3))


def words() -> Sequences:
    texts = [format(number, "b") for number in range(40)]
    return Sequences.from_words(texts, [text.count("1") % 2 for text in texts])


def trained(folder: Path, *callbacks: Callback, config: ClassifierConfig = CONFIG, **options: Any) -> Any:
    settings = options.pop("settings", SETTINGS)
    return train_classifier(config, settings, TRAIN, VALID, {"test": VALID}, folder, callbacks=callbacks, **options)


def folded_norms(folder: Path) -> dict[str, float]:
    """The spectral norms of a stored model as bounds see them."""
    matrices = read_model(load_classifier(folder)[0]).matrices
    assert matrices is not None
    return {name: float(np.linalg.norm(matrix, 2)) for name, matrix in network_blocks(matrices).items()}


class TestProjection:
    @pytest.mark.parametrize("cell", CELLS)
    def test_norms_with_biases_end_within_the_promise(self, tmp_path: Path, cell: str) -> None:
        config = replace(CONFIG, cell=cell)
        trained(tmp_path / "free", config=config)
        trained(tmp_path / "bound", PROJECTION, config=config)
        limits = {"W": 1.5, "U": 0.7, "V": 0.9}
        assert any(norm > limits[name[0]] for name, norm in folded_norms(tmp_path / "free").items())
        found = folded_norms(tmp_path / "bound")
        assert len(found) == {"rnn": 3, "mgu": 5, "gru": 7, "lstm": 9}[cell]
        assert all(norm <= limits[name[0]] for name, norm in found.items()), found
        assert any(norm > 0.999 * limits[name[0]] for name, norm in found.items()), "not smaller than need be"

    def test_a_certificate_takes_the_promise_for_nothing(self, tmp_path: Path) -> None:
        trained(tmp_path / "run", PROJECTION, config=replace(CONFIG, cell="gru"))
        model, told = load_classifier(tmp_path / "run")
        matrices = read_model(model).matrices
        assert matrices is not None
        ledger = Ledger(promised=promises(callbacks_of(told), model))
        network_class(matrices, steps=4, input_bound=math.sqrt(3), ledger=ledger, gates=False)
        assert ledger.nats.keys() == ledger.promised.keys()
        assert ledger.total == 0.0

    def test_nothing_is_promised_of_rounded_weights_and_of_free_biases(self) -> None:
        model = CONFIG.build(features=3, classes=2)
        assert promises((PROJECTION, TERNARY), model) == {}
        assert promises((replace(PROJECTION, biases=False),), model) == {"U": 0.7}
        deep = replace(CONFIG, layers=2).build(features=3, classes=2)
        assert promises((PROJECTION,), deep).keys() == {*(f"layer {at}: {side}" for at in (0, 1) for side in "WU"), "V"}

    def test_what_obeys_keeps_its_bits_and_what_does_not_is_the_nearest_that_does(self) -> None:
        generator = torch.Generator().manual_seed(0)
        weight, first, second = (torch.randn(shape, generator=generator) for shape in ((4, 3), (4,), (4,)))
        before = torch.column_stack([weight, first + second]).double()
        kept = (weight.clone(), first.clone(), second.clone())
        project_folded_(*kept[:1], kept[1:], bound=100.0)
        assert all(torch.equal(*pair) for pair in zip(kept, (weight, first, second), strict=True))
        project_folded_(weight, (first, second), bound=1.0)
        left, values, right = torch.linalg.svd(before, full_matrices=False)
        nearest = left @ torch.diag(values.clamp(max=1.0)) @ right
        assert torch.equal(first, second)
        torch.testing.assert_close(torch.column_stack([weight, first + second]).double(), nearest, atol=1e-5, rtol=0)

    def test_what_is_not_finite_is_left_for_the_loss_to_tell(self) -> None:
        weight = torch.tensor([[math.inf, 9.0]])
        project_folded_(weight, (), bound=1.0)
        assert weight.tolist() == [[math.inf, 9.0]]

    def test_the_weights_of_the_beginning_are_within_the_promise_too(self, tmp_path: Path) -> None:
        weights = CONFIG.build(features=3, classes=2).state_dict()
        weights = {name: 50 * weight for name, weight in weights.items()}
        still = replace(SETTINGS, epochs=1, lr=1e-30)
        trained(tmp_path / "run", PROJECTION, settings=still, weights=weights)
        assert max(folded_norms(tmp_path / "run").values()) <= 1.5

    def test_a_run_that_diverges_is_told_as_such(self, tmp_path: Path) -> None:
        wild = replace(SETTINGS, optimizer="sgd", lr=1e30, clip=None, epochs=20)
        free = SpectralProjection(recurrent=None, input=None, head=1.0)
        with pytest.raises(DivergedError):
            trained(tmp_path / "run", free, COVER, config=replace(CONFIG, nonlinearity="relu"), settings=wild)

    @pytest.mark.parametrize("field", ["recurrent", "input", "head"])
    def test_a_bound_that_is_none_is_named(self, field: str) -> None:
        with pytest.raises(ArgumentError, match=f"SpectralProjection.{field}"):
            replace(PROJECTION, **{field: 0.0})  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="no bound at all"):
            SpectralProjection(recurrent=None, input=None, head=None)


class TestPenalty:
    @pytest.mark.parametrize("cell", CELLS)
    def test_a_penalised_run_has_fewer_nats(self, tmp_path: Path, cell: str) -> None:
        nats = {}
        for name, callbacks in {"free": (), "bound": (COVER,)}.items():
            trained(tmp_path / name, *callbacks, config=replace(CONFIG, cell=cell))
            model, _ = load_classifier(tmp_path / name)
            nats[name] = smooth_cover_nats(model, steps=4, input_bound=math.sqrt(3)).item()
        assert nats["bound"] < 0.9 * nats["free"]

    def test_the_penalty_is_told_beside_the_loss_which_stays_that_of_the_task(self, tmp_path: Path) -> None:
        trained(tmp_path / "run", replace(COVER, strength=100.0), settings=replace(SETTINGS, epochs=1, lr=1e-9))
        record = RunFolder(tmp_path / "run").metrics()[0]
        model, _ = load_classifier(tmp_path / "run")
        nats = smooth_cover_nats(model, steps=4, input_bound=math.sqrt(3)).item()
        assert record["penalty"] == pytest.approx(100 * nats / 80, rel=1e-4)
        assert record["train_loss"] < 2.0

    @pytest.mark.parametrize(("field", "value"), [("strength", -1.0), ("steps", 0), ("sequences", 0), ("gamma", 0.0)])
    def test_what_makes_no_penalty_is_named(self, field: str, value: Any) -> None:
        with pytest.raises(ArgumentError, match=f"CoverPenalty.{field}"):
            replace(COVER, **{field: value})


class TestRounding:
    @pytest.mark.parametrize("cell", ["rnn", "gru"])
    def test_the_stored_model_lies_on_its_levels_and_is_the_one_that_was_validated(
        self, tmp_path: Path, cell: str
    ) -> None:
        result = trained(tmp_path / "run", TERNARY, config=replace(CONFIG, cell=cell))
        model, _ = load_classifier(tmp_path / "run")
        for name, parameter in model.named_parameters():
            found = find_levels(parameter)
            assert found is not None, name
            assert found.index is not None, "the step is on the grid"
            assert found.levels <= (3 if parameter.ndim > 1 else 7), name
        free = replace(CONFIG, cell=cell).build(features=3, classes=2)
        assert describe(model).nats < 0.2 * describe(free).nats
        again = measure(model, OnDevice(VALID, torch.device("cpu")), batch=512)
        assert again == result.valid.soft == result.tests["test"].soft
        best = RunFolder(tmp_path / "run").metrics()[result.best_epoch - 1]
        assert (again.loss, again.error) == (best["valid_loss"], best["valid_error"])

    def test_the_optimiser_moves_weights_that_are_not_rounded(self, tmp_path: Path) -> None:
        trained(tmp_path / "run", TERNARY)
        found = RunFolder(tmp_path / "run").load_resume()
        assert found is not None
        assert len(found[0]["model.layer.weight_hh_l0"].unique()) > 3
        assert len(found[0]["best.layer.weight_hh_l0"].unique()) <= 3

    def test_with_a_penalty_the_rounded_weights_are_penalised(self) -> None:
        model = CONFIG.build(features=3, classes=2)
        acting = (COVER, TERNARY)
        seen: list[int] = []

        @dataclass(frozen=True)
        class Looks(Callback):
            kind: ClassVar[str] = "looks"

            def penalty(self, model: Any) -> Tensor:
                seen.append(len(model.head.weight.unique()))
                return model.head.weight.sum()  # type: ignore[no-any-return]

        _, penalty = Callbacks.of((*acting, Looks())).forward(model, torch.zeros(1, 4, 3), None)
        assert seen == [3]
        penalty.backward()
        assert model.head.weight.grad is not None
        assert bool(model.head.weight.grad.abs().sum() > 0)
        assert len(model.head.weight.unique()) > 3, "afterwards the parameters are in their places again"

    def test_levels_are_chosen_by_name_and_unknown_names_refused(self, tmp_path: Path) -> None:
        model = CONFIG.build(features=3, classes=2)
        with torch.no_grad():
            found = RoundedWeights(levels=2, levels_of={"head.weight": 200}).weights(model)
        assert len(found["layer.weight_hh_l0"].unique()) == 2
        assert len(found["head.weight"].unique()) > 3
        with pytest.raises(ArgumentError, match=r"levels_of: got head, wanted names among head\.bias"):
            trained(tmp_path / "run", RoundedWeights(levels_of={"head": 3}))
        assert not (tmp_path / "run").exists()
        with pytest.raises(ArgumentError, match=r"RoundedWeights\.levels: got 1"):
            RoundedWeights(levels=1)

    def test_a_classifier_of_steps_is_rounded_too(self, tmp_path: Path) -> None:
        data = copying(1, n=1, count=40, seed=0)
        settings = ClassifierSettings(epochs=1, batch=20)
        train_steps(StepConfig(cell="gru", hidden=4), settings, data, data, {}, tmp_path / "run", callbacks=(TERNARY,))
        model, told = load_steps(tmp_path / "run")
        assert callbacks_of(told) == (TERNARY,)
        assert len(model.layer.weight_hh_l0.unique()) <= 3


class TestRuns:
    ALL = (PROJECTION, COVER, TERNARY)

    def test_callbacks_are_told_in_the_config_and_come_back_from_there(self, tmp_path: Path) -> None:
        trained(tmp_path / "run", *self.ALL)
        told = json.loads((tmp_path / "run" / "config.json").read_text())
        assert [each["kind"] for each in told["callbacks"]] == list(KINDS)
        assert told["callbacks"][0] == {**PROJECTION.describe(), "kind": "spectral projection"}
        assert callbacks_of(load_classifier(tmp_path / "run")[1]) == self.ALL

    def test_without_callbacks_nothing_is_told_of_them(self, tmp_path: Path) -> None:
        trained(tmp_path / "run")
        assert "callbacks" not in json.loads((tmp_path / "run" / "config.json").read_text())
        assert callbacks_of(load_classifier(tmp_path / "run")[1]) == ()
        assert all("penalty" not in record for record in RunFolder(tmp_path / "run").metrics())

    @pytest.mark.parametrize("others", [(), ALL[:2], (replace(PROJECTION, head=1.0), *ALL[1:]), ALL[::-1]])
    def test_a_run_goes_on_with_its_callbacks_only(self, tmp_path: Path, others: tuple[Callback, ...]) -> None:
        trained(tmp_path / "run", *self.ALL, settings=replace(SETTINGS, epochs=1))
        with pytest.raises(RunFolderError, match="callbacks was"):
            trained(tmp_path / "run", *others, resume=True)
        trained(tmp_path / "run", *self.ALL, resume=True)

    def test_a_run_that_goes_on_is_the_run_that_did_not_stop(self, tmp_path: Path) -> None:
        trained(tmp_path / "run", *self.ALL, settings=replace(SETTINGS, epochs=1))
        trained(tmp_path / "run", *self.ALL, resume=True)
        trained(tmp_path / "once", *self.ALL)
        found = [RunFolder(tmp_path / name).load_resume() for name in ("run", "once")]
        assert found[0] is not None
        assert found[1] is not None
        assert all(torch.equal(tensor, found[1][0][name]) for name, tensor in found[0][0].items())

    def test_others_can_be_written_and_are_not_built_from_a_folder(self, tmp_path: Path) -> None:
        @dataclass(frozen=True)
        class Zero(Callback):
            kind: ClassVar[str] = "zero"

            def weights(self, model: nn.Module) -> Mapping[str, Tensor]:
                return {"head.bias": torch.zeros(2)}

        trained(tmp_path / "run", Zero())
        model, told = load_classifier(tmp_path / "run")
        assert not model.head.bias.any()
        with pytest.raises(RunFolderError, match="the kind 'zero'"):
            callbacks_of(told)
        with pytest.raises(ArgumentError, match=r"two for head\.bias"):
            trained(tmp_path / "two", Zero(), TERNARY)

    @pytest.mark.parametrize("cell", ["rac", "peephole", "multiplicative"])
    def test_cells_that_no_bound_knows_are_refused_by_name(self, tmp_path: Path, cell: str) -> None:
        config = replace(CONFIG, cell=cell)
        name = config.build(features=3, classes=2).layer.cell.name
        with pytest.raises(ArgumentError, match=f"SpectralProjection: got the {name} cell"):
            trained(tmp_path / "run", PROJECTION, config=config)
        with pytest.raises(AssumptionError, match=f"CoverPenalty: got the {name} cell"):
            trained(tmp_path / "run", COVER, config=config)
        assert not (tmp_path / "run").exists()

    def test_what_is_no_callback_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DtypeError, match="callbacks: got RoundedWeights, wanted instances"):
            Callbacks.of([RoundedWeights])
        with pytest.raises(ArgumentError, match="graph: got True with callbacks"):
            trained(tmp_path / "run", TERNARY, graph=True)

    def test_words_are_penalised_with_their_embedding(self, tmp_path: Path) -> None:
        config, data = replace(CONFIG, readout="u_end", embedding=3), words()
        cover = CoverPenalty(strength=1.0, sequences=40, steps=6)
        train_classifier(config, SETTINGS, data, data, {}, tmp_path / "run", callbacks=(PROJECTION, cover))
        assert all(record["penalty"] > 0 for record in RunFolder(tmp_path / "run").metrics()[:-1])
        with pytest.raises(ArgumentError, match="input_bound"):
            train_classifier(config, SETTINGS, data, data, {}, tmp_path / "other", callbacks=(COVER,))
