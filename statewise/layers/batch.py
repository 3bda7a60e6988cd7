"""Reading what a user gives a layer: padded, packed or unbatched sequences, and initial states."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.engine import Layout
from statewise.errors import DeviceError, DtypeError, LengthError, NonFiniteError, ShapeError


@dataclass(frozen=True)
class Batch:
    """A batch of sequences in the engines' layout, and how to give results back in the user's.

    Attributes:
        rows: the inputs of all steps, shape (rows, input size).
        layout: where each step lies.
        batched: whether the user's input had a batch dimension.
        packed: whether the user's input was a PackedSequence.
        order: for each sorted sequence the user's number of it, or None if they are the same.
        places: the inverse of it: for each of the user's sequences its place among the sorted.
        autocast: whether the caller is under autocast, where other floating dtypes are converted.
    """

    rows: Tensor
    layout: Layout
    batched: bool
    packed: bool = False
    order: Tensor | None = None
    places: Tensor | None = None
    autocast: bool = False

    def sort(self, tensor: Tensor, dim: int) -> Tensor:
        """Rows from the user's order into the sorted one."""
        return tensor if self.order is None else tensor.index_select(dim, self.order)

    def unsort(self, tensor: Tensor, dim: int) -> Tensor:
        """Rows from the sorted order back into the user's."""
        return tensor if self.places is None else tensor.index_select(dim, self.places)

    def give_back(self, rows: Tensor, *, batch_first: bool) -> Tensor | PackedSequence:
        """Outputs in the form in which the inputs came."""
        if self.packed:
            return PackedSequence(rows, torch.tensor(self.layout.batch_sizes), self.order, self.places)
        return self.show(rows, batch_first=batch_first)

    def show(self, rows: Tensor, *, batch_first: bool) -> Tensor:
        """Something of all steps as a padded tensor in the user's order."""
        padded = self.unsort(self.layout.unpack(rows), dim=1)
        if not self.batched:
            return padded.squeeze(1)
        return padded.transpose(0, 1) if batch_first else padded


def read(
    source: Tensor | PackedSequence, *, where: str, input_size: int, batch_first: bool, like: Tensor, finite: bool
) -> Batch:
    """Check an input and lay it out; every refusal names the layer, what was got and what was wanted."""
    packed = source if isinstance(source, PackedSequence) else None
    data = source.data if isinstance(source, PackedSequence) else source
    if not isinstance(data, Tensor):
        raise DtypeError(where=f"{where} input", got=type(source).__name__, wanted="a tensor or a PackedSequence")
    autocast = autocast_is_on(data.device)
    data = check_kind(data, where=f"{where} input", like=like, convert=autocast, dtype=computing_dtype(like))
    if packed is not None:
        layout, order, places = _read_packed(packed, where=where), packed.sorted_indices, packed.unsorted_indices
        batch = Batch(data, layout, True, packed=True, order=order, places=places, autocast=autocast)
    else:
        batch = _read_padded(data, where=where, batch_first=batch_first, autocast=autocast)
    if batch.rows.shape[1] != input_size:
        raise ShapeError(
            where=f"{where} input",
            got=f"size {batch.rows.shape[1]} in shape {tuple(data.shape)}",
            wanted=f"the last dimension to be input_size={input_size}",
        )
    if finite:
        _check_finite(batch.rows, where=f"{where} input")
    return batch


def _read_packed(packed: PackedSequence, *, where: str) -> Layout:
    """The layout of a PackedSequence; one that was made by hand may contradict itself."""
    sizes = tuple(packed.batch_sizes.tolist())
    falling = all(later <= earlier for earlier, later in itertools.pairwise(sizes))
    if not sizes or sizes[-1] < 1 or not falling or sum(sizes) != len(packed.data):
        raise LengthError(
            where=f"{where} input",
            got=f"batch_sizes {list(sizes)} for {len(packed.data)} rows",
            wanted="positive sizes that never grow and add up to the rows",
            remedy="Make it with torch.nn.utils.rnn.pack_padded_sequence or pack_sequence.",
        )
    return Layout.of_sizes(sizes)


