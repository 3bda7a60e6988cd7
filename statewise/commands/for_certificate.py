"""The options of ``statewise train classify`` that let a network be trained for its certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statewise.commands.fields import from_fields
from statewise.data import Images, Sequences
from statewise.errors import ArgumentError
from statewise.train import Callback, CoverPenalty, RoundedWeights, SpectralProjection
from statewise.train.callback_kinds import callbacks_of


@dataclass(frozen=True, kw_only=True)
class ForCertificate:
    """What acts on the weights while a classifier is trained, so that more can be proved of it afterwards.

    Args:
        project_recurrent: keep the spectral norm of each recurrent matrix, gate by gate, at most so large; None leaves
            it free.
        project_input: the same for each input matrix with its bias.
        project_head: the same for the matrix of the head with its bias.
        cover_penalty: add to the loss so many times the nats by which the class around the network is covered, for each
            sequence; None for not.
        cover_margin: the margin that the network is meant to keep, for this penalty.
        levels: round the weights to so many levels in every pass, and keep the rounded network; 3 is ternary, 16 are 4
            bits; None leaves them free.
        bias_levels: the same for biases; None for as many.

    >>> ForCertificate(levels=3).norms
    False
    """

    project_recurrent: float | None = None
    project_input: float | None = None
    project_head: float | None = None
    cover_penalty: float | None = None
    cover_margin: float = 1.0
    levels: int | None = None
    bias_levels: int | None = None

    def __post_init__(self) -> None:
        for name in ("project_recurrent", "project_input", "project_head", "cover_penalty"):
            value, least = getattr(self, name), ">= 0" if name == "cover_penalty" else "> 0"
            fits = value is None or (0 <= value < math.inf and (value > 0 or least == ">= 0"))
            if not fits:
                option = f"--{name.replace('_', '-')}"
                raise ArgumentError(where=option, got=value, wanted=f"a finite number {least}")
        if self.bias_levels is not None and self.levels is None:
            raise ArgumentError(where="--bias-levels", got="no --levels", wanted="levels of the other weights, too")
        if self.cover_margin != 1.0 and self.cover_penalty is None:
            raise ArgumentError(where="--cover-margin", got="no --cover-penalty", wanted="the penalty that it is for")

    @property
    def norms(self) -> bool:
        """Whether norms matter, which centroids and memories have no part in."""
        return self.projection is not None or self.cover_penalty is not None

    @property
    def projection(self) -> SpectralProjection | None:
        """What keeps norms, if anything shall."""
        bounds = {"recurrent": self.project_recurrent, "input": self.project_input, "head": self.project_head}
        return None if all(bound is None for bound in bounds.values()) else SpectralProjection(**bounds)  # type: ignore[arg-type]

    def callbacks(self, train: Sequences | Images) -> tuple[Callback, ...]:
        """What acts on the weights.

        Args:
            train: the examples, which say how many sequences there are, how long, and how large their steps are.
        """
        found: list[Callback | None] = [self.projection]
        if self.cover_penalty is not None:
            pictures = isinstance(train, Images)
            longest = train.steps if isinstance(train, Images) else max(1, int(train.lengths.max()))
            found.append(
                CoverPenalty(
                    strength=self.cover_penalty,
                    sequences=len(train),
                    steps=longest,
                    gamma=self.cover_margin,
                    # Grey values go from 0 to 1.
                    input_bound=math.sqrt(train.features) if pictures else None,  # type: ignore[union-attr]
                )
            )
        if self.levels is not None:
            found.append(RoundedWeights(levels=self.levels, bias_levels=self.bias_levels))
        return tuple(each for each in found if each is not None)


def asked_for(asked: Any) -> ForCertificate | None:
    """What the options say; None where they say nothing.

    Args:
        asked: the options.
    """
    given = from_fields(ForCertificate, vars(asked))
    return ForCertificate(**given) if given else None


def callbacks_from(asked: Any, there: Mapping[str, Any], train: Sequences | Images) -> tuple[Callback, ...]:
    """What acts on the weights: what was asked for, else what acts in the run that goes on.

    Args:
        asked: the options.
        there: what the run that goes on was told.
        train: the examples.
    """
    wanted = asked_for(asked)
    return callbacks_of(there) if wanted is None else wanted.callbacks(train)


def refuse_for_automaton(asked: Any) -> None:
    """Refuse what has no meaning where an automaton is learnt.

    Args:
        asked: the options.
    """
    if given := from_fields(ForCertificate, vars(asked)):
        option = f"--{next(iter(given)).replace('_', '-')}"
        raise ArgumentError(
            where="--automaton",
            got=f"{option} with it",
            wanted="the weights as they are learnt",
            remedy="Leave it out: the certificate of an automaton needs no norms and no levels.",
        )
