"""``statewise train series``, and ``predict`` and ``evaluate`` of its runs, as a user types them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from commands.typing_commands import Typed
from statewise.cli import main
from statewise.data import Series, read_series, sample_bursts, sample_seasons, write_series
from statewise.train import RunFolder, load_forecaster, load_language_model

QUICK = ["--hidden", "8", "--lr", "0.02", "--device", "cpu", "--quiet"]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of sequences, and two runs."""
    place = tmp_path_factory.mktemp("series")
    bursts = sample_bursts(42, noise=0.1)
    names = [f"burst {number}" for number in range(len(bursts))]
    classes = [bursts.classes[label] for label in bursts.labels]  # type: ignore[union-attr]
    named = Series.from_arrays(
        [bursts.sequence(at)[:20] for at in range(len(bursts))], labels=classes, features=bursts.features, names=names
    )
    write_series(place / "bursts.csv", named.select(slice(0, 36)))
    write_series(place / "later.csv", named.select(slice(36, None)))
    write_series(place / "seasons.csv", sample_seasons(12, steps=40))
    write_series(place / "one.csv", sample_seasons(1, steps=60, seed=1))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place)
        test = ["--test", str(place / "later.csv")]
        main(
            ["train", "series", "--data", "bursts.csv", *test, *QUICK, "--epochs", "2", "--out", str(place / "classes")]
        )
        main(["train", "series", "--data", "seasons.csv", *QUICK, "--epochs", "3", "--window", "20", "--batch", "4",
              "--out", str(place / "next")])  # fmt: skip
    return place


def objects(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines()]


class TestTrain:
    def test_what_is_learnt_is_told_by_the_file(self, files: Path) -> None:
        classes, following = (RunFolder(files / name).config() for name in ("classes", "next"))
        assert (classes["task"], classes["source"]["target"]) == ("classifier", "label")
        assert (following["task"], following["source"]["target"]) == ("forecaster", "next")
        assert classes["model"]["readout"] == "h"
        assert following["source"]["window"] == 20

    def test_samples_need_no_file_and_tell_how_to_go_on(self, typed: Typed) -> None:
        said = typed("train", "series", "--data", "sample-next", *QUICK, "--epochs", "1", "--out", "runs/a")
        assert "last value's" in said
        assert "statewise predict runs/a FILE --steps 5" in said
        assert "statewise train series --resume --out runs/a --epochs 2" in said
        said = typed("train", "series", "--resume", "--out", "runs/a", "--epochs", "2", "--quiet")
        assert "Best after epoch" in said
        assert len(RunFolder("runs/a").metrics()) >= 3
        found = json.loads(typed("train", "series", "--data", "sample", *QUICK, "--epochs", "1", "--json", "--batch",
                                 "64", "--out", "runs/b", "--cell", "lstm"))  # fmt: skip
        assert found["config"]["source"]["target"] == "label"
        assert found["folder"] == "runs/b"
        assert {"valid", "tests"} <= found["result"].keys()
        assert RunFolder("runs/b").config()["model"]["readout"] == "hc"

    def test_the_end_of_a_single_sequence_is_held_back(self, typed: Typed, files: Path) -> None:
        said = typed("train", "series", "--data", str(files / "one.csv"), *QUICK[:-1], "--epochs", "1", "--out", "run")
        assert "1 sequences of 54 to 54 steps to train on, 1 to choose by" in said

    def test_columns_are_named_and_one_file_may_serve_both_targets(self, typed: Typed, tmp_path: Path) -> None:
        rows = [f"{at % 12},{'up' if at % 12 < 6 else 'down'},{at // 12},{at}" for at in range(120)]
        (tmp_path / "odd.csv").write_text("who,way,hour,volts\n" + "\n".join(rows) + "\n")
        columns = ["--sequence", "who", "--label", "way", "--time", "hour", "--features", "volts"]
        for target in ("label", "next"):
            typed("train", "series", "--data", "odd.csv", "--target", target, *columns, *QUICK, "--epochs", "1",
                  "--out", target)  # fmt: skip
            assert typed("predict", target, "odd.csv").count("\n") in (12, 13)

    def test_what_cannot_be_learnt_is_refused_in_the_words_of_the_command(
        self, refused: Typed, files: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "bad.csv").write_text("id,label,x\na,up,1\na,up,two\nb,down,3\n")
        (tmp_path / "same.csv").write_text("id,label,x\na,up,1\na,up,2\nb,up,3\n")
        (tmp_path / "short.csv").write_text("x\n1\n2\n3\n")
        train = ["train", "series", "--data"]
        assert "bad.csv, line 3, field 'x': got 'two', wanted a number" in " ".join(refused(*train, "bad.csv").split())
        assert "same.csv: got 2 of 'up', wanted sequences of two classes" in " ".join(
            refused(*train, "same.csv").split()
        )
        assert "got 3 steps" in refused(*train, "short.csv")
        assert "no labels" in refused(*train, "short.csv", "--target", "label")
        assert "which is no file" in refused(*train, "absent.csv")
        assert "wanted sequences of numbers" in refused("train", "series")
        assert "no such option with --target next" in refused(*train, "sample-next", "--readout", "h")
        assert "no such option with --target label" in refused(*train, "sample", "--window", "9")
        assert "the sample as it is" in refused(*train, "sample", "--sequence", "id")
        assert "--resume --out" in refused(*train, str(files / "bursts.csv"), "--out", str(files / "classes"))
        assert "wanted a run of statewise train series" in refused(
            "train", "series", "--resume", "--out", other(tmp_path)
        )


