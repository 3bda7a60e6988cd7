"""Whether an ONNX file computes what its model does, on fresh random inputs of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from statewise.errors import ExportError, MissingExtraError
from statewise.models import Forecaster, LanguageModel, OrthogonalNetwork, SequenceClassifier, StepClassifier, Tagger
from statewise.models.encoded import TokenBatch
from statewise.models.kinds import kind_of
from statewise.models.parts import Parts
from statewise.models.views import resting_view

#: Steps and sequences of the inputs on which a file is compared with its model.
SIZES = ((1, 1), (1, 3), (2, 1), (5, 4), (33, 2))
LONGEST_WORD = 6


class Asked(NamedTuple):
    """What goes into a file, and what the model makes of it."""

    inputs: dict[str, Tensor]
    outputs: tuple[Tensor, ...]


def check_onnx(path: Path | str | bytes, model: nn.Module, *, seed: int = 0, tolerance: float | None = None) -> float:
    """The largest difference between an ONNX file, as onnxruntime runs it, and its model in eval mode.

    Inputs are drawn anew, of several lengths and batch sizes, with sequences of unequal lengths where the model takes
    such, and with states at the beginning.

    Args:
        path: of the file, or its content.
        model: from which it was made.
        seed: of the inputs.
        tolerance: the largest difference that is rounding, for outputs of about 1; None for that of the dtype.

    Raises:
        ExportError: the file computes something else, or takes other inputs.
    """
    session = _session(path)
    resting = resting_view(model)
    ask = _ASK.get(type(model))
    if ask is None:
        raise ExportError(where="check_onnx", got=f"a {type(model).__name__}", wanted="one of the whole models")
    dtype = next(model.parameters()).dtype
    bound = 1000 * torch.finfo(dtype).eps if tolerance is None else tolerance
    names, largest = [each.name for each in session.get_inputs()], 0.0
    generator = torch.Generator().manual_seed(seed)
    for steps, batch in SIZES:
        with torch.no_grad():
            asked = ask(resting, steps, batch, generator)
        if sorted(names) != sorted(asked.inputs):
            got, wanted = f"a graph with the inputs {', '.join(names)}", f"those of a {kind_of(model)}"
            raise ExportError(where=_named(path), got=got, wanted=f"{wanted}: {', '.join(asked.inputs)}")
        found = session.run(None, {name: tensor.numpy() for name, tensor in asked.inputs.items()})
        for name, one, other in zip((each.name for each in session.get_outputs()), found, asked.outputs, strict=True):
            apart = _apart(torch.from_numpy(one), other, where=f"{_named(path)}, {name}")
            largest = max(largest, apart)
            if not apart <= bound * max(1.0, float(other.abs().max()) if other.numel() else 0.0):
                raise ExportError(
                    where=f"{_named(path)}, {name}",
                    got=f"a difference of {apart:.2g} from the model, for {steps} steps and {batch} sequences",
                    wanted=f"at most {bound:.2g}, which is rounding",
                )
    return largest


def _apart(one: Tensor, other: Tensor, *, where: str) -> float:
    if one.shape != other.shape:
        got, wanted = f"shape {tuple(one.shape)}", f"shape {tuple(other.shape)}"
        raise ExportError(where=where, got=got, wanted=wanted)
    return float((one.double() - other.double()).abs().max()) if one.numel() else 0.0


def _named(path: Path | str | bytes) -> str:
    return "the graph" if isinstance(path, bytes) else str(path)


def _session(path: Path | str | bytes) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError.of("check_onnx", package="onnxruntime", extra="onnx") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors come as exceptions; warnings are not for a user's terminal
    try:
        source = path if isinstance(path, bytes) else str(path)
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime has a class of its own for every failure, without a common base that is public.
        got = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ExportError(where=_named(path), got=got, wanted="a graph that onnxruntime can run") from error


def _ask_language(model: LanguageModel, steps: int, batch: int, generator: torch.Generator) -> Asked:
    tokens = torch.randint(model.words, (steps, batch), generator=generator)
    _, _, state = model.features(tokens)
    fresh = batch == 1  # beginning from nothing, else from some state
    given = [
        [torch.zeros_like(part) if fresh else torch.randn(part.shape, generator=generator).to(part) for part in parts]
        for parts in (each if isinstance(each, tuple) else (each,) for each in state)
    ]
    inputs = {"tokens": tokens}
    for index, parts in enumerate(given):
        inputs |= {f"{name}_{index}": part for name, part in zip(("state", "memory"), parts, strict=False)}
    before = tuple(tuple(parts) if len(parts) > 1 else parts[0] for parts in given)
    found, after = model(tokens, None if fresh else before)
    flat = [part for each in after for part in (each if isinstance(each, tuple) else (each,))]
    return Asked(inputs, (found, *flat))


def _ask_sequences(
    model: SequenceClassifier | StepClassifier, steps: int, batch: int, generator: torch.Generator
) -> Asked:
    least = 0 if isinstance(model, SequenceClassifier) and model.tokens and model.config.start_token else 1
    lengths = torch.randint(least, steps + 1, (batch,), generator=generator)
    if model.tokens is not None:
        name, sequences = "tokens", torch.randint(model.tokens, (batch, steps), generator=generator)
    else:
        name, shape = "features", (batch, steps, model.features or 1)
        sequences = _values(model, torch.randn(shape, generator=generator))
    return Asked({name: sequences, "lengths": lengths}, (model(sequences, lengths),))


def _values(model: Parts, unit: Tensor) -> Tensor:
    """Numbers that the model reads as if they were of its training set."""
    unit = unit.to(model.head.weight.dtype)
    return unit * model.scale_deviation + model.scale_mean if model.has_scale else unit


def _ask_forecaster(model: Forecaster, steps: int, batch: int, generator: torch.Generator) -> Asked:
    lengths = torch.randint(1, steps + 1, (batch,), generator=generator)
    sequences = _values(model, torch.randn(batch, steps, model.features or 1, generator=generator))
    inside = (torch.arange(steps) < lengths.unsqueeze(1)).unsqueeze(2)
    found = tuple(torch.where(inside, part, 0) for part in model.predict(sequences, lengths))
    return Asked({"features": sequences, "lengths": lengths}, found)


def _ask_tagger(model: Tagger, steps: int, batch: int, generator: torch.Generator) -> Asked:
    words = torch.randint(model.words.num_embeddings, (batch, steps), generator=generator)
    lengths = torch.randint(1, steps + 1, (batch,), generator=generator)
    inputs, spelt, context = {"words": words, "lengths": lengths}, None, None
    if model.letters is not None:
        shape = (batch, steps, LONGEST_WORD)
        characters = torch.randint(model.letters.num_embeddings, shape, generator=generator)
        spelling = torch.randint(1, LONGEST_WORD + 1, shape[:2], generator=generator)
        inputs |= {"characters": characters, "word_lengths": spelling}
        spelt = pack_padded_sequence(
            characters.flatten(0, 1), spelling.flatten(), batch_first=True, enforce_sorted=False
        )
    if model.context:
        context = torch.randn(batch, steps, model.context, generator=generator)
        inputs["context"] = context
    longest = int(lengths.max())
    places = torch.arange(batch * steps).view(batch, steps).T[:longest]
    turned = None if context is None else context.transpose(0, 1)[:longest]
    found = model(TokenBatch(words.flatten(), places, lengths, spelt, turned)).transpose(0, 1)
    found = torch.nn.functional.pad(found, (0, 0, 0, steps - found.shape[1]))  # the model ends with the longest
    inside = torch.arange(steps) < lengths.unsqueeze(1)
    return Asked(inputs, (torch.where(inside.unsqueeze(2), found, 0),))


def _ask_orthogonal(model: OrthogonalNetwork, steps: int, batch: int, generator: torch.Generator) -> Asked:
    like = model.readout.weight
    sequences = torch.randn(steps, batch, model.config.inputs, generator=generator).to(like)
    if model.config.initial_state != "uniform":
        return Asked({"sequences": sequences}, (model(sequences),))
    state = torch.randn(model.depth, batch, model.config.hidden, generator=generator).to(like)
    return Asked({"sequences": sequences, "state": state}, (model(sequences, state),))


_ASK: dict[type[nn.Module], Callable[[Any, int, int, torch.Generator], Asked]] = {
    LanguageModel: _ask_language,
    SequenceClassifier: _ask_sequences,
    StepClassifier: _ask_sequences,
    Forecaster: _ask_forecaster,
    Tagger: _ask_tagger,
    OrthogonalNetwork: _ask_orthogonal,
}


def example_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Inputs by whose shapes a graph is made: no axis that may have any size is 0 or 1 long.

    Args:
        model: in eval mode.
    """
    with torch.no_grad():
        yield from _ASK[type(model)](model, 5, 3, torch.Generator().manual_seed(0)).inputs.items()
