"""Which kernel runs a recurrence, with which tiles, and why: a small table, made longer by measuring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import torch

from statewise.engine.device.operands import Facts, rounded, split
from statewise.engine.recurrence import Recurrence
from statewise.transforms import Centroids

_SHARED_MEMORY = 232_448  # bytes that a program may have on compute capability 9.0
_PROCESSORS = 132
PLANES = {"rnn": 1, "lstm": 4, "peephole": 4, "gru": 4, "rac": 2, "mgu": 2, "reset_before": 3}


@dataclass(frozen=True)
class Form:
    """A kernel with its tiles.

    Args:
        name: "solo" (a program has all units of its sequences, all steps in one launch), "team" (programs share the
            units, and meet at every step) or "step" (a product of the matrix library and a fused kernel a step).
        units: units of a program.
        sequences: sequences of a program.
        warps: warps of a program on the way forward.
        warps_back: the same on the way back.
        reason: why this one.
    """

    name: str
    units: int
    sequences: int
    warps: int
    warps_back: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name}, {self.units} units x {self.sequences} sequences: {self.reason}"


@dataclass(frozen=True)
class Machine:
    """What a device has of what the kernels need."""

    processors: int
    shared_memory: int

    @classmethod
    def of(cls, device: torch.device) -> Machine:
        """A device's own; a CPU, where kernels are interpreted, is taken for an H100."""
        if device.type != "cuda":
            return cls(_PROCESSORS, _SHARED_MEMORY)
        return _machine(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _machine(index: int) -> Machine:
    found = torch.cuda.get_device_properties(index)
    shared: int = getattr(found, "shared_memory_per_block_optin", _SHARED_MEMORY)
    return Machine(found.multi_processor_count, shared)


def choose_form(facts: Facts, *, dtype: torch.dtype, replicas: int, machine: Machine, layers: int = 1) -> Form:
    """The form for a recurrence.

    Args:
        facts: the recurrence.
        dtype: of its weights.
        replicas: how many networks run together.
        machine: the device.
        layers: how many recurrences run side by side, and must have room.
    """
    if dtype == torch.float64:
        return step_form(facts, "float64 has no fast products of tiles")
    if facts.masks_product:
        return step_form(facts, "masks on the product need it apart from the input term")
    solo = _solo(facts, dtype, machine)
    if solo is not None:
        return solo
    if facts.two_products:
        return step_form(facts, "the weights do not fit into one program, and the cell needs two products a step")
    team = _team(facts, dtype, replicas, machine, layers)
    if team is not None:
        return team
    return step_form(facts, "the weights do not fit into the programs' memory all at once")


def step_form(facts: Facts, reason: str) -> Form:
    """The form that runs everything; with centroids a program has a whole row."""
    units = max(16, _power(facts.hidden))
    if any(isinstance(transform, Centroids) for transform, _ in facts.chain):
        return Form("step", units, 1, 8 if units >= 1024 else 4, 8 if units >= 1024 else 4, reason)
    units = min(units, 128)
    return Form("step", units, max(1, 512 // units), 4, 4, reason)


def _solo(facts: Facts, dtype: torch.dtype, machine: Machine) -> Form | None:
    units = max(16, _power(facts.hidden))
    bytes_ = PLANES[facts.kind] * units * units * dtype.itemsize
    sequences = 16
    if bytes_ + units * sequences * 16 > machine.shared_memory or units > 256:
        return None
    warps = 8 if units >= 64 else 4
    return Form("solo", units, sequences, warps, warps, "the weights fit into one program")


def _team(facts: Facts, dtype: torch.dtype, replicas: int, machine: Machine, layers: int) -> Form | None:
    hidden, planes = rounded(facts.hidden, 16), PLANES[facts.kind]
    batch = facts.layout.batch
    for units in (64, 32, 16):
        members = -(-hidden // units)
        for sequences in (16, 32, 64):
            programs = members * -(-batch // sequences) * replicas * layers
            memory = planes * units * hidden * dtype.itemsize + min(hidden, 512) * sequences * dtype.itemsize
            if programs <= machine.processors and memory <= machine.shared_memory - 4096:
                return Form("team", units, sequences, 8, 8, f"{members} programs hold the weights together")
    return None


def with_tiles(form: Form, *, units: int, sequences: int, warps: int, warps_back: int) -> Form:
    """The same form with other tiles, as measured."""
    return replace(form, units=units, sequences=sequences, warps=warps, warps_back=warps_back, reason="measured")


def _power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()


def form_of(call: Recurrence, together: int) -> Form:
    """The form for a recurrence of which ``together`` run side by side."""
    weight = call.weight_hh
    facts, _ = split(call, chained=False)
    return choose_form(facts, dtype=weight.dtype, replicas=1, machine=Machine.of(weight.device), layers=together)


def chunk_of(calls: list[Recurrence], forms: list[Form]) -> int:
    """How many steps of a layer are done before the layer above may begin with them."""
    turns = calls[0].layout.steps
    return max(1, turns // 5) if turns <= 64 else 25
