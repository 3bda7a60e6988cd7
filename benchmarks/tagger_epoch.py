"""How long does an epoch of tagging take, against the same model on torch.nn.LSTM and pytorch-crf?

An epoch of CoNLL-2003 (14,041 sentences, batches of 32 at random) for the bidirectional LSTM with a CRF: GloVe vectors
of width 100, a bidirectional LSTM of 25 over characters, locked and word dropout, a square matrix, 256 units in each
direction, SGD, gradients clipped. Ours runs through the training loop that a user runs, `TaggerTraining`, with its sums
and its watch over the loss. Against it stands the model as a user of torch writes it, in a plain loop: with every token
spelt, and with each distinct word of a batch spelt once, which few do and ours does. The same batches in the same
order, in one process, in turns. Beside them stands the same tagger with its sentences mixed through time: paired with
those of like lengths, which is the default, and at random, where pairs have more steps than sentences.

    python benchmarks/tagger_epoch.py [--batches 120] [--rounds 3] [--threads 2] [--device cuda] [--json FILE] [--check]

Bars: at least 2 times as fast as the model on torch's layers (the faster of the two), and mixing through time at most
1.3 times as slow as not mixing. With --check a missed bar makes the exit code 1. Without CoNLL-2003 random sentences of
the same lengths take its place. pytorch-crf is needed: pip install pytorch-crf.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import statewise
from statewise.data import TaggedSentences, conll2003_sets
from statewise.errors import DataError
from statewise.models import Lexicon, TaggerConfig
from statewise.models.encoded import TokenBatch
from statewise.train import TaggerSettings
from statewise.train.classify_data import EpochBatches
from statewise.train.tag_data import TagSet
from statewise.train.tagging import TaggerTraining

LEAST_RATIO, MOST_MIXED = 2.0, 1.3
CONFIG = TaggerConfig()
SETTINGS = TaggerSettings()
WORDS, WIDTH = 20_000, 100


class TorchTagger(nn.Module):
    """The tagger as a user of torch writes it.

    Args:
        lexicon: for its sizes.
        distinct: whether each distinct word of a batch is spelt once.
    """

    def __init__(self, lexicon: Lexicon, *, distinct: bool) -> None:
        super().__init__()
        from torchcrf import CRF

        width = WIDTH + 2 * CONFIG.character_hidden
        self.distinct = distinct
        self.words = nn.Embedding.from_pretrained(torch.randn(len(lexicon.words) + 1, WIDTH), freeze=True)
        self.letters = nn.Embedding(len(lexicon.characters) + 1, CONFIG.characters)
        self.speller = nn.LSTM(CONFIG.characters, CONFIG.character_hidden, bidirectional=True)
        self.projection = nn.Linear(width, width)
        self.lstm = nn.LSTM(width, CONFIG.hidden, bidirectional=True)
        self.head = nn.Linear(2 * CONFIG.hidden, len(lexicon.tags))
        self.crf = CRF(len(lexicon.tags))

    def forward(self, batch: TokenBatch, tags: Tensor) -> Tensor:
        inside = (torch.arange(len(batch.places))[:, None] < batch.lengths).to(tags.device)
        features = torch.where(inside.unsqueeze(2), self._features(batch), 0)
        kept = torch.empty(inside.shape, device=tags.device).bernoulli_(1 - CONFIG.word_dropout)
        features = features * kept.unsqueeze(2)
        features = self.projection(_locked(features))
        packed = pack_padded_sequence(features, batch.lengths, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0])
        emissions = self.head(_locked(states))
        loss: Tensor = -self.crf(emissions, tags.clamp(min=0), mask=inside, reduction="mean")
        return loss

    def _features(self, batch: TokenBatch) -> Tensor:
        packed = batch.characters
        assert packed is not None
        if self.distinct:
            _, (ends, _) = self.speller(packed._replace(data=self.letters(packed.data)))
            return torch.cat((self.words(batch.rows), ends[0], ends[1]), dim=1)[batch.places]
        # Every token is spelt, as a data set gives it.
        letters, lengths = pad_packed_sequence(PackedSequence(packed.data, packed.batch_sizes))
        places = batch.places.flatten()
        spelt = pack_padded_sequence(self.letters(letters[:, places]), lengths[places.cpu()], enforce_sorted=False)
        _, (ends, _) = self.speller(spelt)
        found = torch.cat((self.words(batch.rows)[places], ends[0], ends[1]), dim=1)
        return found.view(*batch.places.shape, -1)


def _locked(values: Tensor) -> Tensor:
    mask = values.new_empty(1, *values.shape[1:]).bernoulli_(1 - CONFIG.dropout) / (1 - CONFIG.dropout)
    return values * mask


def sentences() -> tuple[TaggedSentences, str]:
    """The training sentences, and where they come from."""
    try:
        return conll2003_sets()["train"], "CoNLL-2003"
    except DataError:
        rng = np.random.default_rng(0)
        names = ("O", *(f"{place}-{kind}" for place in "BIES" for kind in ("LOC", "MISC", "ORG", "PER")))
        lengths = np.clip(rng.geometric(1 / 14.5, size=14_041), 1, 113)
        words = [tuple(f"w{number:05d}" for number in rng.integers(WORDS, size=length)) for length in lengths]
        tags = [tuple(str(name) for name in rng.choice(names, size=length)) for length in lengths]
        made = TaggedSentences(sentences=tuple(words), tags=tuple(tags), scheme="none", name="random")
        return made, "random sentences"


def ours(
    data: TagSet, lexicon: Lexicon, batches: EpochBatches, device: torch.device, **settings: Any
) -> Callable[[], None]:
    """Batches of an epoch on our tagger."""
    model = CONFIG.build(lexicon, vectors=torch.randn(len(lexicon.words), WIDTH)).to(device)
    training = TaggerTraining(model, replace(SETTINGS, **settings), data, None, device=device)

    def epoch() -> None:
        training.position.batch = 0
        training._planned = training.position.epoch, batches
        for _ in training.updates():
            pass

    return epoch


def theirs(
    data: TagSet, lexicon: Lexicon, batches: EpochBatches, device: torch.device, *, distinct: bool
) -> Callable[[], None]:
    """The same batches on torch's layers."""
    model = TorchTagger(lexicon, distinct=distinct).to(device)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=SETTINGS.lr)
    # What reads the batches for both.
    reader = CONFIG.build(lexicon, vectors=torch.zeros(len(lexicon.words), WIDTH)).to(device)

    def epoch() -> None:
        for part in batches.slices():
            tokens, tags = data.batch(reader, batches.places[part])
            optimizer.zero_grad()
            model(tokens, tags).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()

    return epoch