def other(folder: Path) -> str:
    """The folder of a run of another kind."""
    options = ["--hidden", "4", "--epochs", "1", "--quiet", "--device", "cpu", "--batch", "512"]
    main(["train", "classify", "--data", "tomita:1", *options, "--out", str(folder / "other")])
    return str(folder / "other")


class TestPredict:
    def test_each_sequence_has_a_class_and_probabilities(self, typed: Typed, files: Path) -> None:
        run, later = str(files / "classes"), str(files / "later.csv")
        lines = typed("predict", run, later).splitlines()
        assert [line.split("\t")[0] for line in lines] == [f"burst {number}" for number in range(36, 42)]
        assert all(line.split("\t")[1] in ("sawtooth", "sine", "square") for line in lines)
        shares = [
            list(map(float, line.split("\t")[2:]))
            for line in typed("predict", run, later, "--probabilities").splitlines()
        ]
        assert all(sum(row) == pytest.approx(1, abs=1e-3) and len(row) == 3 for row in shares)
        found = objects(typed("predict", run, later, "--format", "jsonl", "--probabilities"))
        assert [each["class"] for each in found] == [line.split("\t")[1] for line in lines]
        assert found[0]["probability"] == max(found[0]["probabilities"].values())

    def test_files_of_other_forms_are_answered_alike(self, typed: Typed, files: Path, tmp_path: Path) -> None:
        plain = typed("predict", str(files / "classes"), str(files / "later.csv"))
        for name in ("later.jsonl", "later.npz", "later.tsv.gz"):
            write_series(tmp_path / name, read_series(files / "later.csv"))
            assert typed("predict", str(files / "classes"), name) == plain

    def test_a_table_may_come_from_standard_input(
        self, typed: Typed, files: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = (files / "later.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        said = typed("predict", str(files / "classes"), "-", "--kind", "csv")
        assert said == typed("predict", str(files / "classes"), str(files / "later.csv"))

    def test_next_values_have_a_mean_a_deviation_and_quantiles(self, typed: Typed, files: Path) -> None:
        run, data = str(files / "next"), str(files / "one.csv")
        head, *rows = typed("predict", run, data).splitlines()
        assert head == "sequence\tstep\tfeature\tmean\tdeviation\tq05\tq95"
        assert [row.split("\t")[:3] for row in rows] == [["1", "1", "season"], ["1", "1", "chaos"]]
        law = load_forecaster(run)[0].predict(torch.tensor(read_series(data).sequence(0)).unsqueeze(0))
        mean, deviation, low, high = map(float, rows[0].split("\t")[3:])
        assert mean == pytest.approx(float(law.mean[0, -1, 0]), rel=1e-4)
        assert deviation == pytest.approx(float(law.deviation[0, -1, 0]), rel=1e-4)
        assert (high - low) / deviation == pytest.approx(2 * 1.6449, rel=1e-3)
        steps = ["--steps", "4", "--samples", "50", "--seed", "3", "--format", "jsonl"]
        (found,) = objects(typed("predict", run, data, *steps))
        assert [row["step"] for row in found["next"]] == [1, 1, 2, 2, 3, 3, 4, 4]
        assert objects(typed("predict", run, data, *steps)) == [found]
        assert typed("predict", run, data, "--steps", "4", "--out", "next.tsv").startswith("Written: next.tsv, 9 lines")

    def test_options_and_files_that_do_not_fit_the_run_are_refused(
        self, refused: Typed, files: Path, tmp_path: Path
    ) -> None:
        run, later = str(files / "classes"), str(files / "later.csv")
        assert "no such option for a run" in refused("predict", run, later, "--steps", "3")
        assert "no such option for a run" in refused("predict", run, later, "--top", "3")
        assert "a whole number" in refused("predict", str(files / "next"), str(files / "one.csv"), "--steps", "0")
        (tmp_path / "fewer.csv").write_text("id,signal\na,1\na,2\n")
        assert "wanted a column 'load'" in refused("predict", run, "fewer.csv")
        (tmp_path / "word.csv").write_text("id,signal,load\na,1,x\na,2,3\n")
        assert "line 2, field 'load': got 'x'" in " ".join(refused("predict", run, "word.csv").split())
        assert "standard input" in refused_input(refused, run)


def refused_input(refused: Typed, run: str) -> str:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"id,signal,load\na,1,x\n")))
        return refused("predict", run, "-", "--kind", "csv")


