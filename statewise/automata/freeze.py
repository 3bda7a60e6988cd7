"""From a classifier to its frozen copy; or the reason why no automaton can be read from it exactly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from statewise.automata.frozen import FrozenLayer, FrozenNetwork
from statewise.errors import ArgumentError, DtypeError, NotMemorylessError
from statewise.layers import RecurrentLayer
from statewise.models import SequenceClassifier
from statewise.models.views import resting_view
from statewise.transforms import Centroids, StateTransform, Zoneout

COUNT = "count(model, words) gives an approximate machine by the paper's counting instead."
LSTAR = "learn_by_lstar(model.classify, alphabet) learns from any network, without a guarantee."


def freeze(
    model: SequenceClassifier, *, dtype: torch.dtype = torch.float64, classes: Sequence[str] | None = None
) -> FrozenNetwork:
    """A copy of a memory-less classifier's weights on the CPU, with the one-step functions they define.

    Args:
        model: a classifier of tokens whose cells have no memory and whose layers all have centroids.
        dtype: of the copy.
        classes: their names; None means reject and accept for two, numbers otherwise.

    >>> from statewise.models import ClassifierConfig
    >>> freeze(ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2)).sizes
    (3,)
    """
    embedding = token_embedding(model, where="extract")
    centroids = regularised(model, where="extract")
    with torch.no_grad():
        # At rest, whatever the mode of the model: weights that are dropped at random in training are whole here.
        weights = {name: _copy(tensor, dtype) for name, tensor in _weights(resting_view(model.layer)).items()}
        layers = tuple(
            _frozen_layer(model.layer, layer, rule, _copy(rows, dtype), weights)
            for layer, (rule, rows) in enumerate(centroids)
        )
    rows, head = _copy(embedding, dtype), model.head
    return FrozenNetwork(
        layers=layers,
        embedding=rows[: model.tokens],
        start=rows[model.start_id] if model.config.start_token else None,
        end=rows[model.end_id] if model.config.readout == "u_end" else None,
        head_weight=_copy(head.weight, dtype),
        head_bias=None if head.bias is None else _copy(head.bias, dtype),
        symbols=alphabet_of(model),
        classes=class_names(model, classes),
        dtype=embedding.dtype,
    )


def token_embedding(model: SequenceClassifier, *, where: str) -> Tensor:
    """The rows by which tokens enter a classifier; an error if it does not read tokens."""
    if not isinstance(model, SequenceClassifier):
        raise DtypeError(where=f"{where} model", got=type(model).__name__, wanted="a SequenceClassifier")
    if model.embedding is None:
        raise ArgumentError(
            where=f"{where} model",
            got="a classifier of real-valued features",
            wanted="one of tokens",
            remedy="An automaton needs a finite alphabet: build the model with tokens=.",
        )
    return model.embedding.weight


def regularised(model: SequenceClassifier, *, where: str) -> list[tuple[Centroids, Tensor]]:
    """The centroids of each layer; an error if they are not all that is carried from step to step."""
    if model.why_not_memoryless:
        zoned = any(isinstance(transform, Zoneout) for transform in model.layer.transforms)
        memory = model.layer.cell.has_memory or (zoned and any(model.config.centroids))
        raise NotMemorylessError(
            where=f"{where} model",
            got=model.why_not_memoryless,
            wanted="a memory-less cell (gru, rnn, mgu, rac, multiplicative) with centroids in every layer and without "
            "zoneout: else the next state is no function of the centroid and the token",
            remedy=COUNT if memory else f"Build it with centroids=(k,). {LSTAR}",
        )
    others = [type(transform).__name__ for transform in model.layer.transforms if _acts_in_evaluation(transform)]
    if others or model.layer.bidirectional:
        raise NotMemorylessError(
            where=f"{where} model",
            got=f"{others[0]} on the states" if others else "a bidirectional layer",
            wanted="centroids alone, in one direction",
            remedy=LSTAR,
        )
    found = [model.centroids_of(layer) for layer in range(model.layer.num_layers)]
    return [each for each in found if each is not None]


def _acts_in_evaluation(transform: object) -> bool:
    # Noise is silent in evaluation.
    return isinstance(transform, StateTransform) and type(transform).__name__ not in ("Centroids", "Noise")


def alphabet_of(model: SequenceClassifier) -> tuple[str, ...]:
    """The symbols of a classifier; numbers where it was given none."""
    return (
        tuple(model.symbols) if model.symbols is not None else tuple(str(token) for token in range(model.tokens or 0))
    )


def class_names(model: SequenceClassifier, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names for the classes of a classifier."""
    if given is None:
        return ("reject", "accept") if model.classes == 2 else tuple(str(label) for label in range(model.classes))
    if len(given) != model.classes:
        raise ArgumentError(where="extract classes", got=f"{len(given)} names", wanted=f"{model.classes} names")
    return tuple(given)


def _copy(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to("cpu", dtype, copy=True)


def _weights(layer: RecurrentLayer) -> dict[str, Tensor]:
    """All tensors of a layer by their plain names, parametrized or not."""
    names = [name for name, _ in layer.named_parameters() if not name.startswith("parametrizations.")]
    made = getattr(layer, "parametrizations", {})
    return {name: getattr(layer, name) for name in (*names, *made)}


def _frozen_layer(
    layer: RecurrentLayer, index: int, rule: Centroids, centroids: Tensor, weights: dict[str, Tensor]
) -> FrozenLayer:
    suffix = f"_l{index}"
    begins = getattr(layer, "initial_state", None)  # the circuits' own
    initial = centroids.new_zeros(layer.hidden_size)
    if begins == "learned":
        initial = weights["state_0"][index, 0]
    elif begins not in (None, "ones"):
        raise ArgumentError(where="extract model", got=f"initial_state={begins!r}", wanted="ones or learned")
    return FrozenLayer(
        cell=layer.cell,
        weight_ih=weights["weight_ih" + suffix],
        bias_ih=weights.get("bias_ih" + suffix),
        weight_hh=weights["weight_hh" + suffix],
        bias_hh=weights.get("bias_hh" + suffix),
        extra=tuple(weights[name + suffix] for name, _ in layer.cell.extra_parameters),
        centroids=centroids,
        rule=rule,
        initial=initial,
        start_at_one=begins == "ones",
    )
