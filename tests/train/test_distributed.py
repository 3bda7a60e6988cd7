"""Two processes, joined by gloo as torchrun starts them, train one model."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from statewise.train import RunFolder

SCRIPT = Path(__file__).with_name("killable.py")


def command(folder: Path, *options: str, processes: int) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return [*(run if processes > 1 else [sys.executable]), str(SCRIPT), str(folder), *options]


def last(folder: Path) -> dict[str, Tensor]:
    found = RunFolder(folder).load_resume()
    assert found is not None
    return {name: tensor for name, tensor in found[0].items() if not name.startswith("rank")}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes; what they say on standard error lies beside its folder."""
    folder = tmp_path_factory.mktemp("pair") / "run"
    with folder.with_name("stderr").open("w") as stderr:
        subprocess.run(command(folder, "--plain", processes=2), check=True, stderr=stderr)
    return folder


def test_the_processes_warn_of_nothing(pair: Path) -> None:
    assert "Warning" not in pair.with_name("stderr").read_text()


def test_two_processes_end_with_the_weights_of_one(pair: Path, tmp_path: Path) -> None:
    subprocess.run(command(tmp_path / "run", "--plain", processes=1), check=True)
    one, two = last(tmp_path / "run"), last(pair)
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-3, atol=1e-4)
    for a, b in zip(RunFolder(tmp_path / "run").metrics(), RunFolder(pair).metrics(), strict=True):
        assert b["valid_perplexity"] == pytest.approx(a["valid_perplexity"], rel=1e-3)


@pytest.mark.slow
def test_two_processes_with_noise_are_killed_and_go_on_with_the_same_bits(tmp_path: Path) -> None:
    subprocess.run(command(tmp_path / "whole", processes=2), check=True)
    with subprocess.Popen(command(tmp_path / "killed", processes=2)) as process:
        while not (tmp_path / "killed" / "resume.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)  # torchrun passes it on; it could not pass on a SIGKILL
        process.wait()
    subprocess.run(command(tmp_path / "killed", processes=2), check=True)
    whole, killed = last(tmp_path / "whole"), last(tmp_path / "killed")
    assert all(torch.equal(killed[name], tensor) for name, tensor in whole.items())


def test_processes_have_generators_of_their_own(pair: Path) -> None:
    found = RunFolder(pair).load_resume()
    assert found is not None
    assert not torch.equal(found[0]["rank0.1"], found[0]["rank1.1"])


def test_a_run_goes_on_only_with_as_many_processes(pair: Path) -> None:
    done = subprocess.run(command(pair, "--plain", processes=1), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Start it with torchrun --nproc-per-node 2" in done.stderr