def measure(count: int, rounds: int, device: torch.device) -> dict[str, Any]:
    """All columns in turns; the median of the ratios of a turn."""
    read, name = sentences()
    lexicon = Lexicon.of(read.sentences, tags=read.tag_names)
    data = TagSet(lexicon, read)
    whole = EpochBatches.shuffled(
        data.lengths, batch=SETTINGS.batch, bucket=1, generator=torch.Generator().manual_seed(0)
    )
    batches = EpochBatches(whole.places, whole.bounds[: count + 1]) if count else whole
    columns = {
        "statewise": ours(data, lexicon, batches, device),
        "statewise, mixed through time": ours(data, lexicon, batches, device, mixup="through-time"),
        "the same, paired at random": ours(data, lexicon, batches, device, mixup="through-time", pairing="permute"),
        "torch.nn.LSTM + pytorch-crf": theirs(data, lexicon, batches, device, distinct=False),
        "torch, distinct words spelt once": theirs(data, lexicon, batches, device, distinct=True),
    }
    few = EpochBatches(whole.places, whole.bounds[:4])
    for settings in ({}, {"mixup": "through-time"}):  # for what is compiled or allocated once
        ours(data, lexicon, few, device, **settings)()
    theirs(data, lexicon, few, device, distinct=True)()
    times: dict[str, list[float]] = {column: [] for column in columns}
    for _ in range(rounds):
        for column, epoch in columns.items():
            began = time.perf_counter()
            epoch()
            if device.type == "cuda":
                torch.cuda.synchronize()
            times[column].append(time.perf_counter() - began)
    plain = times["statewise"]

    def ratio(column: str) -> float:
        return statistics.median(other / own for other, own in zip(times[column], plain, strict=True))

    return {
        "data": name,
        "batches": len(batches),
        "seconds": {column: [round(each, 3) for each in some] for column, some in times.items()},
        "ratios": {column: round(ratio(column), 3) for column in columns},
    }


def main() -> int:
    """Measure, print, and say by the exit code whether the bars hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=120, help="of an epoch's 439; 0 for all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    found = measure(asked.batches, asked.rounds, torch.device(asked.device))
    where = f"{asked.device}, {asked.threads} threads"
    print(f"{found['batches']} batches of {SETTINGS.batch} sentences of {found['data']}, {where}")
    for column, some in found["seconds"].items():
        print(f"{column:32} {statistics.median(some):8.2f} s   {found['ratios'][column]:.2f} of statewise")
    best = min(found["ratios"][name] for name in ("torch.nn.LSTM + pytorch-crf", "torch, distinct words spelt once"))
    mixed = found["ratios"]["statewise, mixed through time"]
    print(f"ratio: {best:.2f} times as fast as torch's layers (bar {LEAST_RATIO})")
    print(f"ratio: mixing through time takes {mixed:.2f} of the time of not mixing (bar {MOST_MIXED})")
    if asked.json:
        found |= {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": f"python benchmarks/tagger_epoch.py --batches {asked.batches} --rounds {asked.rounds} "
            f"--threads {asked.threads} --device {asked.device}",
            "machine": f"{asked.device} ({platform.machine()}), {asked.threads} threads",
            "versions": {"statewise": statewise.__version__, "torch": torch.__version__},
        }
        asked.json.write_text(json.dumps(found, indent=2) + "\n")
    good = best >= LEAST_RATIO and mixed <= MOST_MIXED
    return 0 if good or not asked.check else 1


if __name__ == "__main__":
    raise SystemExit(main())
