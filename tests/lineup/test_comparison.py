"""Whole comparisons on a few lines: what is written, what is refused, and that a kill changes nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import RunFolderError, RunInUseError
from statewise.lineup import Asked, Comparison, Told, compare_on, go_on
from statewise.lineup.state import STATE, State
from statewise.train import RunFolder, load_language_model

LINEUP = ("none", "weight-drop", "noise")


def write_text(path: Path, lines: int = 60) -> Path:
    draw = random.Random(0)
    words = ["red", "green", "blue", "fox", "hen", "runs", "sits", "far", "near"]
    path.write_text("".join(" ".join(draw.choices(words, k=6)) + "\n" for _ in range(lines)), encoding="utf-8")
    return path


def asked_about(path: Path, **changes: Any) -> Asked:
    told = Told(model={"hidden": 6}, training={"batch": 4})
    usual: dict[str, Any] = {"lineup": LINEUP, "seeds": 2, "epochs": 3}
    return Asked(data=str(path), kind="lm", files={"train": str(path)}, told=told, **{**usual, **changes})


def numbers(found: Comparison | Mapping[str, Any]) -> dict[str, Any]:
    """All that does not depend on the clock."""
    document = json.loads(json.dumps(found.document() if isinstance(found, Comparison) else dict(found)))
    for line in document["lines"]:
        line.pop("cost")
    return dict(document)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "story.txt")


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A comparison that nobody has disturbed, in one process."""
    return compare_on(asked_about(text), tmp_path_factory.mktemp("whole") / "out", workers=1)


def test_the_plain_network_and_one_of_each_family_are_tested_once(whole: Comparison) -> None:
    assert sorted(line.family for line in whole.lines) == sorted(LINEUP)
    plain = next(line for line in whole.lines if line.name == "none")
    assert plain.differences == {}
    assert plain.p is None
    for line in whole.lines:
        score = line.scores["perplexity"]
        assert score.low <= score.value <= score.high
        assert len(line.seeds) == 2
        if line is not plain:
            assert line.p is not None
            assert line.p_holm is not None
            assert line.p <= line.p_holm <= 1
            assert line.says in ("helps", "harms", "unclear")
    assert len(whole.dropped) == 3, "of weight-drop one strength, of noise two"
    assert whole.best == whole.lines[0].name
    assert [line.valid for line in whole.lines] == sorted(line.valid for line in whole.lines)
    assert whole.unavailable == {}


def test_test_scores_are_those_of_the_runs(whole: Comparison) -> None:
    """The same perplexity that each run reports of itself, from rows that were added up line by line."""
    for line in whole.lines:
        for seed, score in zip(whole.seeds, line.seeds, strict=True):
            last = RunFolder(whole.folder / "runs" / f"{line.name}-s{seed}").metrics()[-1]
            assert score == pytest.approx(last["test_perplexity"], rel=1e-5)


def test_the_file_says_all_that_a_drawing_needs(whole: Comparison) -> None:
    document = json.loads((whole.folder / STATE).read_text(encoding="utf-8"))
    assert document["result"]["lines"] == json.loads(json.dumps([line.document() for line in whole.lines]))
    assert Comparison.of(whole.folder, document["result"]).document() == document["result"]
    first, last = document["rungs"][0], document["rungs"][-1]
    assert (first["epochs"], last["epochs"]) == (1, 3)
    assert set(first["kept"]) | set(first["dropped"]) == {each["name"] for each in document["candidates"]}
    assert list(last["valid"]) == [line.name for line in whole.lines]
    assert sum(len(path.read_text().splitlines()) for path in (whole.folder / "data").glob("*.txt")) == 60


def test_the_best_is_an_ordinary_run(whole: Comparison) -> None:
    model, vocabulary, told = load_language_model(whole.folder / "best")
    assert len(vocabulary) == 11
    assert told["source"]["data"] == str((whole.folder / "data").resolve())
    assert told["training"]["epochs"] == 3
    assert not model.training
    assert not [path for path in whole.folder.iterdir() if "partial" in path.name or "old" in path.name]


