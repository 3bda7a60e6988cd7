"""A long text is prepared and trained on in little memory. Each measurement has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see a process's memory")

# The peak is that of the process's own memory: ru_maxrss begins with that of the process it was forked from.
PROGRAM = """
import sys
import time
from pathlib import Path

import torch
import statewise
from statewise.data import Columns, read_corpus

def megabytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) // 1024

torch.set_num_threads(1)
before, started = megabytes("VmHWM"), time.perf_counter()
corpus = read_corpus(sys.argv[1], limit=5_000, cache=sys.argv[2])
prepared, seconds = megabytes("VmHWM"), time.perf_counter() - started
columns = Columns(corpus.train, 10)
seen = 0
for inputs, targets in columns.segments(70):
    seen += targets.numel()
read = megabytes("VmHWM")
assert seen == columns.predicted
numbers = [before, prepared, read, round(seconds, 1), len(corpus.train), len(corpus.vocabulary)]
if sys.argv[3] == "read":
    print(*numbers)
    sys.exit()
embed, lstm, head = torch.nn.Embedding(len(corpus.vocabulary), 64), statewise.LSTM(64, 64), torch.nn.Linear(64, 5_000)
optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=1.0)
for inputs, targets in map(columns.segment, range(0, 350, 35), [35] * 10):
    loss = torch.nn.functional.cross_entropy(head(lstm(embed(inputs))[0]).flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(*numbers, megabytes("VmHWM"))
"""


def make_text(path: Path, megabytes: int) -> None:
    """Words of all frequencies, a thousand in each megabyte that occur nowhere else."""
    random = np.random.default_rng(3)
    words = np.array([f"word{'abcdefghij'[number % 10]}{number}" for number in range(50_000)])
    blocks = []
    for _ in range(4):
        drawn = words[np.minimum(random.zipf(1.2, 110_000), len(words)) - 1].reshape(-1, 22)
        blocks.append("\n".join(map(" ".join, drawn)).encode())
    with path.open("wb") as file:
        rare = 0
        while file.tell() < megabytes * 2**20:
            file.write(blocks[rare % 4] + b"\n")
            file.write(b"\n".join(b"rare%d" % number for number in range(rare * 1000, rare * 1000 + 1000)) + b"\n")
            rare += 1


def measure(tmp_path: Path, megabytes: int, until: str) -> dict[str, float]:
    text = tmp_path / f"{megabytes}.txt"
    make_text(text, megabytes)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(text), str(tmp_path / "cache"), until],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    names = ("before", "prepared", "read", "seconds", "tokens", "words", "trained")
    return dict(zip(names, map(float, ran.stdout.split()), strict=False))


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    small, large = measure(tmp_path, 8, "read"), measure(tmp_path, 64, "read")
    assert large["tokens"] > 7 * small["tokens"]
    assert large["words"] == 5_000
    # 56 MB of text and 22 MB of ids more; what may be more is the counts of 56,000 rare words.
    assert large["prepared"] - small["prepared"] < 20
    assert large["read"] - small["read"] < 25


@pytest.mark.slow
def test_a_gigabyte_of_text_is_prepared_and_trained_on_within_500_megabytes(tmp_path: Path) -> None:
    measured = measure(tmp_path, 1024, "trained")
    assert measured["tokens"] > 100_000_000
    assert measured["trained"] < 500, measured
