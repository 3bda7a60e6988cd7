"""``statewise evaluate`` and ``statewise generate``: asking a trained model."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from commands.typing_commands import Typed
from statewise.commands.evaluate import score_lines, told_of
from statewise.data import sample_corpus
from statewise.models import Score
from statewise.recipes.noisin_table5 import DYNAMIC
from statewise.train import load_language_model
from statewise.train.evaluation import evaluate_stream
from statewise.train.run import RunFolder
from statewise.train.telling import say

CPU = torch.device("cpu")


def perplexity(said: str) -> float:
    found = re.search(r"perplexity (\d+\.\d+)", said)
    assert found is not None, said
    return float(found[1])


def test_the_test_part_is_scored_as_training_scored_it(typed: Typed, trained: Path) -> None:
    said = typed("evaluate", str(trained), "--device", "cpu")
    recorded = RunFolder(trained).metrics()[-1]["test_perplexity"]
    assert perplexity(said) == pytest.approx(recorded, abs=0.01)
    assert f"{len(sample_corpus().test) - 1:,} tokens" in said
    bits = re.search(r"([\d.]+) bits a token", said)
    assert bits is not None
    assert float(bits[1]) == pytest.approx(math.log2(recorded), abs=0.001)


def test_other_parts_can_be_scored_in_columns(typed: Typed, trained: Path) -> None:
    whole, columns = (
        perplexity(typed("evaluate", str(trained), "--split", "valid", "--batch", batch)) for batch in ("1", "7")
    )
    assert whole == pytest.approx(columns, rel=0.05)
    assert perplexity(typed("evaluate", str(trained), "--split", "train")) < 100


@pytest.mark.parametrize("convention", ["new", "old"])
def test_dynamic_evaluation_adapts_and_without_steps_does_not(
    typed: Typed, trained: Path, brief: Path, convention: str
) -> None:
    options = ("evaluate", str(trained), "--data", str(brief))
    plain = perplexity(typed(*options))
    still = typed(*options, "--dynamic", convention, "--lr", "0", "--decay", "0")
    assert perplexity(still) == pytest.approx(plain, abs=0.02)
    assert f"dynamic evaluation ({convention})" in still
    assert perplexity(typed(*options, "--dynamic", convention)) < plain


def test_the_usual_steps_of_dynamic_evaluation_are_those_of_the_recipe(
    typed: Typed, trained: Path, brief: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[dict[str, Any]] = []

    def noted(*_: Any, **steps: Any) -> Score:
        taken.append(steps)
        return Score(1.0, 1)

    monkeypatch.setattr("statewise.commands.evaluate.dynamic_perplexity", noted)
    for convention in ("new", "old"):
        typed("evaluate", str(trained), "--data", str(brief), "--dynamic", convention)
    assert [(each["lr"], each["decay"], each["epsilon"]) for each in taken] == [DYNAMIC["new"], DYNAMIC["old"]]


def test_draws_of_noise_are_averaged_and_follow_the_seed(typed: Typed, trained: Path, refused: Typed) -> None:
    options = ("evaluate", str(trained), "--batch", "10", "--samples")
    one, again, many = (perplexity(typed(*options, samples)) for samples in ("1", "1", "30"))
    assert one == again
    assert many < one, "an ensemble predicts better than its members"
    assert "mean of 2 draws" in typed(*options, "2", "--seed", "3")
    assert "one of the two" in refused(*options, "2", "--dynamic", "new")


def test_each_line_of_a_text_is_scored_and_unknown_words_are_counted(
    typed: Typed, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_text("the old fox sleeps .\n\nzebras sleep the . old .\n", encoding="utf-8")
    said = typed("evaluate", str(trained), "--text", "lines.txt")
    likely = re.search(r"^the old fox sleeps \. +1 +([\d.]+) +6 +0 *$", said, flags=re.MULTILINE)
    odd = re.search(r"^zebras sleep the \. old \. +3 +([\d.]+) +7 +1 *$", said, flags=re.MULTILINE)
    assert likely is not None, said
    assert odd is not None, said
    assert float(likely[1]) < float(odd[1])
    assert "13 tokens, 1 of them unknown" in said


def test_a_corpus_of_other_words_is_read_in_those_of_the_run(typed: Typed, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("the zebra sleeps .\n" * 40, encoding="utf-8")
    said = typed("evaluate", str(trained), "--data", "other.txt")
    assert said.startswith("other test: perplexity ")
    assert "9 tokens, 2 of them <unk>" in said


def test_the_embedded_text_can_be_read_in_the_words_of_another_run(typed: Typed, lowered: Path) -> None:
    said = typed("evaluate", str(lowered), "--data", "sample", "--batch", "10")
    assert re.search(rf"sample test: .*{len(sample_corpus().test) - 1:,} tokens, \d+ of them <unk>", said), said


def test_a_run_scores_its_test_part_whatever_has_become_of_the_others(typed: Typed, lowered: Path) -> None:
    before = typed("evaluate", str(lowered))
    train = Path(RunFolder(lowered).config()["source"]["data"]) / "train.txt"
    kept = train.read_bytes()
    try:
        train.write_text("quite other words\n", encoding="utf-8")
        assert typed("evaluate", str(lowered)) == before
        train.unlink()
        assert typed("evaluate", str(lowered)) == before
    finally:
        train.write_bytes(kept)


def test_a_run_in_lower_case_reads_lines_and_prompts_so(typed: Typed, lowered: Path, tmp_path: Path) -> None:
    for name, line in (("small.txt", "the old ."), ("large.txt", "The OLD .")):
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    small, large = (typed("evaluate", str(lowered), "--text", name) for name in ("small.txt", "large.txt"))
    assert small == large
    assert "0 of them unknown" in large
    said = typed("generate", str(lowered), "--prompt", "The OLD", "--length", "3")
    assert "Unknown" not in said
    assert said == typed("generate", str(lowered), "--prompt", "the old", "--length", "3")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--text", "a.txt", "--split", "valid"], "--split: got valid, wanted no such option with --text"),
        (["--text", "a.txt", "--data", "sample"], "--data: got sample, wanted no such option with --text"),
        (["--text", "a.txt", "--dynamic", "new"], "--text: got --dynamic with it, wanted one of the two"),
        (["--text", "a.txt", "--samples", "3"], "--text: got --samples with it, wanted one of the two"),
        (["--lr", "0.1"], "--lr: got 0.1, wanted no such option without --dynamic"),
        (["--decay", "0.1", "--samples", "2"], "--decay: got 0.1, wanted no such option with --samples"),
        (["--seed", "3"], "--seed: got 3, wanted no such option without --samples"),
        (["--dynamic", "old", "--batch", "10"], "--batch: got 10, wanted no such option with --dynamic"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    refused: Typed, trained: Path, options: list[str], said: str
) -> None:
    assert said in refused("evaluate", str(trained), *options)


def test_a_score_beyond_all_numbers_is_told() -> None:
    assert told_of(5000.0, 1).startswith("perplexity inf, ")


@pytest.mark.parametrize("command", ["evaluate", "generate"])
def test_a_folder_without_a_run_says_how_to_make_one(refused: Typed, command: str) -> None:
    assert "statewise train lm" in refused(command, "nothing-here")


def test_a_model_goes_on_from_a_prompt_the_same_way_for_the_same_seed(typed: Typed, trained: Path) -> None:
    options = ("generate", str(trained), "--prompt", "the old", "--length", "30")
    first, again, other = typed(*options), typed(*options), typed(*options, "--seed", "5")
    assert first.startswith("the old ")
    assert first == again != other
    assert "<unk>" not in first
    assert "<eos>" not in first


def test_the_likeliest_words_need_no_seed(typed: Typed, trained: Path) -> None:
    options = ("generate", str(trained), "--temperature", "0", "--length", "8")
    assert typed(*options) == typed(*options, "--seed", "9")


def test_unknown_words_of_a_prompt_are_told(typed: Typed, trained: Path) -> None:
    said = typed("generate", str(trained), "--prompt", "the zebra", "--length", "3", "--top", "5", "--allow-unknown")
    assert said.startswith("Unknown words in the prompt: zebra\n")


def test_a_length_below_zero_is_refused(refused: Typed, trained: Path) -> None:
    assert "generate.length" in refused("generate", str(trained), "--length", "-1")


@pytest.mark.parametrize("batch", ["0", "-3"])
@pytest.mark.parametrize("more", [[], ["--samples", "2"]])
def test_columns_that_cannot_be_are_refused(refused: Typed, trained: Path, batch: str, more: list[str]) -> None:
    assert f"batch: got {batch}, wanted a whole number >= 1" in refused(
        "evaluate", str(trained), "--batch", batch, *more
    )


def test_dynamic_evaluation_of_another_text_knows_the_gradients_of_its_own(
    typed: Typed, trained: Path, brief: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "test.txt").write_text((brief / "test.txt").read_text())
    # The other text needs no training part, and one that it has changes nothing.
    command = ("evaluate", str(trained), "--data", "other", "--dynamic", "new")
    without = typed(*command)
    (tmp_path / "other" / "train.txt").write_text((brief / "valid.txt").read_text())
    assert typed(*command).splitlines()[-1] == without.splitlines()[-1]


def test_a_long_line_is_scored_in_pieces_as_it_would_be_at_once(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, vocabulary, _ = load_language_model(trained)
    (tmp_path / "line.txt").write_text("the old fox sleeps . " * 40)
    whole = score_lines(model, vocabulary, tmp_path / "line.txt", device=CPU)
    monkeypatch.setattr("statewise.commands.evaluate.evaluate_stream", partial(evaluate_stream, at_once=7))
    assert score_lines(model, vocabulary, tmp_path / "line.txt", device=CPU) == whole


def test_words_between_colons_are_no_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    say(Console(), "a :cat: sat")
    assert capsys.readouterr().out == "a :cat: sat\n"
