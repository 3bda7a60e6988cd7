"""A trained model of whatever kind, out of a folder of whatever kind."""

from __future__ import annotations

from pathlib import Path

import torch

from statewise.models import Saved
from statewise.models.loading import load_model
from statewise.train.best_model import is_run, load_run


def load(folder: Path | str, *, device: torch.device | str = "cpu", check_finite: bool = False) -> Saved:
    """The trained model in a folder, of whatever kind it is, in eval mode.

    The folder is one that ``model.save`` has made, or that of a run of ``statewise train``, whose best model is taken.
    Nothing in it is run as code, and what it says is checked before memory is taken for it. ``model.reading`` says how
    raw input becomes what the model reads, ``model.metrics`` what was measured of it.

    Args:
        folder: with the model.
        device: where it goes.
        check_finite: refuse weights that hold NaN or infinity.

    Raises:
        ModelFolderError: it is no such folder, or damaged, or was changed.
        NewerFormatError: a newer statewise has written it.
        RunFolderError: it is a run that is damaged, or of another kind.

    >>> import tempfile
    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(hidden=8).build(tokens=2, classes=2, symbols="01")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = load(model.save(folder))
    >>> type(same).__name__, (same.classify(["0110"]) == model.classify(["0110"])).all()
    ('SequenceClassifier', np.True_)
    """
    folder = Path(folder)
    if is_run(folder):
        return load_run(folder, device=device, check_finite=check_finite)
    return load_model(folder, device=device, check_finite=check_finite)
