"""What a model is, as bounds see it: its matrices if it is a recurrent classifier that norms can bound, or why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.bounds.bounded_inputs import BoundedInputs
from statewise.bounds.hidden import named_tensors, why_hidden
from statewise.bounds.logs import Floats
from statewise.bounds.matrices import GATES, KINDS, LayerMatrices, NetworkMatrices, refuse_non_finite
from statewise.cells import RNNCell
from statewise.errors import AssumptionError, DeviceError, DtypeError
from statewise.heads import CRF
from statewise.layers import ConvReadout, ConvRNN, RecurrentLayer
from statewise.models import LanguageModel, SequenceClassifier, StepClassifier, Tagger
from statewise.transforms import Centroids, Zoneout

_TORCHS = (nn.RNN, nn.GRU, nn.LSTM)
_KINDS: dict[type[nn.Module], str] = {nn.RNN: "rnn", nn.GRU: "gru", nn.LSTM: "lstm"}
#: Modules that do nothing to what passes through them in eval mode, or only hold others.
_IDLE = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.AlphaDropout, nn.Sequential, nn.ModuleList, nn.ModuleDict)
_ACTIVATIONS = ("tanh", "relu", "identity")
_OTHERS = "the certificates that need no norms (bits, held-out) apply to it"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """A model that gives each sequence a class, and what norms can say of it.

    Attributes:
        model: as it was given.
        matrices: of the recurrent classifier that it is; None where it is none that norms can bound.
        why_not: what norms do not cover; empty if they cover it.
        marks: steps besides those of the sequence: a start token, an end token.
        start, end: the numbers of these tokens; None without.
        input_bound: the length of a step that the model itself enforces; None if it does not.
        convolutional: layer and head of a network of filters, which has a class of its own; None of others.
        classifier: the model itself, if it is one of ours.
    """

    model: nn.Module
    matrices: NetworkMatrices | None
    why_not: str = ""
    start: int | None = None
    end: int | None = None
    input_bound: float | None = None
    convolutional: tuple[ConvRNN, ConvReadout] | None = None
    classifier: SequenceClassifier | None = None

    @property
    def marks(self) -> int:
        """How many steps come before and after those of the sequence."""
        return (self.start is not None) + (self.end is not None)

    def as_read(self, sequence: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A sequence as the layers see it: tokens with the marks around them, numbers within the model's own bound.

        Args:
            sequence: its tokens, or (steps, features).
        """
        if sequence.ndim == 1:
            before, after = ([] if mark is None else [mark] for mark in (self.start, self.end))
            return np.concatenate([before, sequence, after])
        values: Floats = sequence.astype(np.float64)
        if self.input_bound is None:
            return values
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        shorter: Floats = values * np.minimum(1, self.input_bound / np.maximum(lengths, self.input_bound))
        return shorter


