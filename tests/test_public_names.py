"""The face of the library: what can be imported, that it is documented, and that importing it costs nothing."""

from __future__ import annotations

import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import statewise
from statewise import (
    analysis,
    automata,
    bounds,
    cells,
    data,
    engine,
    errors,
    heads,
    layers,
    lineup,
    memory,
    mixup,
    models,
    objectives,
    sharing,
    sweep,
    train,
    transforms,
    weights,
)

ROOMS = [
    statewise,
    cells,
    transforms,
    weights,
    engine,
    layers,
    heads,
    analysis,
    mixup,
    objectives,
    models,
    automata,
    bounds,
    memory,
    data,
    train,
    sharing,
    sweep,
    lineup,
]
EVERY_ROOM = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
ROOT = Path(statewise.__file__).parents[1]


def fault_of_docstring(name: str, thing: Any) -> str | None:
    """What is wrong with the docstring of a public name, if anything is."""
    if isinstance(thing, tuple | dict):  # a list of choices, documented where they are made
        return None if all(isinstance(word, str) for word in thing) else "it has a choice that is no word"
    text = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    if not text:
        return "it has no docstring"
    if text.startswith(f"{name}("):
        return "a dataclass without a docstring gets its signature as one"
    first = text.strip().split("\n\n")[0]
    return None if first.endswith((".", ":")) else f"the first sentence does not end: {first!r}"


def test_a_missing_docstring_and_an_unfinished_sentence_are_faults() -> None:
    assert fault_of_docstring("f", lambda: None) == "it has no docstring"
    assert "does not end" in str(fault_of_docstring("Odd", type("Odd", (), {"__doc__": "A thing"})))
    assert "signature" in str(fault_of_docstring("Odd", type("Odd", (), {"__doc__": "Odd(a: int)"})))
    assert fault_of_docstring("CHOICES", ("a", 1)) is not None


class TestNames:
    @EVERY_ROOM
    def test_a_list_of_names_has_no_name_twice(self, room: ModuleType) -> None:
        assert len(set(room.__all__)) == len(room.__all__)

    @EVERY_ROOM
    def test_every_name_in_the_list_exists(self, room: ModuleType) -> None:
        assert [name for name in room.__all__ if not hasattr(room, name)] == []

    @EVERY_ROOM
    def test_what_has_a_name_has_a_docstring_of_its_own(self, room: ModuleType) -> None:
        found = {name: fault_of_docstring(name, getattr(room, name)) for name in room.__all__}
        assert {name: fault for name, fault in found.items() if fault} == {}

    @EVERY_ROOM
    def test_public_methods_are_documented_where_they_are_or_at_the_base(self, room: ModuleType) -> None:
        for name in room.__all__:
            thing = getattr(room, name)
            for method, found in vars(thing).items() if isinstance(thing, type) else ():
                if isinstance(found, FunctionType) and not method.startswith("_"):
                    assert inspect.getdoc(getattr(thing, method)), f"{name}.{method}"

    @EVERY_ROOM
    def test_no_other_public_name_leaks(self, room: ModuleType) -> None:
        """Modules of the package itself are there because they were imported; all else must be meant."""
        inside = {module.name for module in pkgutil.iter_modules(room.__path__)}
        leaked = {
            name
            for name, value in vars(room).items()
            if not name.startswith("_")
            and name not in room.__all__
            and not (isinstance(value, ModuleType) and name in inside)
            and name not in ("TYPE_CHECKING", "lazy_imports")  # by which names are imported late; `dir` shows neither
        }
        assert not leaked

    def test_every_error_is_within_reach(self) -> None:
        assert statewise.errors is errors
        assert all(hasattr(errors, name) for name in ("StatewiseError", "ArgumentError", "EngineError"))

    def test_every_layer_and_transform_is_at_the_top(self) -> None:
        for room, base in ((layers, nn.Module), (transforms, transforms.Transform)):
            for name in room.__all__:
                thing = getattr(room, name)
                abstract = inspect.isabstract(thing) or thing in (layers.SingleStep,)
                if isinstance(thing, type) and issubclass(thing, base) and not abstract:
                    assert getattr(statewise, name) is thing

    def test_a_star_import_brings_the_list(self) -> None:
        space: dict[str, Any] = {}
        exec("from statewise import *", space)
        assert space.keys() - {"__builtins__"} == set(statewise.__all__)

    def test_the_version_is_a_version(self) -> None:
        assert all(part.isdigit() for part in statewise.__version__.split(".")[:2])


OPTIONAL = {
    *("aalpy", "automata", "flint", "ray", "optuna", "matplotlib", "fastapi", "uvicorn", "datasets", "tensorboard"),
    *("huggingface_hub", "sphinx", "pytest", "hypothesis", "beartype", "setuptools", "triton", "pandas"),
}

