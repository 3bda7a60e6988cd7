"""The CPU kernel as Python sees it: the library, its structures, and memory for its results.

The library was compiled when the package was built (:mod:`statewise.native.build`); nothing is compiled or written when
it is used. Nothing here raises when it is missing: the plain loop serves, only slower. ``STATEWISE_NATIVE=0`` turns it
off.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from statewise.errors import EngineError
from statewise.native.build import FOLDER, LIBRARY, NOT_BUILT, fingerprint, sources_of

VERSION = 1  # SW_VERSION in interface.h
_INSTEAD = "the plain loop serves instead"
_AGAIN = "install statewise from its source again, in a clone by `pip install --no-deps --force-reinstall .`"
_LEAST_KEPT, _MOST_KEPT, _LEAST_HUGE = 2**18, 2**26, 2**23
_DTYPES = {torch.float32: 0, torch.float64: 1}


class Array(ctypes.Structure):
    """sw_array: where numbers begin, and how far replicas lie apart."""

    _fields_ = (("data", ctypes.c_void_p), ("stride", ctypes.c_int64))


def _structure(name: str, **kinds: str) -> type[ctypes.Structure]:
    """A structure of interface.h, from the names of its fields in order and a letter for the kind of each group."""
    letters = {"i": ctypes.c_int64, "p": ctypes.c_void_p, "a": Array, "d": ctypes.c_double, "s": ctypes.c_double * 6}
    fields = [(field, letters[group[0]]) for group, names in kinds.items() for field in names.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields, "__doc__": f"sw_{name.lower()} of interface.h."})


Recurrence = _structure(
    "Recurrence",
    i1="dtype threads cell activation replicas rows batch hidden input steps",
    p1="batch_sizes",
    i2="reverse start_at_one mask_constant coefficients_constant memory_changes keep transforms",
    p2="integers numbers",
    i3="array_count",
    p3="arrays",
    a1="inputs given weight_ih bias weight_hh apart_bias extra initial_state initial_memory mask second_given",
    a4="coefficients",
    a2="states state memory term memories cell_memories apart gated second grad_states grad_state grad_memory",
    a3="grad_inputs grad_given grad_second grad_weight_ih grad_weight_hh grad_bias grad_extra",
)
Crf = _structure(
    "Crf",
    i1="dtype threads steps batch tags every",
    p1="lengths path emissions transitions start end incoming weights pair_weights row_weights row_sums logged out",
    p2="grad_emissions grad_transitions grad_start grad_end",
)
Readout = _structure(
    "Readout",
    i1="dtype threads replicas rows width classes",
    a1="states weight bias targets",
    p1="losses",
    a2="grad_states grad_weight grad_bias",
)
Fill = _structure("Fill", i1="threads steps size seed kind bound", d1="scale shift", s1="shapes", p1="out")
Product = _structure("Product", i1="dtype threads rows inner columns transpose turned", p1="from_ weight bias to")
Deal = _structure(
    "Deal",
    i1="dtype threads rows pairs width",
    p1="first second term blank to_first to_second grad_first grad_second grad_term grad_blank",
)
_STRUCTURES = (Recurrence, Crf, Readout, Fill, Product, Deal)


@dataclass(frozen=True, kw_only=True)
class NativeStatus:
    """Whether the CPU kernel is loaded and, when not, why and what to do about it.

    Args:
        available: whether it can be called.
        reason: a sentence for the user; empty when available.
        binary: the compiled library.
        instruction_set: the one it runs on: avx512, avx2 or neon.

    >>> bool(NativeStatus(available=False, reason="it was not built"))
    False
    """

    available: bool
    reason: str = ""
    binary: Path | None = None
    instruction_set: str = ""

    def __bool__(self) -> bool:
        return self.available


def load(binary: Path, environ: Mapping[str, str] = os.environ) -> tuple[NativeStatus, Any]:
    """Load a compiled kernel, and say whether it can run here.

    Args:
        binary: the library.
        environ: where ``STATEWISE_NATIVE`` is looked up.

    Returns:
        The status, and the library, None if it is not available.
    """
    remedy = ""
    library: Any = None
    if environ.get("STATEWISE_NATIVE") == "0":
        reason, remedy = "switched off by STATEWISE_NATIVE=0", "unset it to use the CPU kernel"
    elif not binary.exists():
        reason = "the CPU kernel was not built when statewise was installed"
        why = binary.with_name(NOT_BUILT)
        if why.exists():
            reason += f" ({_first_line(why.read_text(encoding='utf-8')).rstrip('.:')}; more in {why})"
        remedy = f"where there is a C++ compiler, {_AGAIN}"
        if sys.platform == "win32":
            reason, remedy = "there is no CPU kernel for Windows", "use WSL, where there is one"
    else:
        try:
            library = ctypes.CDLL(str(binary))
            reason = _why_not(library)
        except OSError as error:
            # The system's own words are often that there is no such file, where it means another processor's.
            reason = f"the CPU kernel cannot be loaded on this {platform.machine()} machine: it is damaged, or for "
            reason += f"another processor, or lacks another library ({_first_line(str(error))})"
        remedy = _AGAIN
        if library is not None and reason.startswith("this processor"):
            remedy = "nothing is to be done"
    if reason:
        return NativeStatus(available=False, reason=f"{reason}: {remedy}; {_INSTEAD}", binary=binary), None
    _share_threads(library)
    name = ctypes.string_at(library.sw_instruction_set()).decode()
    return NativeStatus(available=True, binary=binary, instruction_set=name), library


def _why_not(library: Any) -> str:
    """The reason why a library that was loaded cannot serve; empty if it can."""
    try:
        library.sw_instruction_set_at.restype = library.sw_instruction_set.restype = ctypes.c_void_p
        library.sw_take.restype = ctypes.c_void_p
        library.sw_give.argtypes = library.sw_huge_pages.argtypes = (ctypes.c_void_p, ctypes.c_int64)
        sizes = (ctypes.c_int64 * len(_STRUCTURES))()
        if library.sw_version() == VERSION:  # another version may have more sizes than there is memory for here
            library.sw_sizes(sizes)
        fits = list(sizes) == [ctypes.sizeof(each) for each in _STRUCTURES]
    except AttributeError:  # a function is missing
        fits = False
    if not fits:
        return "the CPU kernel is of another version of statewise"
    if fingerprint() not in ("", sources_of(library)):
        return "the CPU kernel was made of other sources than those beside it, which have changed since"
    if not library.sw_instruction_set_at(ctypes.c_int64(0)):
        return "this processor has none of the instruction sets for which the CPU kernel is built (AVX2, AVX-512)"
    return ""


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]


def instruction_sets() -> list[str]:
    """The instruction sets of the kernel that this processor has, best first."""
    library = native()
    names: list[str] = []
    while name := library.sw_instruction_set_at(ctypes.c_int64(len(names))):
        names.append(ctypes.string_at(name).decode())
    return names


def _share_threads(library: Any) -> None:
    """Run on the threads of torch's own OpenMP, which are awake already and spin beside any others."""
    folder = Path(torch.__file__).parent
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_in_parallel")
    patterns = ("lib/libgomp*.so*", "lib/libiomp5*.so*", "lib/libomp*", "../torch.libs/libgomp*.so*")
    # Last what the process has loaded for all, as torch does with the OpenMP of a distribution.
    for path in [*(str(path) for pattern in patterns for path in sorted(folder.glob(pattern))), None]:
        try:
            openmp = ctypes.CDLL(path)
            library.sw_use_openmp(*(ctypes.cast(getattr(openmp, name), ctypes.c_void_p) for name in names))
        except (OSError, AttributeError):
            continue
        return


