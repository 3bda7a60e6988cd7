"""A classifier of sequences on mixed pairs: what its head reads of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError, ShapeError
from statewise.layers.packing import pad
from statewise.mixup import Pairs, mix_state
from statewise.mixup.running import apply
from statewise.mixup.states import select_state
from statewise.models.sequences import Laid

if TYPE_CHECKING:
    from statewise.models.classifier import SequenceClassifier


def mixed_logits(
    model: SequenceClassifier, laid: Laid, pairs: Pairs, generator: torch.Generator | None
) -> Float[Tensor, "pairs classes"]:
    """The logits of mixed pairs.

    Where inputs or states are mixed, the head reads what the one run of a pair ends with. Before the output each member
    runs by itself, and what the head would read of both is mixed by the mean coefficient, which is also that of their
    labels (Karamzade et al. 2020, Remark 1): the coefficient of the last step would not be.

    Args:
        model: in training mode.
        laid: the sequences.
        pairs: drawn for them.
        generator: source of everything drawn but the pairs.
    """
    own = _checked(model, laid, pairs)
    steps = _steps(model, laid, generator)
    if pairs.site == "input":
        # Mixed first, then dropped: a unit that falls out does so for the pair.
        steps = _dropped(model, pairs.mix(steps), generator)
        return model._logits(_read(model, steps, pairs.lengths, generator), generator)
    steps = _dropped(model, steps, generator)
    if pairs.site == "through_time":
        _, state = apply(model.layer, steps, own, pairing=pairs.pairing, generator=generator)
        return model._logits(model._read_out(state, len(pairs)), generator)
    members, kept = torch.cat((pairs.first, pairs.second)), torch.cat(pairs.member_lengths)
    if bool((kept == own[members]).all()):
        # Nobody is cut off: one run of the batch serves all pairs.
        read = model._disturbed(_read(model, steps, own, generator), generator)
        return model.head(pairs.mix_pooled(read))  # type: ignore[no-any-return]
    read = model._disturbed(_read(model, select_state(steps, members), kept, generator), generator)
    first, second = read.chunk(2)
    return model.head(mix_state(first, second, pairs.mean_coefficient))  # type: ignore[no-any-return]


def _checked(model: SequenceClassifier, laid: Laid, pairs: Pairs) -> Tensor:
    """The lengths of the sequences, for which the pairs must have been drawn."""
    where = "SequenceClassifier pairs"
    if not model.training:
        raise ArgumentError(
            where=where,
            got="pairs in eval mode",
            wanted="none: sequences are mixed in training only",
            remedy="Call the model without them, or call .train() first.",
        )
    own = laid.all_lengths(torch.device("cpu"))
    if not torch.equal(pairs.own_lengths, own):
        raise ShapeError(
            where=where,
            got=f"pairs of {len(pairs.own_lengths)} sequences with other lengths than those of the batch",
            wanted="pairs that were drawn for this batch",
            remedy="Draw them with mixup.draw(model.walked(inputs, lengths)).",
        )
    return own


def _steps(
    model: SequenceClassifier, laid: Laid, generator: torch.Generator | None
) -> Float[Tensor, "steps batch width"]:
    """What the layers walk through, padded: vectors can be mixed, tokens cannot."""
    if model.embedding is not None:
        read = laid.map(lambda tokens: model._looked_up(tokens, generator))
    else:
        read = laid.map(model.standardised)  # an affine map: it does not matter whether it comes before the mixture
    return pad(read) if isinstance(read, PackedSequence) else read


def _dropped(model: SequenceClassifier, steps: Tensor, generator: torch.Generator | None) -> Tensor:
    return steps if model.embedding is None else model._dropped(steps, generator)


def _read(
    model: SequenceClassifier, steps: Tensor, lengths: Tensor, generator: torch.Generator | None
) -> Float[Tensor, "rows width"]:
    """What the head reads after a run over padded steps."""
    _, state = apply(model.layer, steps, lengths, generator=generator)
    return model._read_out(state, len(lengths))
