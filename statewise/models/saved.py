"""A model that can be kept in a folder, given to others, and taken out again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import torch
from torch import nn

from statewise.models.reading import Reading

Model = TypeVar("Model", bound="Saved")


class Saved(nn.Module):
    """What every whole model can do: go into a folder, and come out of it the same.

    Attributes:
        reading: how raw input becomes what the model reads; None where nobody said.
        metrics: what was measured of it, by name, for whoever gets it.
    """

    config: Any = None
    reading: Reading | None = None
    metrics: Mapping[str, Any] = MappingProxyType({})

    def save(self, folder: Path | str) -> Path:
        """Write the model into a folder: ``model.safetensors`` with all there is to know, ``config.json`` to look at.

        The folder can be given to others: nothing in it is code. A process killed meanwhile leaves the model that was
        there before, or this one. :func:`statewise.load` gives it back, in eval mode.

        Args:
            folder: a new or empty one, or one with a saved model, which is replaced.

        >>> import tempfile
        >>> from statewise.models import ClassifierConfig
        >>> model = ClassifierConfig(hidden=8).build(tokens=2, classes=2, symbols="01")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(path.name for path in model.save(folder).iterdir() if not path.name.startswith("."))
        ['config.json', 'model.safetensors']
        """
        from statewise.models.saving import save_model

        return save_model(self, Path(folder))

    @classmethod
    def load(
        cls: type[Model], folder: Path | str, *, device: torch.device | str = "cpu", check_finite: bool = False
    ) -> Model:
        """The model of this kind that :meth:`save` has put into a folder, in eval mode.

        Args:
            folder: with the model.
            device: where it goes.
            check_finite: refuse weights that hold NaN or infinity.
        """
        from statewise.models.loading import load_model

        model = load_model(Path(folder), device=device, check_finite=check_finite, wanted=cls.__name__)
        assert isinstance(model, cls)
        return model
