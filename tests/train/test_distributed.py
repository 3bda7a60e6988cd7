"""Two processes, joined by gloo as torchrun starts them, train one model."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from statewise.data import sample_corpus
from statewise.errors import RunFolderError
from statewise.train import Checkpoints, RunFolder, train_language_model
from statewise.train.distributed import joined
from train.forks import ENVIRONMENT, LIMIT
from train.killable import KINDS

SCRIPT = Path(__file__).with_name("killable.py")


def command(folder: Path, *options: str) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return [*run, str(SCRIPT), str(folder), *options]


def train_two(folder: Path, *options: str, **streams: Any) -> None:
    # The processes end themselves at the limit, and torchrun with them.
    subprocess.run(command(folder, *options), check=True, env=ENVIRONMENT, timeout=LIMIT + 30, **streams)


def train_one(folder: Path) -> None:
    config, settings = KINDS["plain"]
    checkpoints = Checkpoints(updates=4)
    train_language_model(config, settings, sample_corpus(), folder, resume=True, checkpoints=checkpoints)


def last(folder: Path) -> dict[str, Tensor]:
    found = RunFolder(folder).load_resume()
    assert found is not None
    return {name: tensor for name, tensor in found[0].items() if not name.startswith("rank")}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes; what they say on standard error lies beside its folder."""
    folder = tmp_path_factory.mktemp("pair") / "run"
    stderr = folder.with_name("stderr")
    try:
        with stderr.open("w") as file:
            train_two(folder, "--kind", "plain", stderr=file)
    except subprocess.CalledProcessError as error:
        raise AssertionError(stderr.read_text()) from error
    return folder


def test_the_processes_warn_of_nothing(pair: Path) -> None:
    assert "Warning" not in pair.with_name("stderr").read_text()


def test_two_processes_end_with_the_weights_of_one(pair: Path, tmp_path: Path) -> None:
    train_one(tmp_path / "run")
    one, two = last(tmp_path / "run"), last(pair)
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-3, atol=1e-4)
    for a, b in zip(RunFolder(tmp_path / "run").metrics(), RunFolder(pair).metrics(), strict=True):
        assert b["valid_perplexity"] == pytest.approx(a["valid_perplexity"], rel=1e-3)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it reads the names of threads from /proc")
def test_the_threads_that_take_tensors_of_python_end_with_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> int:
        names = [task.joinpath("comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
        return names.count("pt_gloo_runloop")

    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}.items():
        monkeypatch.setenv(name, value)
    before = threads()
    with joined(torch.device("cpu")) as world:
        DistributedDataParallel(torch.nn.Linear(2, 2))
        of_torch = (threads() - before) // 2
        assert world.group() is not None
    assert world.group() is None
    assert threads() <= before + of_torch


@pytest.mark.slow
def test_two_processes_with_noise_are_killed_and_go_on_with_the_same_bits(tmp_path: Path) -> None:
    train_two(tmp_path / "whole")
    deadline = time.monotonic() + LIMIT
    with subprocess.Popen(command(tmp_path / "killed"), env=ENVIRONMENT) as process:
        while not (tmp_path / "killed" / "resume.json").exists() and process.poll() is None:
            assert time.monotonic() < deadline  # and then they end themselves
            time.sleep(0.01)
        assert process.poll() is None, "it has ended before it was killed"
        process.send_signal(signal.SIGTERM)  # torchrun passes it on; it could not pass on a SIGKILL
        process.wait(LIMIT)
    train_two(tmp_path / "killed")
    whole, killed = last(tmp_path / "whole"), last(tmp_path / "killed")
    assert all(torch.equal(killed[name], tensor) for name, tensor in whole.items())


@pytest.mark.slow
def test_two_processes_train_a_head_of_which_each_uses_a_part(tmp_path: Path) -> None:
    train_two(tmp_path / "run", "--kind", "adaptive")
    assert RunFolder(tmp_path / "run").metrics()[-1]["test_perplexity"] < len(sample_corpus().vocabulary)


def test_processes_have_generators_of_their_own(pair: Path) -> None:
    found = RunFolder(pair).load_resume()
    assert found is not None
    assert not torch.equal(found[0]["rank0.generator.cpu"], found[0]["rank1.generator.cpu"])


def test_a_run_goes_on_only_with_as_many_processes(pair: Path) -> None:
    with pytest.raises(RunFolderError, match="Start it with torchrun --nproc-per-node 2"):
        train_one(pair)
