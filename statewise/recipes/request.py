"""What a person asks of a recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statewise.errors import ArgumentError
from statewise.train.dynamic_steps import CONVENTIONS, Convention

SCALES = ("full", "smoke")
PLACEMENTS = ("recurrent", "outputs", "last")
SEED = 1111
#: What has an option of its own.
_NOT_SET = {"epochs": "--epochs", "seed": "--seeds", "precision": "--precision"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person asks of a recipe; None or empty leaves a choice to the recipe.

    Args:
        rows: of the table.
        sizes: of the network, or of the data where these differ.
        placements: of the noise.
        epochs: passes over the training examples.
        finetune: the most epochs of fine-tuning, where a recipe has it.
        seeds: how many runs of each row, with the seeds 1111, 1112 and so on.
        count: how many random machines, where a recipe has them.
        precision: as in :class:`~statewise.train.TrainingSettings`.
        scale: "full", or "smoke": the same path with a tiny network and an embedded text.
        convention: of dynamic evaluation, where a recipe has it.
        overrides: names and values of settings that are to differ from those of the recipe.

    >>> Request(seeds=2).seed_numbers
    (1111, 1112)
    """

    rows: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    epochs: int | None = None
    finetune: int | None = None
    seeds: int | None = None
    count: int | None = None
    precision: str = "tf32"
    scale: str = "full"
    convention: Convention = "old"
    overrides: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name, value, least in (
            ("epochs", self.epochs, 1),
            ("finetune", self.finetune, 0),
            ("seeds", self.seeds, 1),
            ("count", self.count, 1),
        ):
            if value is not None and value < least:
                raise ArgumentError(where=f"--{name}", got=value, wanted=f"a whole number >= {least}")
        if self.scale not in SCALES:
            raise ArgumentError(where="--scale", got=self.scale, wanted=f"one of {', '.join(SCALES)}")
        if self.convention not in CONVENTIONS:
            raise ArgumentError(where="--dynamic", got=self.convention, wanted=f"one of {', '.join(CONVENTIONS)}")
        for placement in self.placements:
            if placement not in PLACEMENTS:
                raise ArgumentError(
                    where="--placement", got=placement, wanted=f"some of {', '.join(PLACEMENTS)}, or both"
                )
        for name, _ in self.overrides:
            if name in _NOT_SET:
                raise ArgumentError(where="--set", got=name, wanted=f"{_NOT_SET[name]}, the option for it")

    @property
    def smoke(self) -> bool:
        """Whether the numbers mean nothing but that everything runs."""
        return self.scale == "smoke"

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds of the runs of each row."""
        return tuple(range(SEED, SEED + (self.seeds or 1)))
