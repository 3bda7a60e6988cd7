"""Which kernel runs a recurrence, with which tiles, and why: a small table, made longer by measuring."""

from __future__ import annotations

from itertools import product

import torch

from statewise.cells import MGUCell, ResetBeforeGRUCell
from statewise.engine.device.form import Form, Machine, power_of_two, rounded
from statewise.engine.device.precision import tf32_allowed
from statewise.engine.device.tuning import look_up, tried
from statewise.engine.operands import CELLS, Facts, facts_of
from statewise.engine.recurrence import Recurrence
from statewise.kernels.codes import PLANES
from statewise.transforms import Centroids, Noise, Zoneout

_TRANSFORMS = (Noise, Zoneout, Centroids)
_TILE = 2**18  # so many numbers, both sizes rounded up to powers of two, are at most the 2**20 that Triton allows
_SCRATCH = 16_384  # bytes that a kernel needs beside its tiles, to move them about


def why_not(call: Recurrence) -> str | None:
    """The reason why no kernel can run a recurrence, or None if one can."""
    if type(call.cell) not in CELLS:
        return f"it has no code for the cell {call.cell.name}"
    if call.mask is not None and not call.mask.on_projection and not call.mask.shared:
        return "it has no code for recurrent dropout with a mask of the state for each gate"
    if call.mixed is not None and type(call.cell) in (MGUCell, ResetBeforeGRUCell):
        return f"it does not mix through time in the cell {call.cell.name}, which needs two products"
    for step in call.chain:
        if type(step.transform) not in _TRANSFORMS:
            return f"it has no code for {type(step.transform).__name__}"
        if isinstance(step.transform, Centroids) and step.transform.k * call.hidden > _TILE:
            return f"{step.transform.k} centroids of {call.hidden} units are more than a program can hold"
    return None


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
    solo = _solo(facts, dtype, replicas, machine, layers)
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
    units = max(16, power_of_two(facts.hidden))
    if any(isinstance(transform, Centroids) for transform, _ in facts.chain):
        return Form("step", units, 1, 8 if units >= 1024 else 4, reason)
    units = min(units, 128)
    return Form("step", units, max(1, 512 // units), 4, reason)


def _solo(facts: Facts, dtype: torch.dtype, replicas: int, machine: Machine, layers: int) -> Form | None:
    units = max(16, power_of_two(facts.hidden))
    bytes_ = PLANES[facts.kind] * units * units * dtype.itemsize
    # Few sequences a program make each step short; where there are more programs than processors that gains nothing.
    few = -(-facts.layout.batch // 8) * replicas * layers <= machine.processors
    sequences = 8 if few else 16
    if bytes_ + units * 16 * 16 + _centroid_bytes(facts, units, dtype) > machine.shared_memory or units > 256:
        return None
    warps = 8 if units >= 128 or _centroid_rows(facts) >= 128 else 4
    return Form("solo", units, sequences, warps, "the weights fit into one program")


def _team(facts: Facts, dtype: torch.dtype, replicas: int, machine: Machine, layers: int) -> Form | None:
    centroids = sum(isinstance(transform, Centroids) for transform, _ in facts.chain)
    if centroids > 1:
        return None  # their similarities would meet in one place
    if dtype == torch.float32 and PLANES[facts.kind] == 1 and not tf32_allowed():
        return None  # Triton 3.6 aborts when it compiles such narrow products in full precision
    # With centroids a team meets twice a step, and fewer warps meet sooner.
    medium = 4 if centroids else 8
    for units, sequences, warps in ((16, 16, 4), (32, 16, medium), (32, 32, 8), (16, 32, 4), (64, 16, 8), (64, 32, 8)):
        members, programs, memory = _needs(facts, dtype, units, sequences)
        warps = warps if _sound(facts, dtype, units, warps) else 8
        if not _sound(facts, dtype, units, warps):
            continue
        # A launch must have all its programs at once. That the layers side by side have them too is not needed, but
        # what waits for room does not run side by side.
        if programs * replicas > machine.processors or programs * replicas * layers > 1.1 * machine.processors:
            continue
        if memory <= machine.shared_memory - _SCRATCH:
            return Form("team", units, sequences, warps, f"{members} programs hold the weights together")
    return None


def _sound(facts: Facts, dtype: torch.dtype, units: int, warps: int) -> bool:
    """Whether the compiler makes right code for a team, of the products with a tile of centroids.

    Triton 3.6 does not where the tile has 128 rows: by 4 warps the states were wrong, or memory beyond the tile was
    read, in TF32 for 16 units and in bfloat16 for 32 and 64; by 8 warps only in TF32 for 16 units, in a GRU. More rows
    are left out for caution, and so is full precision, which a switch of torch turns into TF32.
    """
    return _centroid_rows(facts) < 128 or (warps > 4 and (units > 16 or dtype.itemsize == 2))


def _needs(facts: Facts, dtype: torch.dtype, units: int, sequences: int) -> tuple[int, int, int]:
    """The members of a team, the programs of all teams, and the bytes of shared memory of each."""
    hidden = rounded(facts.hidden, 16)
    members = -(-hidden // units)
    # States of four bytes come in pieces of 128, those of two all at once.
    piece = hidden if dtype.itemsize == 2 else min(hidden, 128)
    memory = (PLANES[facts.kind] * units * hidden + piece * sequences) * dtype.itemsize
    memory += _centroid_bytes(facts, units, dtype)
    return members, members * -(-facts.layout.batch // sequences), memory


def _centroid_bytes(facts: Facts, units: int, dtype: torch.dtype) -> int:
    """The bytes of the centroids' tile, where it is more than the scratch that every kernel has."""
    return max(0, _centroid_rows(facts) * units * dtype.itemsize * 2 - _SCRATCH)


def _centroid_rows(facts: Facts) -> int:
    """The rows of the centroids' tile; 0 without centroids."""
    sizes = [max(16, power_of_two(transform.k)) for transform, _ in facts.chain if isinstance(transform, Centroids)]
    return max(sizes, default=0)


def form_of(call: Recurrence, together: int) -> Form:
    """The form for a recurrence of which ``together`` run side by side: as measured on this device, or by the table."""
    weight = call.weight_hh
    facts = facts_of(call)
    trial, machine = tried(), Machine.of(weight.device)
    if trial is not None:
        return trial
    measured = look_up(facts, dtype=weight.dtype, device=weight.device, layers=together)
    # A batch of the same power of two may need more programs than the device has.
    if measured is not None and measured in candidates(facts, dtype=weight.dtype, machine=machine):
        return measured
    return choose_form(facts, dtype=weight.dtype, replicas=1, machine=machine, layers=together)


def candidates(facts: Facts, *, dtype: torch.dtype, machine: Machine) -> list[Form]:
    """All forms that can run a recurrence, for measuring which is the fastest."""
    found = [step_form(facts, "measured")]
    if dtype == torch.float64 or facts.masks_product:
        return found
    solo = _solo(facts, dtype, 1, machine, 1)
    if solo is not None:
        sizes = [(8, 4), (8, 8), (16, 4), (16, 8)]
        found += [
            Form("solo", solo.units, sequences, warps, "measured")
            for sequences, warps in sizes
            if warps > 4 or _centroid_rows(facts) < 128
        ]
    for units, sequences, warps in product((16, 32, 64), (16, 32), (4, 8)):
        _, programs, memory = _needs(facts, dtype, units, sequences)
        fits = programs <= machine.processors and memory <= machine.shared_memory - _SCRATCH
        fits = fits and sum(isinstance(transform, Centroids) for transform, _ in facts.chain) <= 1
        fits = fits and _sound(facts, dtype, units, warps)
        if fits and not facts.two_products and units <= facts.hidden:
            found.append(Form("team", units, sequences, warps, "measured"))
    return found


def chunk_of(turns: int) -> int:
    """How many of all steps of a layer are done before the layer above may begin with them."""
    # A chunk costs a launch or two, so a short sequence has few; in a long one the first and the last hardly count.
    return max(1, -(-turns // 4)) if turns <= 140 else 35
