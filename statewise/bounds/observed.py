"""One pass over labelled sequences: what a certificate needs to know of them, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from statewise.bounds.logs import Floats
from statewise.bounds.margins import margins, safe_margins
from statewise.errors import ArgumentError, AssumptionError, DeviceError, DtypeError, LengthError, ShapeError

BATCH = 1024
#: Sequences on which it is tested what a model is: so many in all, and of each batch.
TESTED, EACH = 24, 4


@runtime_checkable
class Examples(Protocol):
    """Labelled examples of :mod:`statewise.data`."""

    @property
    def labels(self) -> Any:
        """The class of each."""

    def __len__(self) -> int: ...

    def padded(self, indices: Any) -> tuple[Tensor, Tensor | None, Tensor]:
        """A batch: inputs, lengths or None, labels."""


#: ``(inputs, labels)``, ``(inputs, lengths, labels)``, examples, or batches of the first two such as a DataLoader's.
Data = Examples | Sequence[Any] | Iterable[Any]
Forward = Callable[..., Tensor]
Watch = Callable[[Tensor, npt.NDArray[np.int64]], Floats]
#: A sequence, and its logits.
Tested = tuple[npt.NDArray[Any], Floats]


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """What a network did on m sequences.

    Attributes:
        margins: (m,), in float64 and less what rounding may have added.
        wrong: how many were classified wrongly; a tie is wrong.
        classes: how many logits there are.
        dtype: of the logits.
        input_dtype: of the inputs.
        with_lengths: whether lengths were given.
        lengths: (m,), steps of each sequence, in the order of the data.
        largest: the greatest length of a step, as a vector; 0 for tokens.
        labels: (m,).
        words: the token numbers of each sequence; None for numbers.
        tested: a few sequences, and their logits.
        keys: (m,), a number for each sequence, the same for equal ones.
        watched: (m,), what ``watch`` gave for each sequence; None without.
    """

    margins: Floats
    wrong: int
    classes: int
    dtype: torch.dtype
    input_dtype: torch.dtype
    with_lengths: bool
    lengths: npt.NDArray[np.int64]
    largest: float
    labels: npt.NDArray[np.int64]
    words: tuple[npt.NDArray[np.int64], ...] | None
    tested: tuple[Tested, ...]
    keys: npt.NDArray[np.int64]
    watched: Floats | None = None

    @property
    def sequences(self) -> int:
        """How many there are: m."""
        return len(self.margins)

    @property
    def copies(self) -> int:
        """How many sequences are equal to one before them."""
        return self.sequences - len(np.unique(self.keys))

    @property
    def longest(self) -> int:
        """Steps of the longest sequence."""
        return int(self.lengths.max())

    @property
    def error(self) -> float:
        """The share of wrong answers."""
        return self.wrong / self.sequences


def observe(
    model: nn.Module,
    data: Data,
    *,
    forward: Forward | None = None,
    watch: Watch | None = None,
    least: int = 2,
    where: str = "certify.data",
) -> Observed:
    """Run a network over labelled sequences once.

    Args:
        model: in eval mode.
        data: as :data:`Data` says.
        forward: gives the logits from ``(inputs)`` or ``(inputs, lengths)``; None calls the model.
        watch: called with the inputs of a batch and the steps of each sequence; gives a number for each.
        least: how many sequences there must be.
        where: how the data is called in errors.

    >>> x, z = torch.tensor([[[1.0], [-2.0]]] * 3), torch.tensor([1, 1, 0])
    >>> seen = observe(nn.Identity(), (x, z), forward=lambda x: x.sum(1) * torch.tensor([1.0, -1.0]))
    >>> seen.sequences, seen.wrong, seen.largest
    (3, 1, 2.0)
    """
    call = model if forward is None else forward
    parameter = next(model.parameters(), None)
    found: list[tuple[Tensor, Tensor, Tensor, npt.NDArray[np.int64], float]] = []
    words: list[npt.NDArray[np.int64]] = []
    tested: list[Tested] = []
    keys: list[npt.NDArray[np.int64]] = []
    watched: list[Floats] = []
    seen = 0
    with torch.no_grad():
        for inputs, lengths, labels in _batches(data, where):
            if parameter is not None and inputs.device != parameter.device:
                raise DeviceError(
                    where=where,
                    got=f"inputs on {inputs.device} and a model on {parameter.device}",
                    wanted="one device",
                    remedy=f"Move one of them: model.to({str(inputs.device)!r}).",
                )
            steps, largest = _inspect(inputs, lengths, labels, where, seen)
            logits = call(inputs) if lengths is None else call(inputs, lengths)
            _check_logits(logits, labels, where)
            found.append((safe_margins(logits, labels).cpu(), margins(logits, labels).cpu(), labels, steps, largest))
            if not inputs.is_floating_point():
                words += [row[:n].astype(np.int64) for row, n in zip(inputs.cpu().numpy(), steps, strict=True)]
            tested = _thinned([*tested, *_some(inputs, logits, steps)])
            keys.append(_keys(inputs, steps))
            watched += [] if watch is None else [watch(inputs, steps)]
            seen += len(labels)
    if seen < least:
        raise ArgumentError(
            where=where,
            got=f"{seen} sequences",
            wanted=f"at least {least}",
            remedy="Each certificate counts independent sequences; give those the network was trained on.",
        )
    safe, plain, labels_, lengths_, largest_ = zip(*found, strict=True)
    return Observed(
        margins=torch.cat(safe).numpy(),
        wrong=int((torch.cat(plain) <= 0).sum()),
        classes=int(logits.shape[1]),
        dtype=logits.dtype,
        input_dtype=inputs.dtype,
        with_lengths=lengths is not None,
        lengths=np.concatenate(lengths_),
        largest=max(largest_),
        labels=torch.cat(labels_).cpu().numpy().astype(np.int64),
        words=tuple(words) or None,
        tested=tuple(tested),
        keys=np.concatenate(keys),
        watched=np.concatenate(watched) if watched else None,
    )


def _batches(data: Data, where: str) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
    """The data as batches of inputs, lengths and labels."""
    if isinstance(data, Examples):
        for begin in range(0, len(data), BATCH):
            yield data.padded(range(begin, min(begin + BATCH, len(data))))
        return
    if isinstance(data, tuple | list) and data and isinstance(data[0], Tensor):
        inputs, lengths, labels = _parts(data, where)
        for begin in range(0, len(labels), BATCH):
            at = slice(begin, begin + BATCH)
            yield inputs[at], None if lengths is None else lengths[at], labels[at]
        return
    if isinstance(data, Tensor) or not isinstance(data, Iterable):
        wanted = "(inputs, labels), (inputs, lengths, labels), examples of statewise.data, or batches of the first two"
        raise DtypeError(where=where, got=type(data).__name__, wanted=wanted)
    for batch in data:
        yield _parts(batch, where)


def _parts(batch: Any, where: str) -> tuple[Tensor, Tensor | None, Tensor]:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        got = f"{len(batch)} parts" if isinstance(batch, tuple | list) else type(batch).__name__
        raise DtypeError(where=where, got=got, wanted="(inputs, labels) or (inputs, lengths, labels)")
    inputs, labels, lengths = batch[0], batch[-1], batch[1] if len(batch) == 3 else None
    if len(inputs) != len(labels):
        raise ShapeError(where=where, got=f"{len(inputs)} sequences and {len(labels)} labels", wanted="a label each")
    return inputs, lengths, labels


def _inspect(
    inputs: Tensor, lengths: Tensor | None, labels: Tensor, where: str, before: int
) -> tuple[npt.NDArray[np.int64], float]:
    """The steps of each sequence, and the greatest length of a step."""
    dimensions = 3 if inputs.is_floating_point() else 2
    if inputs.ndim != dimensions:
        raise ShapeError(
            where=where,
            got=f"inputs {tuple(inputs.shape)}",
            wanted="(sequences, steps, features), or token numbers (sequences, steps)",
            remedy="Sequences come first, also for a model that wants steps first: give that one as "
            "forward=lambda x: model(x.transpose(0, 1)).",
        )
    if labels.is_floating_point():
        raise DtypeError(where=where, got=f"labels of {labels.dtype}", wanted="whole numbers")
    if lengths is not None and len(lengths) and int(lengths.max()) > inputs.shape[1]:
        at = before + int(lengths.argmax())
        got = f"a length of {int(lengths.max())}"
        raise LengthError(where=f"{where}, sequence {at}", got=got, wanted=f"at most {inputs.shape[1]}, as given")
    steps = np.full(len(inputs), inputs.shape[1]) if lengths is None else lengths.cpu().numpy().astype(np.int64)
    if inputs.is_floating_point():
        if len(steps) and steps.min() < 1:
            at = before + int(steps.argmin())
            raise LengthError(where=f"{where}, sequence {at}", got="no steps", wanted="at least one")
        norms = torch.linalg.vector_norm(inputs.double(), dim=2)
        inside = (
            torch.arange(inputs.shape[1], device=inputs.device) < torch.as_tensor(steps, device=inputs.device)[:, None]
        )
        norms = norms.masked_fill(~inside, 0.0)
        largest = float(norms.max()) if norms.numel() else 0.0
        if not math.isfinite(largest):
            at = before + int((~norms.isfinite()).any(1).nonzero()[0])
            raise AssumptionError(
                where=f"{where}, sequence {at}",
                got="NaN or infinity",
                wanted="bounded inputs",
                remedy="Leave such sequences out, or clean them.",
            )
        return steps, largest
    return steps, 0.0


def _check_logits(logits: Tensor, labels: Tensor, where: str) -> None:
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(labels) or logits.shape[1] < 2:
        got = str(tuple(logits.shape)) if isinstance(logits, Tensor) else type(logits).__name__
        raise AssumptionError(
            where="what the model gives",
            got=got,
            wanted="logits (batch, classes) of two classes or more",
            remedy="Give forward=, a function that returns them; a regression head has no margin.",
        )
    if not bool(logits.isfinite().all()):
        raise AssumptionError(where="what the model gives", got="NaN or infinity", wanted="finite logits")
    if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < logits.shape[1]:
        got = f"labels {int(labels.min())} to {int(labels.max())}"
        raise ArgumentError(where=where, got=got, wanted=f"0 to {logits.shape[1] - 1}")


def _some(inputs: Tensor, logits: Tensor, steps: npt.NDArray[np.int64]) -> list[Tested]:
    """A few sequences of a batch, and their logits: the first, the last, the shortest and the longest."""
    if not len(inputs):
        return []
    rows = dict.fromkeys((0, len(inputs) - 1, int(steps.argmin()), int(steps.argmax()), *range(1, EACH)))
    return [(_array(inputs[at, : int(steps[at])]), _array(logits[at])) for at in rows if at < len(inputs)]


def _keys(inputs: Tensor, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    rows = _array(inputs)
    return np.array([hash(rows[at, :length].tobytes()) for at, length in enumerate(steps.tolist())], dtype=np.int64)


def _thinned(tested: list[Tested]) -> list[Tested]:
    """At most so many, from all batches alike."""
    return tested if len(tested) <= TESTED else tested[:: -(-len(tested) // TESTED)]


def _array(values: Tensor) -> npt.NDArray[Any]:
    plain = values.double() if values.is_floating_point() else values
    array: npt.NDArray[Any] = plain.cpu().numpy()
    return array