def test_a_finished_comparison_is_read_and_a_folder_is_not_used_twice(whole: Comparison, text: Path) -> None:
    assert numbers(go_on(whole.folder)) == numbers(whole)
    with pytest.raises(RunFolderError, match="statewise compare --resume"):
        compare_on(asked_about(text), whole.folder)
    with pytest.raises(RunFolderError, match="other files"):
        compare_on(asked_about(text), text.parent)
    with pytest.raises(RunFolderError, match=r"no lineup\.json"):
        go_on(text.parent)


def test_changed_data_is_refused_and_so_is_a_second_process(tmp_path: Path) -> None:
    story = write_text(tmp_path / "story.txt")
    state = State.begin(tmp_path / "out", asked_about(story), "")
    state.document["inputs"] = {str(story): "0" * 64}
    state.save()
    with pytest.raises(RunFolderError, match="another content"):
        go_on(tmp_path / "out")
    story.unlink()
    with pytest.raises(RunFolderError, match="no such file any more"):
        go_on(tmp_path / "out")
    state.document["inputs"] = {}
    state.save()
    with state.locked(), pytest.raises(RunInUseError):
        go_on(tmp_path / "out")


COMMAND = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from lineup.test_comparison import asked_about
from statewise.lineup import compare_on, go_on
from statewise.lineup.state import STATE
if __name__ == "__main__":
    out = Path({out!r})
    if (out / STATE).exists():
        go_on(out, workers={workers})
    else:
        compare_on(asked_about(Path({text!r})), out, workers={workers})
"""


def start(text: Path, out: Path, *, workers: int) -> subprocess.Popen[bytes]:
    script = out.with_suffix(".py")
    tests = str(Path(__file__).parents[1])
    script.write_text(COMMAND.format(tests=tests, out=str(out), text=str(text), workers=workers), encoding="utf-8")
    return subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(Path(tests).parent)})


def kill_when(process: subprocess.Popen[bytes], out: Path, *, runs: int, late: float = 0.0) -> None:
    """End it by force as soon as so many runs are recorded, or when it has ended by itself."""
    enough = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < enough:
        if (out / STATE).exists() and len(json.loads((out / STATE).read_text())["runs"]) >= runs:
            time.sleep(late)
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_killed_among_several_processes_it_ends_with_the_same_table(
    whole: Comparison, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(start(text, out, workers=2), out, runs=3)
    assert json.loads((out / STATE).read_text())["result"] is None
    assert numbers(go_on(out, workers=1)) == numbers(whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_moments_it_ends_with_the_same_table(
    whole: Comparison, text: Path, tmp_path: Path, seed: int
) -> None:
    draw, out = random.Random(seed), tmp_path / "out"
    for _ in range(3):
        kill_when(start(text, out, workers=draw.choice((1, 2))), out, runs=draw.randint(0, 12), late=draw.uniform(0, 1))
    found = go_on(out, workers=2) if (out / STATE).exists() else compare_on(asked_about(text), out, workers=2)
    assert numbers(found) == numbers(whole)


def test_by_minutes_it_ends_in_time_and_says_what_it_left_out(text: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    found = compare_on(asked_about(text, epochs=None, minutes=0.1, seeds=1), tmp_path / "out", workers=1)
    document = json.loads((tmp_path / "out" / STATE).read_text())
    slowest = max(run["seconds"] for run in document["runs"].values())
    # Loading and testing come on top of the epochs themselves.
    assert document["spent"] <= 6 + 10 + len(document["candidates"]) * slowest
    assert time.monotonic() - began < 120
    assert found.epochs >= 1
    assert sorted(line.family for line in found.lines) == sorted(LINEUP)
    assert "With one seed" in " ".join(found.says)
