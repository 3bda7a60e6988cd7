"""The kernels compile for a device, which the interpreter cannot tell: it runs what Triton's compiler refuses.

In a process of its own, since Triton is told once whether it interprets. No device is needed: every launch that a layer
would make is compiled for compute capability 9.0 instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from statewise.kernels import load_triton

KERNELS = {
    *("begin", "finish", "solo_forward", "solo_backward", "team_forward", "team_backward"),
    *("step_forward", "step_backward", "step_gates", "step_gates_back"),
}

QUICK = (1, 2, 4, 6, 7)  # of the cases below: together they launch every kernel

SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import statewise
from statewise import Centroids, Noise, Pairing, RecurrentDropout, ThroughTimeMix, Zoneout
from statewise.engine import plan
from statewise.engine.device import walk
from statewise.kernels import launch, pack
from statewise.kernels.status import TritonStatus

class Pretended(TritonStatus):
    device = "cpu"

for room in (plan, walk):
    room.load_triton = lambda: Pretended(available=True)
pack.move = lambda source, target: target.zero_()
names = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float64: "*fp64",
         torch.int32: "*i32", torch.int64: "*i64"}

def kind(value):
    if isinstance(value, tuple):
        return tuple(map(kind, value))
    return names[value.dtype] if isinstance(value, torch.Tensor) else "i32"

def compile(self, grid, *arguments):
    kernel, constants = self._kernel, dict(self._constants)
    known = dict(zip(kernel.arg_names, map(kind, arguments)))
    fixed = {name: constants.pop(name) for name in kernel.arg_names[len(arguments):]}
    constants.pop("launch_cooperative_grid", None)
    source = ASTSource(kernel, {**known, **dict.fromkeys(fixed, "constexpr")}, fixed)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=constants)
    assert made.metadata.shared <= 232448, (kernel.__name__, made.metadata.shared)
    print("compiled", kernel.__name__)

launch.Launcher.__call__ = compile
noise, bf16 = Noise("gaussian", 0.1, placement="recurrent"), torch.bfloat16
hard = Centroids(10, similarity="euclidean", transition="gumbel_hard")
everything = [RecurrentDropout(0.2), noise, Zoneout(0.1, memory=0.2), hard]
products = RecurrentDropout(0.2, mask_on="projection", share_gates=False)
cases = [
    (statewise.LSTM, 650, bf16, noise),
    (statewise.GRU, 300, bf16, Centroids(10)),
    (statewise.PeepholeLSTM, 260, torch.float32, everything),
    (statewise.LSTM, 128, bf16, everything),
    (statewise.RAC, 33, torch.float32, noise),
    (statewise.MGU, 33, torch.float32, everything),
    (statewise.LSTM, 1500, bf16, Centroids(10)),
    (statewise.MGU, 300, torch.float16, products),
    (statewise.GRU, 7, torch.float64, products),
    (statewise.LSTM, 40, bf16, [ThroughTimeMix(), noise]),
    (statewise.GRU, 200, bf16, [ThroughTimeMix()]),
]
for kind_of, hidden, dtype, transforms in (cases[int(place)] for place in sys.argv[1:]):
    layer = kind_of(8, hidden, dtype=dtype, transforms=transforms, engine="triton")
    mixes = any(isinstance(transform, ThroughTimeMix) for transform in layer.transforms)
    pairing = Pairing(torch.tensor([1, 0, 2]), torch.full((3,), 0.5)) if mixes else None
    layer(torch.zeros(2, 3, 8, dtype=dtype), pairing=pairing)[0].sum().backward()
"""


@pytest.mark.parametrize("cases", [QUICK, pytest.param(range(11), marks=pytest.mark.slow)], ids=["some", "all"])
def test_every_kernel_compiles_for_a_device_and_fits_its_memory(cases: Sequence[int]) -> None:
    pytest.importorskip("triton")
    if not load_triton().available:
        pytest.skip(load_triton().reason)
    place = {"PYTHONPATH": str(Path(__file__).parents[2])}
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"} | place
    command = [sys.executable, "-c", SCRIPT, *map(str, cases)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert {line.split()[1] for line in ran.stdout.splitlines()} == KERNELS