PROGRAM = f"""
import sys, torch
import torch._dynamo  # torch's compiler, of which the layers are told; it looks for packages on its own account

class Watch:
    asked = set()

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            self.asked.add(name)

random, dtype, threads = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads()
sys.meta_path.insert(0, Watch())
import statewise
assert "statewise.native.library" not in sys.modules, "the kernel was loaded before anything asked for it"
layer = statewise.LSTM(3, 5, transforms=statewise.Noise("gaussian", 0.5), generator=torch.Generator())
assert not Watch.asked, f"imported {{sorted(Watch.asked)}}"
assert torch.equal(torch.get_rng_state(), random), "the global generator was used"
assert (torch.get_default_dtype(), torch.get_num_threads()) == (dtype, threads)
assert "torch.utils.cpp_extension" not in sys.modules
"""


def run(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, where no test has imported anything yet."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_importing_imports_no_extra_compiles_nothing_and_changes_nothing(tmp_path: Path) -> None:
    ran = run(PROGRAM, STATEWISE_CACHE=str(tmp_path / "cache"))
    assert ran.returncode == 0, ran.stderr
    assert (ran.stdout, ran.stderr) == ("", "")
    assert not (tmp_path / "cache").exists()


SIZES = (3, 5)
TORCHS: list[tuple[Any, Any, tuple[Any, ...]]] = [
    (statewise.RNN, nn.RNN, (*SIZES, 2, "relu", False, True, 0.0, True)),
    (statewise.GRU, nn.GRU, (*SIZES, 2, False, True, 0.0, True)),
    (statewise.LSTM, nn.LSTM, (*SIZES, 2, False, True, 0.0, True, 0, "cpu", torch.float64)),
    (statewise.RNNCell, nn.RNNCell, (*SIZES, False, "relu", "cpu", torch.float64)),
    (statewise.GRUCell, nn.GRUCell, (*SIZES, False, "cpu", torch.float64)),
    (statewise.LSTMCell, nn.LSTMCell, (*SIZES, False, "cpu", torch.float64)),
]


class TestTorchsArguments:
    @pytest.mark.parametrize(("ours", "torchs", "positions"), TORCHS, ids=[ours.__name__ for ours, *_ in TORCHS])
    def test_positions_mean_what_they_mean_in_torch(self, ours: Any, torchs: Any, positions: tuple[Any, ...]) -> None:
        for count in range(2, len(positions) + 1):
            old, new = torchs(*positions[:count]), ours(*positions[:count])
            new.load_state_dict(old.state_dict())
            x = torch.randn(4, 3, dtype=next(old.parameters()).dtype)
            torch.testing.assert_close(new(x), old(x))

    @pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell"])
    def test_keywords_mean_what_they_mean_in_torch(self, kind: str) -> None:
        options: dict[str, Any] = {"input_size": 3, "hidden_size": 5, "bias": False, "device": "cpu"}
        options |= {"dtype": torch.float64}
        if "RNN" in kind:
            options |= {"nonlinearity": "relu"}
        if "Cell" not in kind:
            options |= {"num_layers": 2, "batch_first": True, "dropout": 0.0, "bidirectional": True}
        old, new = getattr(nn, kind)(**options), getattr(statewise, kind)(**options)
        new.load_state_dict(old.state_dict())
        x = torch.randn(4, 3, dtype=torch.float64)
        torch.testing.assert_close(new(x), old(x))

    @pytest.mark.parametrize(
        "kind", ["MGU", "GRU", "RNN", "RAC", "LSTM", "PeepholeLSTM", "OrthogonalRNN", "MultiplicativeRNN", "ConvRNN"]
    )
    def test_a_device_and_a_dtype_can_be_named_everywhere(self, kind: str) -> None:
        layer = getattr(statewise, kind)(5, 3, device="cpu", dtype=torch.float64)
        assert {parameter.dtype for parameter in layer.parameters()} == {torch.float64}
        meta = getattr(statewise, kind)(5, 3, device="meta")
        assert all(parameter.is_meta for parameter in meta.parameters())

    @pytest.mark.parametrize(
        "kind", ["MGUCell", "MultiplicativeRNNCell", "PeepholeLSTMCell", "RACCell", "OrthogonalRNNCell"]
    )
    def test_the_same_holds_for_single_steps(self, kind: str) -> None:
        cell = getattr(statewise, kind)(3, 5, dtype=torch.float64)
        assert {parameter.dtype for parameter in cell.parameters()} == {torch.float64}
        assert all(parameter.is_meta for parameter in getattr(statewise, kind)(3, 5, device="meta").parameters())

    @pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
    def test_forward_takes_torchs_arguments_by_position_and_by_name(self, kind: str) -> None:
        names = list(inspect.signature(getattr(nn, kind).forward).parameters)
        assert list(inspect.signature(getattr(statewise, kind).forward).parameters)[: len(names)] == names

    @pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
    def test_what_can_be_read_off_a_layer_of_torch_can_be_read_off_ours(self, kind: str) -> None:
        old, new = (getattr(room, kind)(3, 5, 2, bidirectional=True) for room in (nn, statewise))
        for name in ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
            assert getattr(new, name) == getattr(old, name)
        assert [[w.shape for w in row] for row in new.all_weights] == [
            [w.shape for w in row] for row in old.all_weights
        ]
        new.flatten_parameters()
