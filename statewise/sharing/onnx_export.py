"""A trained model as an ONNX file: one graph for every length and every number of sequences."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from statewise.errors import ExportError, MissingExtraError
from statewise.files import strict, write_atomically
from statewise.models import Saved, Tagger
from statewise.models.kinds import kind_of
from statewise.models.saving import describe
from statewise.sharing.onnx_check import check_onnx, example_of
from statewise.sharing.onnx_networks import GRAPHS, Network, graph_of

FORMAT, VERSION = "statewise-onnx", 1
LARGEST = 1_900_000_000  # bytes: protobuf has a limit of two gigabytes


def export_onnx(model: nn.Module, path: Path | str, *, tolerance: float | None = None) -> float:
    """Write a model in eval mode as an ONNX file that takes sequences of any length, any number of them at once.

    The walk through time is a loop of the graph (ONNX's Scan), so that the file is no longer for long sequences. What
    was written is run by onnxruntime and compared with the model, on fresh inputs; if they differ there is no file.

    ======================  ==========================================================  ==============================
    LanguageModel           tokens (steps, batch); state_0, memory_0 and so on          log_probabilities, the states
    SequenceClassifier      tokens (batch, steps) or features with a width; lengths     logits (batch, classes)
    StepClassifier          the same                                                    logits (batch, steps, classes)
    Forecaster              features (batch, steps, width); lengths                     mean, deviation of next values
    Tagger                  words, lengths, characters, word_lengths, context           emissions (batch, steps, tags)
    OrthogonalNetwork       sequences (steps, batch, inputs); state where it is drawn   scores
    ======================  ==========================================================  ==============================

    States are (layers, batch, hidden); those of a fresh start are zeros, also for an arithmetic circuit.

    The metadata entry "statewise" holds, as JSON, what the model is: its kind, settings, symbols and classes; of a
    tagger with a CRF also the transitions, for Viterbi's algorithm outside of the graph.

    Args:
        model: one of the whole models, on any device.
        path: of the file to make or to replace.
        tolerance: the largest difference that is rounding, for outputs of about 1; None for that of the dtype.

    Returns:
        The largest difference that was found.

    Raises:
        ExportError: the model has something that no graph can hold, or the graph computes something else.
    """
    path = Path(path)
    _check_extra()
    if type(model) not in GRAPHS:
        names = ", ".join(each.__name__ for each in GRAPHS)
        raise ExportError(where="export_onnx", got=f"a {type(model).__name__}", wanted=f"one of {names}")
    _check_dtype(model)
    resting = copy.deepcopy(model).cpu().eval()
    content = _graph(graph_of(resting), dict(example_of(resting)), about(resting))
    largest = check_onnx(content, resting, tolerance=tolerance)
    write_atomically(path, content)
    return largest


def about(model: nn.Module) -> dict[str, Any]:
    """What the metadata of a file say of its model.

    Args:
        model: one of the whole models.
    """
    told: dict[str, Any] = {"kind": kind_of(model)}
    if isinstance(model, Saved) and model.config is not None:
        told = describe(model)
    if isinstance(model, Tagger) and model.crf is not None:
        _, scores = model.crf.alike(torch.zeros(1, 1, len(model.lexicon.tags)), decoding=True)
        told["crf"] = {name: part.tolist() for name, part in scores._asdict().items()}
    return {**told, "format": FORMAT, "version": VERSION}


def _graph(network: Network, example: dict[str, torch.Tensor], told: dict[str, Any]) -> bytes:
    """The bytes of the file."""
    import onnx

    # Small sizes would be told apart while tracing; the check runs them all the same.
    axes = {name: torch.export.Dim(name, min=3) for each in network.inputs.values() for name in each.values()}
    shapes = [{place: axes[name] for place, name in each.items()} for each in network.inputs.values()]
    inputs = tuple(example[name] for name in network.inputs)
    with torch.no_grad(), _quietly():
        try:
            asked = dict(inspect.signature(network.forward).bind(*shapes).arguments)
            # By hand, since torch.onnx would else try other ways, which fix the sizes of the example.
            exported = torch.export.export(network, inputs, dynamic_shapes=asked, strict=False)
            names: dict[str, Any] = {"input_names": list(network.inputs), "output_names": list(network.outputs)}
            program = torch.onnx.export(exported, dynamo=True, verbose=False, **names)
            assert program is not None
            proto = program.model_proto
        except Exception as error:
            # torch raises many kinds; the first line says which operation it could not write.
            got = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
            wanted = "a network whose operations ONNX has"
            raise ExportError(where=f"export_onnx of a {told['kind']}", got=got, wanted=wanted) from error
    onnx.helper.set_model_props(proto, {"statewise": json.dumps(strict(told), allow_nan=False)})
    if proto.ByteSize() > LARGEST:
        got, wanted = f"{proto.ByteSize():,} bytes", f"at most {LARGEST:,}, which one file can hold"
        raise ExportError(where="export_onnx", got=got, wanted=wanted)
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


def _check_dtype(model: nn.Module) -> None:
    dtypes = {parameter.dtype for parameter in model.parameters()}
    if not dtypes <= {torch.float32, torch.float64} or len(dtypes) != 1:
        raise ExportError(
            where="export_onnx",
            got=f"weights of {', '.join(sorted(map(str, dtypes)))}",
            wanted="weights of single or of double precision",
            remedy="Export model.float().",
        )


def _check_extra() -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtraError.of("export_onnx", package=package, extra="onnx") from None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """A region in which torch's exporter tells nothing of itself: it logs, and warns of its own insides."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
