"""``statewise evaluate`` and ``statewise generate``: asking a trained model."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from commands.typing_commands import Typed
from statewise.data import sample_corpus
from statewise.train.run import RunFolder


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
def test_dynamic_evaluation_adapts_and_without_steps_does_not(typed: Typed, trained: Path, convention: str) -> None:
    plain = perplexity(typed("evaluate", str(trained)))
    options = ("evaluate", str(trained), "--dynamic", convention)
    assert perplexity(typed(*options, "--lr", "0", "--decay", "0")) == pytest.approx(plain, abs=0.02)
    assert perplexity(typed(*options)) < plain


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


def test_a_corpus_of_other_words_is_refused(refused: Typed, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("some other words\n" * 40, encoding="utf-8")
    said = refused("evaluate", str(trained), "--data", "other.txt")
    assert "--text FILE" in said


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
