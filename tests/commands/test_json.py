"""``--json``: one object on standard output, whatever a command tells a person, and how Ctrl-C leaves a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.typing_commands import SMALL, Typed


def read(typed: Typed, *arguments: str) -> dict[str, Any]:
    """What a command prints with ``--json``, which must be one object and nothing else."""
    found = json.loads(typed(*arguments, "--json"))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that is an automaton."""
    from statewise.cli import main

    folder = tmp_path_factory.mktemp("automaton") / "run"
    main(["train", "classify", "--data", "tomita:1", "--automaton", "--quiet", "--out", str(folder)])
    return folder


class TestJson:
    def test_a_run_that_was_trained_tells_its_folder_settings_and_last_record(self, typed: Typed) -> None:
        found = read(typed, "train", "lm", *SMALL, "--epochs", "1", "--out", "run")
        assert found["folder"] == "run"
        assert found["config"]["model"]["hidden"] == [16]
        assert found["result"]["test_perplexity"] > 1

    def test_several_runs_are_told_by_name(self, typed: Typed) -> None:
        found = read(typed, "train", "lm", *SMALL, "--epochs", "1", "--compare", "--out", "runs")
        assert list(found["runs"]) == ["none", "dropout", "gaussian"]
        assert all(each["result"]["test_perplexity"] > 1 for each in found["runs"].values())

    def test_a_text_is_scored(self, typed: Typed, trained: Path) -> None:
        found = read(typed, "evaluate", str(trained))
        assert found["perplexity"] > 1
        assert f"perplexity {found['perplexity']:.2f}" in typed("evaluate", str(trained))

    def test_lines_and_sentences_are_scored(self, typed: Typed, trained: Path, tagger: Path) -> None:
        Path("lines.txt").write_text("a cat\nthe old fox\n", encoding="utf-8")
        found = read(typed, "evaluate", str(trained), "--text", "lines.txt")
        assert [row["text"] for row in found["rows"]] == ["a cat", "the old fox"]
        (table,) = read(typed, "evaluate", str(tagger))["sets"].values()
        assert table["rows"]

    def test_generated_text_is_the_same_as_for_a_person(self, typed: Typed, trained: Path) -> None:
        found = read(typed, "generate", str(trained), "--length", "5", "--prompt", "the")
        assert found["text"] == typed("generate", str(trained), "--length", "5", "--prompt", "the").rstrip("\n")

    def test_an_automaton_its_proof_and_its_certificate(self, typed: Typed, words: Path) -> None:
        found = read(typed, "extract", str(words), "--out", "machine.json")
        assert len(found["machine"]["outputs"]) == 2
        assert found["written"] == ["machine.json"]
        assert "At argmax the network equals the machine on every word" in found["checked"]
        certificate = read(typed, "certify", str(words), "--iid", "--out", "certificate.json")
        assert "With probability at least 95 %" in certificate["sentence"]

    def test_ranks_and_advice(self, typed: Typed) -> None:
        shape = ["--inputs", "2", "--width", "2", "--steps", "4", "--depth", "1"]
        assert read(typed, "memory", "rank", *shape)["rank"] == 2
        advice = ["--budget", "100", "--steps", "4", "--inputs", "2"]
        assert read(typed, "memory", "advise", *advice)["pairs"]

    def test_the_list_of_tables(self, typed: Typed) -> None:
        rows = read(typed, "reproduce", "--list")["rows"]
        assert "noisin/table3" in {row["table"] for row in rows}


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "lm", "--data", "sample", "--hidden", "64", "--epochs", "100000"],
        ["train", "classify", "--data", "tomita:4", "--epochs", "100000"],
        ["train", "series", "--data", "sample", "--epochs", "100000", "--patience", "none"],
    ],
    ids=lambda arguments: arguments[1],
)
def test_ctrl_c_leaves_a_run_that_goes_on_and_says_how(arguments: list[str], typed: Typed, tmp_path: Path) -> None:
    """What it says can be typed as it is; with nothing left to do it ends well."""
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also where it was ignored
    command = [sys.executable, "-c", f"{hearing}; from statewise.cli import main; main()"]
    words = [*command, *arguments, "--device", "cpu", "--out", "run"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            next(line for line in run.stdout if line.startswith("epoch 1/"))  # an error where there is none
            run.send_signal(signal.SIGINT)
            said, errors = run.communicate(timeout=120)
        finally:
            run.kill()  # what has ended does not mind
    assert run.returncode == 130, errors
    assert "Traceback" not in errors
    way = next(line.strip() for line in said.splitlines() if "--resume" in line).split()
    assert way[:3] == ["statewise", *arguments[:2]]
    epochs = 1 + sum('"epoch"' in line for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    typed(*way[1:], "--epochs", str(epochs), "--quiet")
