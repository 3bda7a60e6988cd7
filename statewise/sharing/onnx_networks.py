"""Whole models as functions of tensors alone, with names for all that goes in and comes out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from statewise.errors import ExportError
from statewise.heads import AdaptiveSoftmax, Head, MixtureOfSoftmaxes
from statewise.heads.gaussian import LEAST, UNIT, Normal
from statewise.layers import RecurrentLayer
from statewise.models import Forecaster, LanguageModel, OrthogonalNetwork, SequenceClassifier, StepClassifier, Tagger
from statewise.models.parts import Parts
from statewise.sharing.onnx_layer import LoopLayer

Axes = dict[int, str]


class Network(nn.Module):
    """A model for a graph.

    Attributes:
        inputs: the axes of each input that may have any size, by name and place.
        outputs: the names of what comes out.
    """

    inputs: dict[str, Axes]
    outputs: tuple[str, ...]


def _loop(layer: nn.Module, where: str) -> LoopLayer:
    assert isinstance(layer, RecurrentLayer)
    return LoopLayer(layer, where=where)


def _zeros(layer: LoopLayer, batch: int) -> tuple[Tensor, Tensor | None]:
    """States and memories at the beginning of sequences."""
    like = layer.get_buffer("weight_hh_l0")
    zeros = like.new_zeros(layer.depth * layer.directions, batch, like.shape[1])
    return zeros, zeros.clone() if layer.cell.has_memory else None


class LanguageGraph(Network):
    """Tokens (steps, batch) and the states of all layers; gives log-probabilities and the states afterwards."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.embedding, self.head = model.embedding, model.head
        self.layers = nn.ModuleList(
            _loop(layer, f"LanguageModel.layers[{index}]") for index, layer in enumerate(model.layers)
        )
        self.inputs, after = {"tokens": {0: "steps", 1: "batch"}}, []
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, LoopLayer)
            for name in ("state", "memory")[: 1 + layer.cell.has_memory]:
                self.inputs[f"{name}_{index}"] = {1: "batch"}
                after.append(f"{name}_{index}_after")
        self.outputs = ("log_probabilities", *after)

    def forward(self, tokens: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        hidden: Tensor = self.embedding(tokens)
        given, after = list(states), []
        for layer in self.layers:
            assert isinstance(layer, LoopLayer)
            state = given.pop(0)
            walked = layer(hidden, None, state, given.pop(0) if layer.cell.has_memory else None)
            hidden = walked.output
            after += [walked.states] if walked.memories is None else [walked.states, walked.memories]
        return (_log_prob(self.head, hidden), *after)


def _log_prob(head: Head, features: Tensor) -> Tensor:
    """The log-probabilities of words, of all steps at once: heads that spare memory walk step by step."""
    if isinstance(head, MixtureOfSoftmaxes):
        return head._mixed(head._latents(features, None), head._log_prior(features))
    if not isinstance(head, AdaptiveSoftmax):
        return head.log_prob(features)
    parts, first = head.parts, head.parts.head(features).log_softmax(-1)
    found = [first[..., : parts.shortlist_size]]
    for number, cluster in enumerate(parts.tail):
        chosen = first[..., parts.shortlist_size + number].unsqueeze(-1)
        found.append(chosen + cluster(features).log_softmax(-1))
    return torch.cat(found, dim=-1)


class _Scaled(Network):
    """A model that may take the mean of its training set off each feature, and divide by the deviation."""

    def keep_scale(self, model: Parts) -> None:
        """Take the scale of a model over, if it has one."""
        self.scaled = model.has_scale
        if model.has_scale:
            self.register_buffer("scale_mean", model.scale_mean.detach().clone())
            self.register_buffer("scale_deviation", model.scale_deviation.detach().clone())

    def read(self, features: Tensor) -> Tensor:
        """Features as the layer reads them."""
        return (
            (features - self.get_buffer("scale_mean")) / self.get_buffer("scale_deviation") if self.scaled else features
        )


class ClassifierGraph(_Scaled):
    """Tokens (batch, steps) or features (batch, steps, width) and lengths (batch); gives logits (batch, classes)."""

    def __init__(self, model: SequenceClassifier) -> None:
        super().__init__()
        self.embedding, self.head, self.layer = model.embedding, model.head, _loop(model.layer, "SequenceClassifier")
        self.readout = model.config.readout
        self.keep_scale(model)
        self.start = model.start_id if model.tokens is not None and model.config.start_token else None
        self.end = model.end_id if model.tokens is not None else None
        name = "tokens" if model.tokens is not None else "features"
        self.inputs, self.outputs = {name: {0: "batch", 1: "steps"}, "lengths": {0: "batch"}}, ("logits",)

    def forward(self, sequences: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        if self.embedding is not None:
            if self.start is not None:
                first = torch.full_like(lengths, self.start).unsqueeze(1)
                sequences, lengths = torch.cat((first, sequences), dim=1), lengths + 1
            sequences = self.embedding(sequences)
        entering = self.read(sequences).transpose(0, 1)
        inside = torch.arange(entering.shape[0], device=entering.device).unsqueeze(1) < lengths
        # What lies beyond an end may be anything, NaN too.
        entering = torch.where(inside.unsqueeze(2), entering, 0)
        zeros, memory = _zeros(self.layer, lengths.shape[0])
        walked = self.layer(entering, inside, zeros, memory)
        return (self.head(self._read_out(walked, lengths)),)

    def _read_out(self, walked: Any, lengths: Tensor) -> Tensor:
        if self.readout == "u_end":
            assert self.embedding is not None
            rows: Tensor = self.embedding(torch.full_like(lengths, self.end or 0))
            return self.layer.bare_step(rows, walked.states, walked.memories)
        parts = {"h": (walked.states,), "c": (walked.memories,), "hc": (walked.states, walked.memories)}[self.readout]
        return torch.cat([part[-1] for part in parts], dim=1)


class StepGraph(_Scaled):
    """Tokens or features and lengths; gives logits (batch, steps, classes), zero beyond a sequence's end."""

    def __init__(self, model: StepClassifier) -> None:
        super().__init__()
        self.embedding, self.head, self.layer = model.embedding, model.head, _loop(model.layer, "StepClassifier")
        self.readout = model.config.readout
        self.keep_scale(model)
        name = "tokens" if model.tokens is not None else "features"
        self.inputs, self.outputs = {name: {0: "batch", 1: "steps"}, "lengths": {0: "batch"}}, ("logits",)

    def forward(self, sequences: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        inside = torch.arange(sequences.shape[1], device=lengths.device).unsqueeze(1) < lengths
        entering = self.read(sequences if self.embedding is None else self.embedding(sequences)).transpose(0, 1)
        entering = torch.where(inside.unsqueeze(2), entering, 0)
        zeros, memory = _zeros(self.layer, lengths.shape[0])
        walked = self.layer(entering, inside, zeros, memory)
        logits: Tensor = self.head(walked.bare if self.readout == "u" else walked.output)
        return (torch.where(inside.unsqueeze(2), logits, 0).transpose(0, 1),)


class ForecasterGraph(_Scaled):
    """Features (batch, steps, width) and lengths; gives mean and deviation of the next step after every step.

    Both are in the units of the values, and zero beyond a sequence's end.
    """

    def __init__(self, model: Forecaster) -> None:
        super().__init__()
        self.head, self.layer, self.around = model.head, _loop(model.layer, "Forecaster"), model.config.around
        self.keep_scale(model)
        self.inputs = {"features": {0: "batch", 1: "steps"}, "lengths": {0: "batch"}}
        self.outputs = ("mean", "deviation")
        # As tensors: a number in a graph has single precision.
        for name, value in (("unit", UNIT), ("least", LEAST)):
            self.register_buffer(name, torch.tensor(value, dtype=model.head.weight.dtype))

    def forward(self, sequences: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        inside = (torch.arange(sequences.shape[1], device=lengths.device).unsqueeze(1) < lengths).unsqueeze(2)
        entering = torch.where(inside, self.read(sequences).transpose(0, 1), 0)
        zeros, memory = _zeros(self.layer, lengths.shape[0])
        laws = self._normal(self.head(self.layer(entering, inside.squeeze(2), zeros, memory).output))
        laws = laws._replace(mean=laws.mean + entering) if self.around == "last" else laws
        found = laws.in_units(self.get_buffer("scale_mean"), self.get_buffer("scale_deviation"))
        return tuple(torch.where(inside, part, 0).transpose(0, 1) for part in found)

    def _normal(self, scores: Tensor) -> Normal:
        """What :meth:`Normal.of` gives; onnxruntime has no softplus of double precision, but all it is made of."""
        mean, width = scores.chunk(2, dim=-1)
        width = width + self.get_buffer("unit")
        return Normal(mean, width.relu() + (1 + (-width.abs()).exp()).log() + self.get_buffer("least"))


class TaggerGraph(Network):
    """Rows of word vectors (batch, steps), characters (batch, steps, longest) and the lengths of words and sentences.

    Gives the scores of the tags (batch, steps, tags), zero beyond a sentence's end: a softmax makes probabilities of
    them, or a CRF's Viterbi, whose transitions the file's metadata has, a sequence.
    """

    def __init__(self, model: Tagger) -> None:
        super().__init__()
        self.words, self.letters, self.projection = model.words, model.letters, model.projection
        self.head, self.layer = model.head, _loop(model.layer, "Tagger.layer")
        self.speller = None if model.speller is None else _loop(model.speller, "Tagger.speller")
        self.inputs: dict[str, Axes] = {"words": {0: "batch", 1: "steps"}, "lengths": {0: "batch"}}
        if self.speller is not None:
            self.inputs["characters"] = {0: "batch", 1: "steps", 2: "longest"}
            self.inputs["word_lengths"] = {0: "batch", 1: "steps"}
        if model.context:
            self.inputs["context"] = {0: "batch", 1: "steps"}
        self.outputs = ("emissions",)

    def forward(self, words: Tensor, lengths: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        rest = list(others)
        inside = torch.arange(words.shape[1], device=lengths.device) < lengths.unsqueeze(1)
        parts = [self.words(words)]
        if self.speller is not None:
            parts.append(self._spelt(rest.pop(0), rest.pop(0)))
        parts += [part.to(parts[0].dtype) for part in rest]
        features = torch.where(inside.unsqueeze(2), torch.cat(parts, dim=2), 0).transpose(0, 1)
        features = features if self.projection is None else self.projection(features)
        zeros, memory = _zeros(self.layer, lengths.shape[0])
        walked = self.layer(features, inside.T, zeros, memory)
        emissions = self.head(walked.output).transpose(0, 1)
        return (torch.where(inside.unsqueeze(2), emissions, 0),)

    def _spelt(self, characters: Tensor, word_lengths: Tensor) -> Tensor:
        """The ends of the LSTM over the characters of every word, side by side."""
        assert self.speller is not None
        assert self.letters is not None
        flat = characters.flatten(0, 1).T
        inside = torch.arange(flat.shape[0], device=flat.device).unsqueeze(1) < word_lengths.flatten()
        zeros, memory = _zeros(self.speller, flat.shape[1])
        ends: Tensor = self.speller(self.letters(flat), inside, zeros, memory).states
        side_by_side: Tensor = torch.cat((ends[0], ends[1]), dim=1)
        spelt: Tensor = side_by_side.unflatten(0, (characters.shape[0], characters.shape[1]))
        return spelt


class OrthogonalGraph(Network):
    """Vectors (steps, batch, inputs), and where the network draws its beginning, the states of all layers."""

    def __init__(self, model: OrthogonalNetwork) -> None:
        super().__init__()
        self.layer, self.readout = _loop(model.rnn, "OrthogonalNetwork"), model.readout
        self.every_step, self.depth = model.every_step, model.depth
        self.begins = model.rnn.initial_state
        self.inputs: dict[str, Axes] = {"sequences": {0: "steps", 1: "batch"}}
        if self.begins == "uniform":
            self.inputs["state"] = {1: "batch"}
        if self.begins == "learned":
            self.register_buffer("state_0", model.rnn.state_0.detach().clone())
        self.outputs = ("scores",)

    def forward(self, sequences: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        zeros, _ = _zeros(self.layer, sequences.shape[1])
        start = given[0] if given else zeros
        if self.begins == "learned":
            start = zeros + self.get_buffer("state_0")
        walked = self.layer(sequences, None, start, None)
        return (self.readout(walked.output if self.every_step else walked.states[-1]),)


GRAPHS: dict[type[nn.Module], type[Network]] = {
    LanguageModel: LanguageGraph,
    SequenceClassifier: ClassifierGraph,
    StepClassifier: StepGraph,
    Forecaster: ForecasterGraph,
    Tagger: TaggerGraph,
    OrthogonalNetwork: OrthogonalGraph,
}


def graph_of(model: nn.Module) -> Network:
    """A model, in eval mode and on the CPU, as a function of tensors.

    Args:
        model: one of the whole models.
    """
    kind: Any = GRAPHS.get(type(model))
    if kind is None:
        names = ", ".join(each.__name__ for each in GRAPHS)
        raise ExportError(where="export_onnx", got=f"a {type(model).__name__}", wanted=f"one of {names}")
    made: Network = kind(model)
    return made.eval()
