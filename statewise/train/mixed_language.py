"""A language model on mixed texts: pairs that persist from segment to segment, and the loss of mixed words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.heads.outside import apply_outside
from statewise.mixup import Mixup, Pairs
from statewise.models import LanguageModel
from statewise.models.language import Losses
from statewise.transforms import embedding_dropout


class MixedObjective(nn.Module):
    """A language model as a function of a segment of mixed texts.

    ``lambda_t CE(p_t, x_{t+1}) + (1 - lambda_t) CE(p_t, x'_{t+1})`` with the coefficient of the step that predicts
    (Karamzade et al. 2020, who conjecture that it helps). Inputs and states are mixed at the bottom layer; those above
    read the mixture. Everything is drawn from torch's global generators.

    Args:
        model: the language model.
        mixer: what mixes.
    """

    def __init__(self, model: LanguageModel, mixer: Mixup) -> None:
        super().__init__()
        self.model, self.mixer = model, mixer

    def forward(self, tokens: Tensor, targets: Tensor, state: Any, pairs: Pairs) -> tuple[Tensor, tuple[Tensor, Any]]:
        """What is minimised, and beside it the negative log-likelihood of the mixed words and the state."""
        features, raw, state = self._features(tokens, state, pairs)
        nll = pairs.language(self.model.head.log_prob(features), targets)
        losses = self.model.penalised(Losses(nll, nll, state), features, raw)
        return losses.total, (losses.nll, losses.state)

    def _features(self, tokens: Tensor, state: Any, pairs: Pairs) -> tuple[Tensor, Tensor, Any]:
        """What the head reads of the pairs, the top layer's output, and the state: of the pairs, or of every text."""
        model = self.model
        if pairs.site == "pre_output":
            features, raw, state = model.features(tokens, state)
            return pairs.mix(features), raw, state
        hidden = embedding_dropout(model.embedding, tokens, p=model.embedding_dropout, training=model.training)
        bottom, *others = model.layers
        first, *rest = [None] * len(model.layers) if state is None else state
        mixed = self.mixer.run(bottom, hidden, first, pairs=pairs)
        hidden, after = mixed.output, [mixed.state]
        for layer, before in zip(others, rest, strict=True):
            hidden, left = layer(hidden, before)
            after.append(left)
        return apply_outside(model.outputs, hidden, training=model.training), hidden, tuple(after)


def following_pairs(mixer: Mixup, before: Pairs | None, steps: int, batch: int, device: torch.device) -> Pairs:
    """The pairs of a segment: those of the one before, if their state is mixed, with the chain going on; else new ones.

    Args:
        mixer: what mixes.
        before: the pairs of the segment before; None at the beginning of the texts.
        steps: of the segment.
        batch: how many texts there are.
        device: of the coefficients.

    >>> from statewise.mixup import InputMixup
    >>> first = following_pairs(InputMixup(rho=0.5), None, 7, 4, torch.device("cpu"))
    >>> bool((following_pairs(InputMixup(rho=0.5), first, 5, 4, torch.device("cpu")).second == first.second).all())
    True
    """
    if before is None or mixer.site == "pre_output":
        return mixer.draw(torch.full((batch,), steps), device=device)
    return before.next(steps, device=device)


def kept_pairs(pairs: Pairs | None) -> dict[str, Tensor]:
    """What a resume point keeps of the pairs, whose chain goes on from its last coefficients.

    Args:
        pairs: of the segment before; None for none.
    """
    if pairs is None:
        return {}
    return {"pairs.first": pairs.first, "pairs.second": pairs.second, "pairs.last": pairs.exact[-1]}


def pairs_from(kept: Mapping[str, Tensor], mixer: Mixup | None) -> Pairs | None:
    """Pairs with which a chain goes on as with those that :func:`kept_pairs` was given.

    Args:
        kept: its tensors, without their common prefix.
        mixer: what mixes.
    """
    if not kept or mixer is None:
        return None
    options: dict[str, Any] = {"first": kept["first"].cpu(), "second": kept["second"].cpu()}
    options |= {"site": mixer.site, "process": mixer.coefficients, "policy": mixer.lengths}
    options["layer"] = 0 if mixer.site == "through_time" else None
    # As if the segment before had been its last step: that is all that the next one looks at.
    ones = torch.ones(len(kept["first"]), dtype=torch.long)
    return Pairs.of(kept["last"].cpu().unsqueeze(0), lengths=ones, **options)


def refuse_mixing(model: LanguageModel, *, samples: int, processes: int, graph: object, mixup: str) -> None:
    """Refuse what cannot be mixed.

    Args:
        model: the language model.
        samples: draws of noise a token.
        processes: that train together.
        graph: whether a step shall be captured.
        mixup: what is mixed.
    """
    reasons = {
        'placement="penalty"': (model.stand_in is not None, "drawn noise: the penalty is one of unmixed words"),
        f"{samples} samples": (samples > 1, "1: copies of a text would be mixed with each other"),
        f"{processes} processes": (processes > 1, "one: pairs are drawn among all columns"),
        "graph=True": (graph is True, '"auto" or False: pairs are drawn on the host'),
    }
    for got, (wrong, wanted) in reasons.items():
        if wrong:
            raise ArgumentError(where="TrainingSettings.mixup", got=f"{mixup} with {got}", wanted=wanted)
