"""``statewise compare``, as a user types it."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from commands.tagging import names, write_columns
from commands.typing_commands import Typed
from statewise.commands.compare_table import drawn, print_comparison, table_of
from statewise.files import write_atomically
from statewise.lineup import Comparison, Interval, Line, state
from statewise.train import RunFolder

QUICK = ["--epochs", "2", "--seeds", "2", "--hidden", "6", "--workers", "1", "--device", "cpu"]


def write_reviews(path: Path, count: int = 80) -> Path:
    draw = random.Random(0)
    rows = ["label,text,who"]
    for number in range(count):
        label = draw.choice(("good", "bad"))
        said = draw.choices(("joy", "feast") if label == "good" else ("bore", "pain"), k=2)
        rows.append(f'{label},"{" ".join([*said, *draw.choices("abcdef", k=3), f"n{number}"])}",{number % 40}')
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of classifiers, and the file that it is about."""
    from statewise.cli import main

    place = tmp_path_factory.mktemp("compared")
    write_reviews(place / "reviews.csv")
    options = ["--lineup", "none,dropout,centroids", *QUICK, "--group", "who", "--quiet", "--out", str(place / "out")]
    main(["compare", str(place / "reviews.csv"), *options])
    return place / "out"


def test_a_finished_comparison_is_told_again_with_what_to_type_next(typed: Typed, compared: Path) -> None:
    said = typed("compare", "--resume", "--out", str(compared))
    assert all(word in said for word in ("none", "dropout-", "centroids-", "verdict", "against none, points", "ECE %"))
    assert "Intervals of 95 % are over texts and seeds" in said
    assert "Dropped after epoch 1, by validation:" in said
    assert "mixup" not in said
    assert f"statewise predict {compared}/best FILE" in said
    assert "accuracy against none (points); right is better" in said
    table = (compared / "table.md").read_text(encoding="utf-8")
    assert table.startswith("| candidate | valid | test accuracy |")
    assert (compared / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_groups_and_texts_are_on_one_side_only(compared: Path) -> None:
    rows = dict[str, set[str]]()
    for part in ("train", "valid", "test"):
        lines = (compared / "data" / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
        rows[part] = {json.loads(line)["text"] for line in lines}
    everyone = (compared.parent / "reviews.csv").read_text(encoding="utf-8").splitlines()[1:]
    who = {line.split('"')[1]: line.rsplit(",", 1)[1] for line in everyone}
    people = {part: {who[text] for text in texts} for part, texts in rows.items()}
    assert not people["train"] & people["test"]
    assert not people["train"] & people["valid"]
    assert not people["valid"] & people["test"]


def test_the_best_predicts_and_can_be_gone_on_with(typed: Typed, compared: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("joy feast a\npain bore b zebra\n", encoding="utf-8")
    said = typed("predict", str(compared / "best"), "new.txt").splitlines()
    assert [line.split("\t")[0] in ("good", "bad") for line in said] == [True, True]
    told = RunFolder(compared / "best").config()
    assert told["source"]["unit"] == "words"
    more = typed("train", "classify", "--resume", "--out", str(compared / "best"), "--epochs", "3", "--quiet")
    assert "of 3" in more


def test_json_has_all_numbers_and_nothing_else(typed: Typed, compared: Path) -> None:
    document = json.loads(typed("compare", "--resume", "--out", str(compared), "--json"))
    assert {"folder", "kind", "metrics", "lines", "says", "best", "best_run", "units", "epochs", "seeds"} <= set(
        document
    )
    assert [metric["name"] for metric in document["metrics"]] == ["accuracy", "NLL"]
    for line in document["lines"]:
        assert set(line["scores"]) == {"accuracy", "NLL"}
        assert set(line["scores"]["NLL"]) == {"value", "low", "high", "over_units", "over_seeds"}
        assert isinstance(line["parameters"], int)
        assert isinstance(line["ece"], float)
    kept = json.loads((compared / "lineup.json").read_text(encoding="utf-8"))
    assert kept["result"]["lines"] == document["lines"]


def test_tagged_words_are_compared_and_the_best_tags(typed: Typed, tmp_path: Path) -> None:
    write_columns(tmp_path / "names.conll", names(60))
    options = ["--lineup", "none,variational", "--epochs", "1", "--seeds", "1", "--hidden", "6", "--workers", "1"]
    said = typed("compare", "names.conll", *options, "--device", "cpu")
    assert "tagged words, for a tagger, since its name ends in .conll" in said
    assert "F1, higher is better; the mean of 1 seed after 1 epoch, tested on 9 sentences" in said
    assert "With one seed nothing is known" in said
    best = "runs/compare-names/best"
    assert f"statewise predict {best} FILE" in said
    (tmp_path / "new.txt").write_text("Anna saw Oslo\n", encoding="utf-8")
    assert len(typed("predict", best, "new.txt").split()) == 6
    assert "9 sentences" in typed("evaluate", best)


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (b"label,text\n" + b"".join(b"a,x%d y\n" % n for n in range(50)), [], "one class only, 'a'"),
        (b"label,text\na,x y\nb,z\n", [], "wanted at least 34 to be split"),
        (b"", [], "an empty file"),
        ("label,text\na,café\n".encode("latin-1"), [], "wanted text in UTF-8"),
        (b"label,text\na,x\n", ["--label", "colour"], "a column 'colour'"),
        (b"label,text\na,x\n", ["--token", "0"], "--token: got 0, wanted for labelled texts"),
        (b"label,text\na," + b"x" * 10_000_000 + b"\n", [], "data.csv"),
        (b"label,text\na,x\n", ["--lineup", "none,magic"], "magic"),
        (b"label,text\na,x\n", ["--epochs", "2", "--minutes", "1"], "one of the two"),
        (b"label,text\na,x\n", ["--seeds", "0"], "--seeds: got 0"),
        (b"label,text\na,x\n", ["--hidden", "0"], "hidden: got 0"),
        (b"label,text\na,x\n", ["--test", "absent.csv"], "absent.csv"),
    ],
    ids=["class", "few", "empty", "latin", "column", "option", "long", "lineup", "both", "seeds", "hidden", "absent"],
)
def test_bad_data_is_named_and_nothing_is_begun(
    refused: Typed, tmp_path: Path, content: bytes, options: list[str], told: str
) -> None:
    (tmp_path / "data.csv").write_bytes(content)
    said = " ".join(refused("compare", "data.csv", *options, "--device", "cpu", "--quiet").split())
    assert told in said
    assert not (tmp_path / "runs" / "compare-data" / "runs").exists()
    assert (tmp_path / "data.csv").read_bytes() == content


def test_after_a_refusal_the_same_command_can_be_typed_again(refused: Typed, tmp_path: Path) -> None:
    write_reviews(tmp_path / "data.csv", 5)
    for _ in range(2):
        assert "to be split" in " ".join(refused("compare", "data.csv", "--device", "cpu").split())


def test_what_makes_no_sense_is_refused(refused: Typed, tmp_path: Path, compared: Path) -> None:
    assert "Name a file or a folder" in " ".join(refused("compare").split())
    assert "no --out" in refused("compare", "--resume")
    assert "--seeds: got --resume with it" in refused("compare", "--resume", "--out", str(compared), "--seeds", "5")
    assert "DATA: got --resume with it" in refused("compare", "x.csv", "--resume", "--out", str(compared))
    assert "no lineup.json" in refused("compare", "--resume", "--out", str(tmp_path / "absent"))
    write_reviews(tmp_path / "r.csv")
    assert "go on" in refused("compare", "r.csv", "--out", str(compared), "--device", "cpu").lower()
    assert "no such option with sample" in refused("compare", "sample", "--valid", "r.csv")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_rights_is_named(refused: Typed, tmp_path: Path) -> None:
    write_reviews(tmp_path / "r.csv").chmod(0)
    assert "permission denied" in refused("compare", "r.csv")


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    command = [sys.executable, "-m", "statewise", "compare", "reviews.csv", "--lineup", "none,dropout", "--epochs"]
    options = ["5000", "--workers", "1", "--device", "cpu"]
    process = subprocess.Popen([*command, *options], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    watch = threading.Timer(200, process.kill)
    watch.start()
    metrics = tmp_path / "runs" / "compare-reviews" / "runs" / "none-s0" / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    watch.cancel()
    assert process.returncode == 130
    assert "Stopped. Go on:\n  statewise compare --resume --out runs/compare-reviews" in said


def line(name: str, value: float, low: float, high: float) -> Line:
    apart = {} if name == "none" else {"perplexity": Interval(value, low, high, 1.0, 1.0)}
    return Line(
        name=name, family=name, valid=80.0, scores={"perplexity": Interval(80.0, 70.0, 90.0, 1.0, 1.0)},
        differences=apart, p=0.01 if apart else None, p_holm=0.02 if apart else None,
        says="helps" if apart else None, cost=1.5, parameters=1234,
    )  # fmt: skip


@pytest.fixture
def made_up() -> Comparison:
    lines = (line("zoneout-0.1", -12.0, -20.0, -4.0), line("none", 0.0, 0.0, 0.0))
    return Comparison(
        folder=Path("runs/x"), kind="lm", lines=lines, says=("It helps.",), best="zoneout-0.1", best_run="zoneout-0.1",
        units=150, called="blocks of lines", epochs=20, seeds=(0, 1, 2), dropped={"zoneout-0.5": (5, 99.0)},
        failed={"noise-1": "it diverged"}, unavailable={"mixup-input": "TrainingSettings has no mixup"},
    )  # fmt: skip


def test_nothing_is_wider_than_a_phone(made_up: Comparison) -> None:
    narrow = Console(width=40, record=True, force_terminal=False)
    with narrow.capture() as heard:
        print_comparison(made_up, narrow)
    said = heard.get()
    assert "zoneout-0.1\n  valid: 80.00\n  test perplexity: 80.00 [70.00, 90.00]" in said
    *bars, caption = drawn(made_up, width=40)
    assert all(len(row) <= 40 for row in [*said.splitlines(), *bars])
    assert "left is better" in caption
    wide = Console(width=160)
    with wide.capture() as heard:
        print_comparison(made_up, wide)
    assert re.search(
        r"zoneout-0\.1 +80\.00 +80\.00 \[70\.00, 90\.00\] +-12\.00 \[-20\.00, -4\.00\] +0\.02", heard.get()
    )


def test_who_is_not_in_the_table_is_told_of(made_up: Comparison) -> None:
    notes = " ".join(table_of(made_up).notes)
    assert "Dropped after epoch 5, by validation: zoneout-0.5 (99)." in notes
    assert "noise-1 came to nothing: it diverged" in notes
    assert "mixup-input cannot take part: TrainingSettings has no mixup." in notes
    bars = list(drawn(made_up, width=80))
    assert "left is better" in bars[-1]
    assert bars[0].count("o") == 3, "two of the name, and the value"


def test_a_full_disk_is_named_and_the_comparison_goes_on(
    refused: Typed, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third run that is recorded finds no room; afterwards there is some again."""
    write_reviews(tmp_path / "r.csv")
    calls = iter(range(1000))

    def write(path: Path, content: str | bytes) -> None:
        if path.name == state.STATE and next(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write_atomically(path, content)

    monkeypatch.setattr(state, "write_atomically", write)
    said = refused("compare", "r.csv", "--lineup", "none,dropout", *QUICK, "--epochs", "1", "--out", "out", "--quiet")
    assert "No space left on device" in said
    assert "out: got" in said
    kept = json.loads((tmp_path / "out" / "lineup.json").read_text(encoding="utf-8"))
    assert len(kept["runs"]) == 2
    document = json.loads(typed("compare", "--resume", "--out", "out", "--json", "--workers", "1", "--device", "cpu"))
    assert {line["family"] for line in document["lines"]} == {"none", "dropout"}