# Loaded when this module is imported: torch's compiler, which looks into functions, must not meet the loading itself.
_STATUS, _LIBRARY = load(FOLDER / LIBRARY)


def load_native() -> NativeStatus:
    """Whether the kernel was loaded; the same answer each time."""
    return _STATUS


def native() -> Any:
    """The loaded library.

    Raises:
        EngineError: if it is not available, as :func:`load_native` says; so for a graph that was exported elsewhere.
    """
    if _LIBRARY is None:
        raise EngineError(
            where="statewise cpu engine",
            got=f"a call of the CPU kernel, where {_STATUS.reason.rpartition(';')[0]}",
            wanted="a machine with the kernel",
            remedy="Export or compile the model where it was built with engine='reference'.",
        )
    return _LIBRARY


def run(name: str, call: ctypes.Structure) -> None:
    """Call a function of the library, which takes one structure.

    Raises:
        MemoryError: if the kernel had too little memory for its own buffers.
    """
    if getattr(native(), name)(ctypes.byref(call)) != 0:
        raise MemoryError(f"{name} did not run: too little memory, or a number that names nothing it knows.")


def dtype_code(dtype: torch.dtype) -> int:
    """The number by which the kernel knows a dtype."""
    return _DTYPES[dtype]


def pointer(tensor: Tensor | None) -> int | None:
    """Where the numbers of a tensor begin; None if there is none, or it has none.

    Raises:
        EngineError: if a tensor keeps its numbers elsewhere, as some subclasses do.
    """
    if tensor is None or not tensor.numel():
        return None
    try:
        address = tensor.data_ptr()
    except RuntimeError:  # it stands for several, as under vmap
        address = 0
    if not address or tensor.is_neg():
        raise EngineError(
            where="statewise cpu engine",
            got=f"a {type(tensor).__name__} without memory of its own",
            wanted="one whose numbers are in memory as they are",
            remedy="Build the layer or the head with engine='reference'.",
        )
    return address


def unfilled(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A tensor for what no user changes, in memory that may have been used by an earlier one."""
    bytes_ = math.prod(shape) * like.element_size()
    if not _LEAST_KEPT <= bytes_ <= _MOST_KEPT:
        return roomy(shape, like)
    library, size = native(), ctypes.c_int64(bytes_)
    memory = library.sw_take(ctypes.byref(size))
    if memory is None:
        raise MemoryError(f"The CPU kernel found no memory for a tensor of shape {shape}.")
    block = (ctypes.c_char * bytes_).from_address(memory)
    # The tensor keeps the block, and the block gives its memory back when the tensor is gone.
    weakref.finalize(block, library.sw_give, memory, size.value).atexit = False
    return torch.frombuffer(block, dtype=like.dtype).view(shape)


def roomy(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A tensor for what users see.

    A very big one comes from the system anew each time, page by page, which may take longer than all that is computed
    into it; so the system is asked for huge pages.
    """
    made = like.new_empty(shape)
    if made.nbytes >= _LEAST_HUGE:
        native().sw_huge_pages(made.data_ptr(), made.nbytes)
    return made
