"""How the states of a trained tagger lie, class by class."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from statewise.analysis import SingularValues, every_spectrum, head_leakage
from statewise.analysis.spectrum import WAYS
from statewise.data import TaggedSentences
from statewise.files import read_object, write_atomically
from statewise.models.text import in_mode
from statewise.train import load_tagger
from statewise.train.classify_data import EpochBatches
from statewise.train.metrics import strict
from statewise.train.tag_data import TagSet

SPECTRA = "spectra.json"
CLASSES = ("S-LOC", "B-PER")  # the paper chose two at random; these are large, and neither is O


def spectra_of(folder: Path, sentences: TaggedSentences, *, device: torch.device) -> dict[str, Any]:
    """The spectra of the states of two classes, by the class; they are kept in the run's folder.

    Args:
        folder: of a finished run.
        sentences: whose states are looked at, in eval mode and unmixed.
        device: where to compute.
    """
    path, model = folder / SPECTRA, f"{zlib.crc32((folder / 'model.safetensors').read_bytes()):08x}"
    if path.exists():
        there = read_object(path, wanted="spectra of states", remedy="Remove it: it is made again.")
        if there.get("model") == model and isinstance(there.get("spectra"), dict):  # a run that went on has another
            found: dict[str, Any] = there["spectra"]
            return found
    tagger, _ = load_tagger(folder, device=device)
    examples = TagSet(tagger.lexicon, sentences)
    # Of a task without them, any two that have a name.
    wanted = [name for name in CLASSES if name in tagger.lexicon.tags] or list(tagger.lexicon.tags[1:3])
    numbers = torch.tensor(tagger.lexicon.numbers(wanted))
    batches = EpochBatches.sorted(examples.lengths, batch=256)
    states, labels = [], []
    with in_mode(tagger, training=False), torch.no_grad():
        for part in batches.slices():
            tokens, tags = examples.batch(tagger, batches.places[part])
            looked_at = torch.isin(tags, numbers.to(tags.device))
            states.append(tagger.states(tokens)[looked_at].cpu())
            labels.append(tags[looked_at].cpu())
    rows, tags = torch.cat(states), torch.cat(labels)
    classes = (tags.unsqueeze(1) == numbers).long().argmax(1)
    spectra = every_spectrum(rows, classes, classes=wanted)
    leakage = head_leakage(rows, tags, tagger.head.weight.detach().cpu())
    centred = next(each for each in spectra if each.center)
    made = {}
    for at, (name, number) in enumerate(zip(wanted, numbers.tolist(), strict=True)):
        made[name] = {
            "count": int(centred.counts[at]),
            "variance": float(centred.variances[at]),
            "effective_rank": float(centred.effective_ranks[at]),
            "participation_ratio": float(centred.participation_ratios[at]),
            "stable_rank": float(centred.stable_ranks[at]),
            "leakage": float(leakage.shares[number]),
            **{_called(each.center, each.normalize): each.values[at].tolist() for each in spectra},
        }
    document = strict({"model": model, "spectra": made}, "spectra")
    write_atomically(path, json.dumps(document, allow_nan=False) + "\n")
    return made


def singular_values(made: Mapping[str, Any]) -> tuple[SingularValues, ...]:
    """The singular values of all classes, for each way to centre and normalize them.

    Args:
        made: what :func:`spectra_of` gave.

    >>> found = singular_values({"O": {_called(*way): [2.0, 1.0] for way in WAYS}})
    >>> found[1].classes, found[1].center, found[1].normalize, found[1].values.tolist()
    (('O',), True, 'sqrt_n', [[2.0, 1.0]])
    """
    return tuple(
        SingularValues(
            classes=tuple(made),
            values=np.array([one[_called(center, normalize)] for one in made.values()]),
            center=center,
            normalize=normalize,
        )
        for center, normalize in WAYS
    )


def _called(center: bool, normalize: str | None) -> str:
    """How values are centred and divided, in words.

    >>> _called(True, "sqrt_n")
    'centred, sqrt_n'
    """
    return f"{'centred' if center else 'not centred'}, {normalize or 'as they are'}"