def _read_padded(data: Tensor, *, where: str, batch_first: bool, autocast: bool) -> Batch:
    if data.ndim not in (2, 3):
        raise ShapeError(
            where=f"{where} input",
            got=f"{data.ndim} dimensions, shape {tuple(data.shape)}",
            wanted="3 (batched) or 2 (one sequence)",
        )
    batched = data.ndim == 3
    timed = data.unsqueeze(1) if not batched else data.transpose(0, 1) if batch_first else data
    steps, rows = timed.shape[:2]
    if steps == 0:
        raise LengthError(
            where=f"{where} input",
            got=f"0 steps of {rows} sequences, shape {tuple(data.shape)}",
            wanted="at least one step",
            remedy="Leave empty sequences out of the batch.",
        )
    return Batch(timed.flatten(0, 1), Layout(steps, rows), batched, autocast=autocast)


def check_kind(
    data: Tensor, *, where: str, like: Tensor, convert: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """Refuse another device or dtype than the weights', but convert another floating dtype if asked.

    What is taken comes back in ``dtype``, by default the weights'.
    """
    if data.device != like.device:
        raise DeviceError(
            where=where, got=str(data.device), wanted=str(like.device), remedy="Move one of them with .to()."
        )
    if data.dtype == like.dtype or (convert and data.is_floating_point()):
        return data.to(like.dtype if dtype is None else dtype)
    raise DtypeError(
        where=where,
        got=str(data.dtype),
        wanted=f"the weights' {like.dtype}",
        remedy="Convert it, or the layer, with .to(dtype)."
        if data.is_floating_point()
        else "Words and other symbols need an embedding first; numbers convert with .to(dtype).",
    )


def _check_finite(data: Tensor, *, where: str) -> None:
    if not bool(data.isfinite().all()):
        raise NonFiniteError(
            where=where,
            got="NaN or infinity",
            wanted="finite numbers",
            remedy="Look at the data, or at what came before this layer.",
        )


def autocast_is_on(device: torch.device) -> bool:
    """Whether the caller is under autocast; False on devices that have none."""
    # A CPU has it; torch 2.11's compiler cannot look into the question.
    available = device.type == "cpu" or torch.amp.is_autocast_available(device.type)
    return available and torch.is_autocast_enabled(device.type)


def computing_dtype(weight: Tensor) -> torch.dtype:
    """The dtype in which a layer computes: autocast's on a CUDA device, as torch.nn's layers do, else its weights'.

    On a CPU half precision gains nothing in a recurrence, and loses digits.

    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     computing_dtype(torch.zeros(1))
    torch.float32
    """
    if weight.device.type != "cuda" or not autocast_is_on(weight.device) or weight.dtype == torch.float64:
        return weight.dtype
    return torch.get_autocast_dtype("cuda")


def autocast_off(device: torch.device) -> AbstractContextManager[object]:
    """A region without autocast: a recurrence computes all in one dtype."""
    # Not every device has autocast, and torch refuses even to switch it off there.
    return torch.autocast(device.type, enabled=False) if autocast_is_on(device) else nullcontext()


def read_state(
    state: Tensor, name: str, *, batch: Batch, where: str, shape: tuple[int, int, int], finite: bool
) -> Tensor:
    """Check an initial state of shape (layers * directions, batch, hidden) and sort its rows."""
    if not isinstance(state, Tensor):
        raise DtypeError(where=f"{where} {name}", got=type(state).__name__, wanted="a tensor")
    state = check_kind(state, where=f"{where} {name}", like=batch.rows, convert=batch.autocast)
    wanted = shape if batch.batched else (shape[0], shape[2])
    if tuple(state.shape) != wanted:
        raise ShapeError(
            where=f"{where} {name}",
            got=tuple(state.shape),
            wanted=f"{wanted}, that is (num_layers * directions, {'batch, ' if batch.batched else ''}hidden_size)",
        )
    if finite:
        _check_finite(state, where=f"{where} {name}")
    return batch.sort(state if batch.batched else state.unsqueeze(1), dim=1)


def check_generator(generator: torch.Generator | None, *, where: str, device: torch.device) -> None:
    """Refuse a generator of another device: its numbers would not be reproducible there."""
    if generator is None:
        return
    if not isinstance(generator, torch.Generator):
        raise DtypeError(where=f"{where} generator", got=type(generator).__name__, wanted="a torch.Generator")
    if generator.device.type != device.type:
        raise DeviceError(
            where=f"{where} generator",
            got=f"a generator on {generator.device}",
            wanted=f"one on {device}",
            remedy=f"Make it with torch.Generator({str(device)!r}).",
        )
