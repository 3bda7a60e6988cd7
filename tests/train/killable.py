"""Small runs in processes of their own: ``python killable.py FOLDER [--kind KIND] [--die-at N] [...]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from statewise.data import hidden_markov_sentences, sample_corpus, tomita_sets
from statewise.models import ClassifierConfig, LanguageModelConfig, TaggerConfig
from statewise.train import (
    Callback,
    Checkpoints,
    ClassifierSettings,
    CoverPenalty,
    RoundedWeights,
    SpectralProjection,
    TaggerSettings,
    TrainingSettings,
    train_classifier,
    train_language_model,
    train_tagger,
)
from train.forks import LIMIT, serve

PLAIN = LanguageModelConfig(hidden=(12, 12))
NOISY = replace(PLAIN, noise="gaussian", gamma=0.5, output_dropout=0.2)
ADAM = TrainingSettings(
    epochs=3, batch=10, bptt=24, random_bptt=True, optimizer="adam", lr=0.02, averaging="always", divide=1.2
)
# A rate so high that the loss jumps about, so that the rules act.
SGD = replace(ADAM, bptt=40, optimizer="sgd", lr=90.0, divide=1.01)
NOISY_STATES = ClassifierConfig(hidden=8, centroids=(4,), transition="noisy")
CLASSIFIER = ClassifierSettings(epochs=7, lr=0.02, batch=16, curriculum_start=3, curriculum_step=4, curriculum_every=1)
NAMES = TaggerConfig(hidden=6, words=5, characters=3, character_hidden=3)
TAGGER = TaggerSettings(epochs=6, batch=8, bucket=2, rho=0.3, mixup="through-time", crf_mode="coupled")
KINDS: dict[str, tuple[Any, Any]] = {
    # Nothing random, so that processes can be compared.
    "plain": (PLAIN, ADAM),
    # Short segments, in which some of its clusters have no word.
    "adaptive": (replace(PLAIN, head="adaptive", tied=False), replace(ADAM, epochs=1, bptt=3, random_bptt=False)),
    "averaged": (replace(NOISY, weight_drop=0.2, embedding_dropout=0.1), ADAM),
    "switching": (NOISY, replace(SGD, epochs=8, averaging="non-monotone", non_monotone=1, samples=2)),
    # Pairs and their coefficients go on from segment to segment.
    "mixed text": (
        replace(NOISY, zoneout=0.1, weight_drop=0.2),
        replace(ADAM, epochs=2, mixup="through-time", mixup_rho=0.3),
    ),
    "mixed words": (replace(NOISY, hidden=(10, 12)), replace(ADAM, epochs=2, mixup="input", mixup_rho=0.3)),
    "patient": (NOISY, replace(SGD, epochs=30, averaging="never", patience=2)),
    # All that changes from epoch to epoch: lengths, noise, temperature and rate.
    "classifier": (NOISY_STATES, replace(CLASSIFIER, temperature_end=0.5, solved=0.6, schedule="plateau", patience=2)),
    "cosine": (NOISY_STATES, replace(CLASSIFIER, epochs=3, optimizer="rmsprop", schedule="cosine")),
    # All that may act on the weights, see CALLBACKS.
    "certified": (ClassifierConfig(cell="mgu", hidden=5, embedding=3), replace(CLASSIFIER, epochs=3)),
    # Pairs, lengths that grow by a loss of their own, and all that is drawn inside a network.
    "mixed": (
        ClassifierConfig(
            hidden=6,
            embedding=4,
            centroids=(3,),
            zoneout=0.1,
            weight_drop=0.2,
            dropout=0.2,
            locked=True,
            recurrent_dropout=0.1,
            state_noise="gaussian",
            gamma=0.3,
        ),
        replace(CLASSIFIER, epochs=3, mixup="through-time", rho=0.3, pairing="double", solved=0.6),
    ),
    # A rate so high that the plateau comes.
    "tagger": (NAMES, replace(TAGGER, lr=2.0, schedule="plateau", step_every=1, patience=4)),
    "doubled tagger": (
        replace(NAMES, head="softmax", noise="gaussian", gamma=0.3),
        replace(TAGGER, epochs=3, optimizer="adam", lr=0.02, mixup="pre-output", pairing="double", schedule="cosine"),
    ),
}
CALLBACKS: dict[str, tuple[Callback, ...]] = {
    "certified": (
        SpectralProjection(recurrent=0.5, input=1.0, head=1.0),
        CoverPenalty(strength=1.0, sequences=265, steps=22),
        RoundedWeights(levels=5),
    )
}


def main(words: list[str]) -> None:
    """Train; ``--die-at N`` kills the process just before it renames a finished file for the N-th time.

    ``--die-after N`` kills it at the end of the N-th epoch, which no resume point knows of yet.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="averaged")
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--every", type=int, default=4)
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    signal.alarm(LIMIT)
    die = partial(os.kill, os.getpid(), signal.SIGKILL)
    renames = 0

    def watch(event: str, _: object) -> None:
        nonlocal renames
        if event == "os.rename":  # os.replace, too
            renames += 1
            if renames == options.die_at:
                die()

    def on_epoch(record: dict[str, Any]) -> None:
        if record["epoch"] == options.die_after:
            die()

    sys.addaudithook(watch)
    config, settings = KINDS[options.kind]
    checkpoints = Checkpoints(updates=options.every)
    common: dict[str, Any] = {"resume": True, "checkpoints": checkpoints, "on_epoch": on_epoch}
    if isinstance(config, TaggerConfig):
        made = hidden_markov_sentences(train=40, valid=20, test=20)
        train_tagger(config, settings, made.train, made.valid, {"test": made.test}, options.folder, **common)
    elif isinstance(config, ClassifierConfig):
        train, valid = tomita_sets(1, 0)
        common["callbacks"] = CALLBACKS.get(options.kind, ())
        train_classifier(config, settings, train, valid, {"test": valid}, options.folder, **common)
    else:
        train_language_model(config, settings, sample_corpus(), options.folder, **common)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        import torch._dynamo  # what the first optimiser would import

        serve(main)
    else:
        main(sys.argv[1:])