def read_model(model: nn.Module) -> Reading:
    """Read a classifier; refuses what is random, unfinished, or no classifier of sequences.

    Args:
        model: in eval mode: a :class:`~statewise.models.SequenceClassifier`, or any module with one recurrent layer of
            torch.nn or of ours, one linear head and maybe one embedding; maybe inside :class:`BoundedInputs`.

    >>> model = nn.ModuleDict({"rnn": nn.GRU(3, 4), "head": nn.Linear(4, 2)}).eval()
    >>> read_model(model).matrices.layers[0][0].kind
    'gru'
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(where="certify.model", got=type(model).__name__, wanted="a torch.nn.Module")
    _refuse(model)
    bound, core = (model.bound, model.model) if isinstance(model, BoundedInputs) else (None, model)
    if isinstance(core, SequenceClassifier):
        return _read_classifier(model, core, bound)
    try:
        layer, head, embedding = _parts(core)
        matrices = _network(layer, head, embedding, "h")
        filters = (layer, head) if isinstance(layer, ConvRNN) and isinstance(head, ConvReadout) else None
        return Reading(model=model, matrices=matrices, input_bound=bound, convolutional=filters)
    except _NotCoveredError as error:
        return Reading(model=model, matrices=None, why_not=str(error), input_bound=bound)


class _NotCoveredError(Exception):
    """Something that norms do not cover."""


def _refuse(model: nn.Module) -> None:
    """What no bound can speak of."""
    for name, module in model.named_modules():
        where = f"certify: {name or type(model).__name__}"
        if isinstance(module, CRF | Tagger | LanguageModel | StepClassifier):
            got = "a CRF head" if isinstance(module, CRF) else f"a {type(module).__name__}"
            raise AssumptionError(
                where=where,
                got=got,
                wanted="a classifier that gives each sequence one class by its largest logit",
                remedy="Bounds of taggers, language models and structured outputs are others; none is claimed here.",
            )
        if getattr(module, "training", True):
            got = "dropout that is on" if "Dropout" in type(module).__name__ else "a module in training mode"
            remedy = "Call model.eval(): a bound speaks of one deterministic function."
            raise AssumptionError(where=where, got=got, wanted="eval mode", remedy=remedy)
        if isinstance(module, RecurrentLayer) and any(
            isinstance(each, Centroids) and each.transition == "sample" for each in module.transforms
        ):
            raise AssumptionError(
                where=where,
                got='transition "sample", which draws in eval mode too',
                wanted="a deterministic network",
                remedy='model.with_transition("argmax") or "mixture" is one.',
            )
    devices = {tensor.device for _, tensor in named_tensors(model)}
    if len(devices) > 1 or any(device.type == "meta" for device in devices):
        got = f"weights on {', '.join(sorted(map(str, devices)))}"
        raise DeviceError(where="certify.model", got=got, wanted="one device, where they have values")
    for name, tensor in named_tensors(model):
        if tensor.is_floating_point():
            refuse_non_finite(f"certify: {name}", _array(tensor))


def _read_classifier(model: nn.Module, core: SequenceClassifier, bound: float | None) -> Reading:
    known: dict[str, Any] = {
        "start": core.start_id if core.tokens is not None and core.config.start_token else None,
        "end": core.end_id if core.config.readout == "u_end" else None,
        "input_bound": bound,
        "classifier": core,
    }
    try:
        if hidden := why_hidden(core):
            raise _NotCoveredError(hidden)
        matrices = _network(core.layer, core.head, core.embedding, core.config.readout.replace("u_end", "h"))
    except _NotCoveredError as error:
        return Reading(model=model, matrices=None, why_not=str(error), **known)
    return Reading(model=model, matrices=matrices, **known)


def _parts(model: nn.Module) -> tuple[Any, Any, nn.Embedding | None]:
    """The recurrent layer, the head and maybe the embedding of a module that holds nothing else."""
    if hidden := why_hidden(model):
        raise _NotCoveredError(f"{hidden}; only held-out certificates apply to it")
    layers, heads, embeddings = [], [], []
    # A parametrization is part of the weight that it makes, and weights are read as they act.
    for name, module in model.named_modules():
        if isinstance(module, (*_TORCHS, RecurrentLayer)):
            layers.append(module)
        elif isinstance(module, nn.Linear | ConvReadout):
            heads.append(module)
        elif isinstance(module, nn.Embedding):
            embeddings.append(module)
        elif module is not model and "parametrizations" not in name and not isinstance(module, _IDLE):
            raise _NotCoveredError(f"{name}, a {type(module).__name__}, is nothing that norms cover here; {_OTHERS}")
    if len(layers) != 1 or len(heads) != 1 or len(embeddings) > 1:
        found = f"{len(layers)} recurrent layers, {len(heads)} linear ones and {len(embeddings)} embeddings"
        raise _NotCoveredError(f"it has {found}, not one, one and at most one; {_OTHERS}")
    if len(heads[0].weight) < 2:
        raise AssumptionError(
            where="certify.model",
            got="a head with one output",
            wanted="logits of two classes or more",
            remedy="Regression has no margin. For two classes give two logits: (0, y) says the same as one logit y.",
        )
    embedding = embeddings[0] if embeddings else None
    _refuse_others(model, [layers[0], heads[0], *embeddings])
    if embedding is not None and embedding.max_norm is not None:
        raise _NotCoveredError(f"an embedding with max_norm changes while it is read; {_OTHERS}")
    return layers[0], heads[0], embedding


def _refuse_others(model: nn.Module, parts: list[nn.Module]) -> None:
    """Refuse parts whose forward pass may be another, and weights that belong to none of them."""
    for part in parts:
        own = type(part).__mro__[1] if parametrize.is_parametrized(part) else type(part)
        if own not in (*_TORCHS, nn.Linear, nn.Embedding) and not own.__module__.startswith("statewise."):
            raise _NotCoveredError(f"{own.__name__} is a subclass that may compute something else; {_OTHERS}")
    known = {id(tensor) for part in parts for _, tensor in named_tensors(part)}
    beside = [name for name, tensor in named_tensors(model) if id(tensor) not in known]
    if beside:
        raise _NotCoveredError(f"{beside[0]} belongs neither to its layer nor to its head or embedding; {_OTHERS}")


def _network(layer: Any, head: Any, embedding: nn.Embedding | None, readout: str) -> NetworkMatrices:
    kind, activation = _kind(layer)
    names = [[f"_l{at}{end}" for end in ("", "_reverse")[: 1 + layer.bidirectional]] for at in range(layer.num_layers)]
    layers = tuple(tuple(_layer(layer, suffix, kind, activation) for suffix in suffixes) for suffixes in names)
    width = layers[-1][0].hidden * len(layers[-1]) * (2 if readout == "hc" else 1)
    if head.weight.shape[1] != width:
        raise _NotCoveredError(
            f"the head reads {head.weight.shape[1]} numbers, where the last state has {width}; {_OTHERS}"
        )
    return NetworkMatrices(
        layers=layers,
        head=_array(head.weight),
        head_bias=None if getattr(head, "bias", None) is None else _array(head.bias),
        embedding=None if embedding is None else _array(embedding.weight),
        readout=readout,
    )


def _kind(layer: Any) -> tuple[str, str]:
    """The cell in our words, and its activation."""
    if isinstance(layer, _TORCHS):
        if getattr(layer, "proj_size", 0):
            raise _NotCoveredError(f"proj_size={layer.proj_size} is not covered; {_OTHERS}")
        kind = next(name for known, name in _KINDS.items() if isinstance(layer, known))
        return kind, layer.nonlinearity if isinstance(layer, nn.RNN) else "tanh"
    for transform in layer.transforms:
        if isinstance(transform, Centroids | Zoneout):
            raise _NotCoveredError(
                f"{type(transform).__name__} act on the state in eval mode too; norms do not cover them"
            )
    cell = layer.cell
    kind = KINDS.get(type(cell), "")
    activation = cell.nonlinearity if isinstance(cell, RNNCell) else "tanh"
    if not kind or activation not in _ACTIVATIONS:
        shown = f"the {cell.name} cell" + (
            "" if not kind else f" with {activation}, which is no Lipschitz map with 0 at 0"
        )
        raise _NotCoveredError(f"{shown} is not covered; {_OTHERS}")
    if getattr(layer, "initial_state", "zeros") != "zeros":
        raise _NotCoveredError(f"initial_state={layer.initial_state!r} is not covered; {_OTHERS}")
    return kind, activation


def _layer(layer: Any, suffix: str, kind: str, activation: str) -> LayerMatrices:
    gates = GATES[kind]
    inputs, states = (_by_gate(getattr(layer, f"{name}{suffix}"), gates) for name in ("weight_ih", "weight_hh"))
    if not layer.bias:
        return LayerMatrices(kind=kind, inputs=inputs, states=states, activation=activation)
    first, second = (_by_gate(getattr(layer, f"{name}{suffix}"), gates) for name in ("bias_ih", "bias_hh"))
    inner = second.pop("candidate") if kind == "gru" else None
    bias = {gate: first[gate] + second[gate] if gate in second else first[gate] for gate in gates}
    return LayerMatrices(kind=kind, inputs=inputs, states=states, bias=bias, state_bias=inner, activation=activation)


def _by_gate(stacked: Tensor, gates: tuple[str, ...]) -> dict[str, Floats]:
    return dict(zip(gates, np.split(_array(stacked), len(gates)), strict=True))


def _array(tensor: Tensor) -> Floats:
    values: Floats = tensor.detach().to("cpu", torch.float64).numpy()
    return values
