"""What a newcomer gives by mistake, as it is met without the checks of annotations that tests have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Prints what each call says. python-flint cannot be imported, as where the extra is missing.
SCRIPT = """
import json, sys
sys.modules["flint"] = None
import numpy as np, torch, statewise
from statewise.errors import StatewiseError
from statewise.memory import *
from statewise.memory.rank_table import rank_table
circuit, ones = drawn_circuit(inputs=2, width=3, depth=2), torch.ones(3)
told = {}
for call in json.load(sys.stdin):
    try:
        told[call] = repr(eval(call))
    except StatewiseError as error:
        told[call] = f"{type(error).__name__} {error}"
    except Exception as error:
        told[call] = f"bare {type(error).__name__} {error}"
print(json.dumps(told))
"""
OTHER = "wanted a recurrent arithmetic circuit: statewise.RAC, whose cells multiply"
REMEDY = "separation_spectrum(network, templates, steps, readout=...)"
SIZES = "a whole number of at least 1."
RANK = "generic_rank(inputs=3, width=3, steps=6, depth=2{})"

#: Calls, and what must be in what they say.
CALLS: dict[str, tuple[str, ...]] = {
    "Circuit.of(statewise.GRU(2, 3), ones)": ("GRU with gates of sigmoid and tanh", OTHER, REMEDY),
    "Circuit.of(statewise.LSTM(2, 3), ones)": ("LSTM with gates of sigmoid and tanh", OTHER, REMEDY),
    "Circuit.of(torch.nn.GRU(2, 3, bias=False), ones)": ("torch.nn.modules.rnn.GRU with gates", OTHER, REMEDY),
    "Circuit.of(statewise.RNN(2, 3, bias=False), ones)": ("RNN with tanh", OTHER, REMEDY),
    "Circuit.of(torch.nn.Linear(2, 3), ones)": ("Linear, wanted", OTHER, REMEDY),
    "Circuit.of(None, ones)": ("NoneType", OTHER),
    "Circuit.of(statewise.RAC(2, 3), [1, 2, 3])": ("Circuit.of.readout: got list, wanted a tensor",),
    "network_rank(statewise.GRU(2, 3), steps=4)": ("network_rank.circuit: got statewise", OTHER, REMEDY),
    "network_rank(torch.nn.LSTM(2, 3), steps=4)": ("network_rank.circuit: got torch", OTHER, REMEDY),
    "network_rank(statewise.RAC(2, 3), steps=4)": ("RAC layer without a readout", "Circuit.of(layer, readout)"),
    "network_profile(statewise.GRU(2, 3), steps=4)": ("network_profile.circuit", OTHER),
    "spectral_profile(statewise.GRU(2, 3), steps=4)": ("spectral_profile.circuit", OTHER),
    "exact_table(statewise.GRU(2, 3), steps=4)": ("exact_table.circuit", OTHER),
    "tensor_train(statewise.GRU(2, 3), steps=4)": ("tensor_train.circuit", OTHER),
    "shallow_spectrum(statewise.GRU(2, 3), steps=4)": ("shallow_spectrum.circuit", OTHER),
    "scaled_scores(statewise.GRU(2, 3), torch.ones(4, 1, 2))": ("scaled_scores.layer", OTHER),
    "scaled_scores(statewise.RAC(2, 3), torch.ones(4, 1, 5))": ("ShapeError", "(steps, batch, 2 features)"),
    "circuit_tensors(torch.nn.GRU(2, 2), torch.ones(2, 2), torch.ones(1, 2))": ("circuit_tensors.layer", OTHER),
    "not_cloned(torch.ones(2, 3))": ("ShapeError", "wanted (n, n, n)"),
    "network_rank(circuit, steps=4.0)": ("network_rank.steps: got 4.0", SIZES),
    "network_rank(circuit, steps=4, split=1.5)": ("network_rank.split: got 1.5", "from 0 to 4"),
    "generic_rank(inputs=2.0, width=3, steps=4, depth=2)": ("generic_rank.inputs: got 2.0", SIZES),
    "generic_rank(inputs='2', width=3, steps=4, depth=2)": ("generic_rank.inputs: got 2", SIZES),
    "generic_rank(inputs=True, width=3, steps=4, depth=2)": ("generic_rank.inputs: got True", SIZES),
    "generic_rank(inputs=2, width=3, steps=4, depth=2, runs=1.5)": ("generic_rank.runs: got 1.5", SIZES),
    "generic_rank(inputs=2, width=3, steps=4, depth=2, primes=2**31 - 1)": ("Write [2147483647]",),
    "generic_profile(inputs=2, width=3, steps=4.0, depth=2)": ("generic_profile.steps: got 4.0", SIZES),
    "sampled_rank(inputs=2, width=3, steps=4, depth=2, samples=2.5)": ("sampled_rank.samples: got 2.5", "1 to 8192"),
    "advise(budget=1000.5, steps=4, inputs=3)": ("advise.budget: got 1000.5", SIZES),
    "advise(budget=1000, steps=4, inputs=3, depths=2)": ("advise.depths: got 2, wanted a list",),
    "advise(budget=1000, steps=4, inputs=2.5)": ("advise.inputs: got 2.5", "at least 2"),
    "width_within(budget=9.5, inputs=1, classes=1, depth=1)": ("budget: got 9.5", SIZES),
    "theorem1(M=2.5, R=2, T=4, L=2)": ("theorem1.M: got 2.5", SIZES),
    "multiset(2.5, 2)": ("multiset.n: got 2.5",),
    "rank_table([(2, 2)], depth=2)": ("rank_table.shapes: got (2, 2), wanted (M, R, T)",),
    "rank_table([(2, 2.0, 4)], depth=2)": ("rank_table.shapes: got (2, 2.0, 4), wanted (M, R, T)",),
    "drawn_circuit(inputs=1.5, width=1, depth=1)": ("drawn_circuit.inputs: got 1.5", SIZES),
    "Field('a')": ("Field.prime: got a, wanted a whole number",),
    # Whole numbers of numpy are taken, and do not begin again beyond 64 bits.
    "end_cap(M=np.int64(3), R=np.int64(3), T=np.int64(100), L=np.int64(2)) == 3**50": ("True",),
    "theorem1(M=np.int64(4), R=np.int64(39), T=np.int64(200), L=1)": ("39",),
    "generic_rank(inputs=np.int64(4), width=3, steps=np.int64(64), depth=2)": ("4^32 x 4^32 entries",),
    # Without the extra.
    f"{RANK.format('')}.rank": ("27",),
    RANK.format(", backend='flint'"): ("MissingExtraError", "pip install 'statewise[exact]'"),
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(list(CALLS)),
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    told: dict[str, str] = json.loads(process.stdout)
    return told


@pytest.mark.parametrize("call", list(CALLS))
def test_what_is_wrong_is_said(said: dict[str, str], call: str) -> None:
    assert not said[call].startswith("bare ")
    for words in CALLS[call]:
        assert words in said[call]
