"""``statewise extract`` as a user types it."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import pytest

from commands.typing_commands import Typed
from statewise.automata import extract, from_dot, load_machine, witness
from statewise.cli import main
from statewise.data import tomita
from statewise.train import load_classifier
from support import made_once

#: Words over a and b: those that end in b.
ROWS = [f"{'yes' if word.endswith('b') else 'no'}\t{word}" for word in ("a", "b", "ab", "ba", "bb", "aa", "aab", "bba")]


@pytest.fixture(scope="session")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a memory, of Tomita's first language."""
    return _trained(tmp_path_factory, "--data", "tomita:1", "--cell", "gru", "--transition", "noisy", "--epochs", "40")


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a memory."""
    return _trained(tmp_path_factory, "--data", "tomita:1", "--cell", "lstm", "--epochs", "1")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without centroids."""
    return _trained(
        tmp_path_factory,
        "--data",
        "tomita:1",
        "--cell",
        "gru",
        "--transition",
        "mixture",
        "--epochs",
        "1",
        "--centroids",
        "0",
    )


@pytest.fixture(scope="session")
def multiplicative(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the cell that automata are learnt with."""
    return _trained(tmp_path_factory, "--data", "tomita:1", "--cell", "multiplicative", "--epochs", "1")


def _trained(factory: pytest.TempPathFactory, *options: str) -> Path:
    words = ["train", "classify", *options, "--hidden", "10", "--device", "cpu", "--quiet", "--out"]
    name = f"extract-{zlib.crc32(' '.join(options).encode())}"
    return made_once(factory, name, lambda place: main([*words, str(place / "run")])) / "run"


def test_the_exact_machine_is_printed_judged_proved_and_written(typed: Typed, read: Path) -> None:
    said = typed("extract", str(read), "--check", "50")
    assert re.search(r"state +\| +0 +1", said)
    assert re.search(r"certified up to +[\d.e-]+ \(", said)
    assert "50 of 50 random words" in said.partition("at argmax: ")[2]
    assert "At argmax the network equals the machine on every word, of every length" in said
    machine, language = load_machine(read / "machine.json"), tomita(1).minimal
    assert language is not None
    assert witness(machine, language) is None, "forty epochs with noise learn the simplest language"
    assert (read / "machine.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("kind", ["svg", "png", "dot", "json", "table"])
def test_every_format_can_be_written_where_one_wants(typed: Typed, tmp_path: Path, read: Path, kind: str) -> None:
    ending = "txt" if kind == "table" else kind
    typed("extract", str(read), "--format", kind, "--out", f"drawn.{ending}", "--check", "5")
    assert (tmp_path / f"drawn.{ending}").stat().st_size > 50
    if kind == "dot":
        model, told = load_classifier(read)
        own = extract(model, classes=told["examples"]["classes"]).machine
        assert from_dot((tmp_path / "drawn.dot").read_text()) == own


def test_a_name_without_the_ending_of_its_format_gets_it(typed: Typed, tmp_path: Path, read: Path) -> None:
    typed("extract", str(read), "--format", "dot", "--out", "my.machine", "--check", "5")
    assert (tmp_path / "my.machine.dot").exists()


def test_the_folder_of_a_file_is_made_before_the_work(typed: Typed, tmp_path: Path, read: Path) -> None:
    typed("extract", str(read), "--out", "new/deep/machine.json", "--check", "5")
    assert (tmp_path / "new" / "deep" / "machine.json").exists()


def test_words_of_a_file_are_compared_and_with_classes_judged(typed: Typed, tmp_path: Path, read: Path) -> None:
    (tmp_path / "words.txt").write_text("accept\t11\nreject\t10\naccept\t\n")
    said = typed("extract", str(read), "--words", "words.txt", "--check", "5")
    assert re.search(r"soft agreement +[\d.]+% of 3 words", said)
    assert "accuracy on the words: 100.00% as it is" in said


def test_a_memory_is_refused_with_the_reason_and_the_way_round_it(refused: Typed, memory: Path) -> None:
    said = refused("extract", str(memory))
    assert "carries a memory" in said
    assert f"statewise extract {memory} --count" in said


def test_counting_gives_an_approximate_machine_of_a_network_with_memory(
    typed: Typed, tmp_path: Path, memory: Path
) -> None:
    (tmp_path / "words.txt").write_text("11\n10\n0110\n")
    said = typed("extract", str(memory), "--count", "--words", "words.txt", "--out", "counted.json", "--check", "5")
    assert "approximate: the LSTM carries a memory" in said
    assert "counted: 8 steps" in said
    assert json.loads((tmp_path / "counted.json").read_text())["alphabet"] == ["0", "1"]


def test_counting_without_words_takes_short_and_random_ones(typed: Typed, read: Path) -> None:
    said = typed("extract", str(read), "--count", "--check", "20")
    assert re.search(r"counted: [\d,]{5,} steps", said)
    assert "approximate:" not in said


def test_the_cell_that_automata_are_learnt_with_is_read_too(typed: Typed, multiplicative: Path) -> None:
    said = typed("extract", str(multiplicative), "--check", "7")
    assert "7 of 7 random words" in said.partition("at argmax: ")[2]
    assert re.search(r"certified up to +[\d.e-]+ \(", said)
    assert (multiplicative / "machine.json").exists()


def test_symbols_of_several_letters_stand_between_blanks(typed: Typed, tmp_path: Path) -> None:
    rows = [row.replace("a", "left ").replace("b", "right ").strip() for row in ROWS]
    (tmp_path / "moves.tsv").write_text("\n".join([*rows, *rows, *rows, ""]))
    options = ("--unit", "symbols", "--epochs", "1", "--hidden", "6", "--device", "cpu", "--quiet")
    typed("train", "classify", "--data", "moves.tsv", *options, "--out", "run")
    (tmp_path / "words.txt").write_text("left right\nright\n")
    assert "of 2 words" in typed("extract", "run", "--words", "words.txt", "--check", "5")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["nowhere"], "statewise train classify"),
        (["RUN", "--out", "drawn.jpg"], ".svg, .png"),
        (["RUN", "--check", "-1"], "--check"),
        (["RUN", "--words", "absent.txt"], "absent.txt"),
        (["RUN", "--words", "strange.txt"], "strange.txt, line 2: got the symbol '2'"),
        (["RUN", "--words", "classless.txt"], "classless.txt, line 1: got the class 'maybe'"),
        (["RUN", "--words", "empty.txt"], "empty.txt, line 1: got an empty file"),
    ],
)
def test_a_slip_is_explained(refused: Typed, tmp_path: Path, read: Path, arguments: list[str], wanted: str) -> None:
    (tmp_path / "strange.txt").write_text("01\n02\n")
    (tmp_path / "classless.txt").write_text("maybe\t01\n")
    (tmp_path / "empty.txt").write_text("")
    typed = [str(read) if part == "RUN" else part for part in arguments]
    assert wanted in refused("extract", *typed)


def test_a_network_without_centroids_is_refused(refused: Typed, plain: Path) -> None:
    for options in ([], ["--count"]):
        said = refused("extract", str(plain), *options)
        assert "Train with centroids: statewise train classify --centroids" in said
        assert "--count gives" not in said


def test_a_language_model_is_refused(refused: Typed, trained: Path) -> None:
    assert "classifier" in refused("extract", str(trained))
