"""A small run in a process of its own, which can be killed: ``python killable.py FOLDER [--die-at N] [...]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import torch

from statewise.data import sample_corpus
from statewise.models import LanguageModelConfig
from statewise.train import Checkpoints, TrainingSettings, train_language_model

CONFIG = LanguageModelConfig(
    hidden=(12, 12), noise="gaussian", gamma=0.5, output_dropout=0.2, weight_drop=0.2, embedding_dropout=0.1
)
SETTINGS = TrainingSettings(
    epochs=5, batch=10, bptt=24, random_bptt=True, optimizer="adam", lr=0.02, averaging="always", divide=1.2
)


def main() -> None:
    """Train; ``--die-at N`` kills the process just before it renames a finished file for the N-th time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--plain", action="store_true", help="nothing random, so that processes can be compared")
    options = parser.parse_args()
    torch.set_num_threads(1)
    renames = 0

    def watch(event: str, _: object) -> None:
        nonlocal renames
        if event == "os.rename":  # os.replace, too
            renames += 1
            if renames == options.die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    print("ready", flush=True)  # noqa: T201
    checkpoints = Checkpoints(updates=options.every)
    config = LanguageModelConfig(hidden=(12, 12)) if options.plain else CONFIG
    train_language_model(config, SETTINGS, sample_corpus(), options.folder, resume=True, checkpoints=checkpoints)


if __name__ == "__main__":
    main()