class TestEvaluate:
    def test_classes_are_scored_on_a_file_and_on_the_run_s_own_sets(self, typed: Typed, files: Path) -> None:
        run = str(files / "classes")
        kept = RunFolder(files / "classes").metrics()[-1]["tests"]["later"]
        said = typed("evaluate", run, "--data", str(files / "later.csv"))
        assert f"loss {kept['loss']:.4f}" in said
        assert "a row for each true class" in said
        assert typed("evaluate", run).splitlines()[2:] == said.splitlines()[2:]
        found = json.loads(typed("evaluate", run, "--split", "valid", "--json"))
        assert found["sets"]["valid"]["count"] == 4

    def test_forecasts_are_scored_beside_the_last_value(self, typed: Typed, files: Path) -> None:
        run = str(files / "next")
        said = typed("evaluate", run, "--data", str(files / "one.csv"))
        assert all(part in said for part in ("season", "chaos", "last value's", "within the middle 50 %"))
        found = json.loads(typed("evaluate", run, "--json"))
        kept = RunFolder(files / "next").metrics()[-1]["valid"]
        assert found["sets"]["valid"]["loss"] == pytest.approx(kept["loss"], rel=1e-5)

    def test_what_does_not_fit_is_refused(self, refused: Typed, files: Path, tmp_path: Path, trained: Path) -> None:
        run = str(files / "classes")
        assert "a classifier of numeric sequences" in " ".join(refused("certify", run).split())
        assert "a classifier of numbers" in " ".join(refused("extract", run).split())
        for option in (["--samples", "3"], ["--text", "x"], ["--scheme", "iob1"]):
            assert "no such option for a run on numeric sequences" in " ".join(
                refused("evaluate", run, *option).split()
            )
        assert "not on numbers" in " ".join(refused("evaluate", str(trained), "--form", "long").split())
        (tmp_path / "bare.csv").write_text("id,signal,load\na,1,2\na,2,3\n")
        assert "got no labels" in refused("evaluate", run, "--data", "bare.csv")
        (tmp_path / "new.csv").write_text("id,label,signal,load\na,circle,1,2\na,circle,2,3\n")
        said = " ".join(refused("evaluate", run, "--data", "new.csv").split())
        assert "line 2, field 'label': got 'circle', wanted one of sawtooth, sine, square" in said


class TestNextWords:
    def test_a_language_model_says_which_words_may_follow_each_line(
        self, typed: Typed, refused: Typed, trained: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "begun.txt").write_text("the old\n\nthe sailors zzz\n")
        rows = [line.split("\t") for line in typed("predict", str(trained), "begun.txt", "--top", "3").splitlines()]
        assert [row[-1] for row in rows] == ["the old", "", "the sailors zzz"]
        for row in rows:
            shares = list(map(float, row[1:-1:2]))
            assert len(shares) == 3
            assert shares == sorted(shares, reverse=True)
            assert 0 < sum(shares) < 1
        found = objects(typed("predict", str(trained), "begun.txt", "--format", "jsonl"))
        assert len(found[0]["next"]) == 5
        assert found[0]["next"][0]["word"] == rows[0][0]
        assert "from 1 to" in refused("predict", str(trained), "begun.txt", "--top", "999999")
        assert "no such option for a run" in refused("predict", str(trained), "begun.txt", "--steps", "2")

    def test_all_probabilities_sum_to_one(self, typed: Typed, trained: Path, tmp_path: Path) -> None:
        (tmp_path / "begun.txt").write_text("the\n")
        words = len(load_language_model(trained)[1])
        (found,) = objects(typed("predict", str(trained), "begun.txt", "--format", "jsonl", "--top", str(words)))
        assert sum(each["probability"] for each in found["next"]) == pytest.approx(1, abs=words * 5e-5)
