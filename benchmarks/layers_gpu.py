"""Is a regularized recurrent layer of statewise faster on a GPU than cuDNN's plain one?

A training step (forward and backward of a whole stack, inputs as wide as the state, and with gradients) of statewise
WITH multiplicative noise fed back, drawn anew in every pass, or with ten centroids, against the PLAIN layer of cuDNN,
which can do neither. Times are microseconds per time step of the whole stack, in bfloat16 and in float32 with products
in TF32. The columns take turns in one process, each as a CUDA graph unless it says eager. The ratio is that of cuDNN's
better time (eager or in a graph) to the time with noise, and the median over the rounds, so it says little about the
machine and much about the code: 2 is twice as fast. Many small networks trained together by torch.func stand against
one. Peak memory is what one eager training step adds.

    python benchmarks/layers_gpu.py [--only 0 3] [--dtypes bf16] [--rounds 5] [--seed 0] [--json FILE] [--check]

Bars: the ratio as in FASTER; centroids in bfloat16 at most 1.4 times the noise column; 32 networks at most 3 times
one. With --check a missed bar, or a row that failed, makes the exit code 1. Without a CUDA device nothing is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import multiprocessing
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import statewise

Size = tuple[int, int, int, int]  # steps, batch, hidden, layers
Call = Callable[[], None]

DEVICE = "cuda"
DTYPES = {"bf16": torch.bfloat16, "tf32": torch.float32}
SIZES: tuple[Size, ...] = (
    (35, 80, 650, 2),
    (35, 80, 1500, 2),
    (100, 128, 256, 1),
    (784, 128, 256, 1),
    (784, 128, 128, 1),
    (500, 128, 190, 3),
)
GRU_SIZES = (SIZES[0], SIZES[3])
REPLICA_SIZE: Size = (100, 32, 64, 1)
# The columns of the table: a layer, and whether a CUDA graph replays it.
COLUMNS = {
    "cudnn_eager": ("cudnn", False),
    "cudnn": ("cudnn", True),
    "plain": ("plain", True),
    "noise": ("noise", True),
    "centroids": ("centroids", True),
    "noise_eager": ("noise", False),
}
GRU_COLUMNS = ("cudnn", "noise")
REPLICAS = {"many": 32, "one": 1, "autograd": 0}  # networks under vmap; 0 is one network without it

FASTER = {  # least ratio of cuDNN's time to that with noise, for an LSTM
    (SIZES[0], "bf16"): 2.5,
    (SIZES[0], "tf32"): 2.0,
    (SIZES[1], "bf16"): 3.0,
    (SIZES[3], "bf16"): 1.6,
    (SIZES[4], "bf16"): 1.1,
    (SIZES[4], "tf32"): 1.1,
    (SIZES[5], "bf16"): 1.7,
}
CENTROIDS_OVER_NOISE = 1.4
MANY_OVER_ONE = 3.0

MICROSECONDS_A_TURN = 60_000  # how long a column is repeated before the next has its turn
COMPILING_SECONDS = 100


@dataclass
class Training:
    """A layer with what its training step needs."""

    layer: nn.Module
    x: Tensor
    grad: Tensor

    @classmethod
    def of(cls, kind: str, row: str, size: Size, dtype: str) -> Training:
        """The layer of a column, on the device."""
        steps, batch, hidden, layers = size
        x, grad = (torch.randn(steps, batch, hidden, device=DEVICE, dtype=DTYPES[dtype]) for _ in range(2))
        return cls(make(kind, row, hidden, layers, dtype), x.requires_grad_(), grad)

    def clear(self) -> None:
        """Forget all gradients."""
        self.layer.zero_grad(set_to_none=True)
        self.x.grad = None

    def step(self) -> None:
        """One forward and backward pass; the gradients start from nothing each time."""
        self.clear()
        self.layer(self.x)[0].backward(self.grad)


def make(kind: str, row: str, hidden: int, layers: int, dtype: str) -> nn.Module:
    """The layer of a column of the table."""
    options = {"num_layers": layers, "device": DEVICE, "dtype": DTYPES[dtype]}
    if row == "cudnn":
        plain: nn.Module = getattr(nn, kind)(hidden, hidden, **options)
        return plain
    # A small deviation: what is timed is the same at any, and fed-back noise compounds in a GRU.
    noise = statewise.Noise("gaussian", 0.1, placement="recurrent")
    transforms = {"plain": (), "noise": (noise,), "centroids": (statewise.Centroids(10),)}[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", statewise.CompoundingNoiseWarning)
        layer: nn.Module = getattr(statewise, kind)(hidden, hidden, transforms=transforms, **options)
        return layer


def replicas_step(count: int) -> Call:
    """The training step of many networks by torch.func, or with a count of 0 of one by autograd."""
    if count == 0:
        return Training.of("LSTM", "noise", REPLICA_SIZE, "bf16").step
    steps, batch, hidden, layers = REPLICA_SIZE
    networks = [make("LSTM", "noise", hidden, layers, "bf16") for _ in range(count)]
    stacked, _ = torch.func.stack_module_state(networks)
    parameters = {name: tensor.detach() for name, tensor in stacked.items()}
    x = torch.randn(count, steps, batch, hidden, device=DEVICE, dtype=torch.bfloat16)
    grad = torch.randn(steps, batch, hidden, device=DEVICE, dtype=torch.bfloat16)

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        output: Tensor = torch.func.functional_call(networks[0], parameters, (x,))[0]
        return (output * grad).float().sum()

    gradients = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), randomness="different")

    def step() -> None:
        gradients(parameters, x)

    return step


@dataclass
class Replay:
    """A captured step, which is kept because it owns the tensors that the graph reads."""

    step: Call
    graph: torch.cuda.CUDAGraph

    def __call__(self) -> None:
        self.graph.replay()


def graph(step: Call) -> Call:
    """Capture a training step in a CUDA graph, and return what replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step()
    return Replay(step, captured)


def timed(call: Call, repetitions: int) -> float:
    """Median microseconds of a call."""
    call()
    torch.cuda.synchronize()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repetitions)]
    for start, end in events:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    milliseconds: list[float] = [start.elapsed_time(end) for start, end in events]
    return 1e3 * statistics.median(milliseconds)


def time_in_turns(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Microseconds of every call in every round."""
    repetitions = {name: max(3, min(20, int(MICROSECONDS_A_TURN / timed(call, 2)))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call, repetitions[name]))
    return times


def ratio(above: list[float], below: list[float]) -> float | None:
    """The median over the rounds; nothing where one side failed."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True)) if above and below else None


def peak_memory(training: Training) -> float:
    """Mebibytes that one training step adds at its peak."""
    training.step()  # what libraries allocate once is not to be counted
    training.clear()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    training.step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measure(kind: str, size: Size, dtype: str, columns: tuple[str, ...], rounds: int) -> dict[str, Any]:
    """A row of the table: times, ratios, memory, the plan, and the errors of the columns that failed."""
    result: dict[str, Any] = {"layer": kind, "size": size, "dtype": dtype, "plan": None, "memory_mib": {}, "errors": {}}
    calls: dict[str, Call] = {}
    for column in columns:
        row, graphed = COLUMNS[column]
        try:
            training = Training.of(kind, row, size, dtype)
            if column == "noise":
                result["plan"] = str(training.layer.plan(training.x))  # type: ignore[operator]
            if column in ("cudnn", "noise"):
                result["memory_mib"][row] = peak_memory(training)
            calls[column] = graph(training.step) if graphed else training.step
            calls[column]()
            torch.cuda.synchronize()
        except Exception as error:
            calls.pop(column, None)
            result["errors"][column] = first_line(error)
    times: dict[str, list[float]] = {column: [] for column in COLUMNS}
    times |= time_in_turns(calls, rounds)
    plain = [name for name in ("cudnn_eager", "cudnn") if times[name]]
    better = [min(pair) for pair in zip(*(times[name] for name in plain), strict=True)]
    result["microseconds_per_step"] = {name: statistics.median(times[name]) / size[0] for name in calls}
    result["faster"] = ratio(better, times["noise"])
    result["centroids_over_noise"] = ratio(times["centroids"], times["noise"])
    return result


def measure_replicas(rounds: int) -> dict[str, Any]:
    """Many networks at once against one of them, by the same path and by autograd."""
    calls = {name: graph(replicas_step(count)) for name, count in REPLICAS.items()}
    times = time_in_turns(calls, rounds)
    return {
        "layer": "replicas",
        "size": REPLICA_SIZE,
        "dtype": "bf16",
        "errors": {},
        "microseconds": {name: statistics.median(times[name]) for name in REPLICAS},
        "many_over_one": ratio(times["many"], times["one"]),
        "many_over_autograd": ratio(times["many"], times["autograd"]),
    }


def first_line(error: Exception) -> str:
    """What went wrong, in a line."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def guarded(kind: str, size: Size, dtype: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A row that may fail; whatever happens, the device's memory is free for the next."""
    try:
        return work()
    except Exception as error:
        return {"layer": kind, "size": size, "dtype": dtype, "errors": {"row": first_line(error)}}
    finally:
        # After an error that the device does not recover from, freeing fails as well.
        with contextlib.suppress(RuntimeError):
            gc.collect()
            torch.cuda.empty_cache()


def allow_tf32() -> None:
    """Let both libraries compute products of float32 in TF32."""
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def compile_ahead(jobs: list[tuple[str, str, Size, str]]) -> None:
    """Fill Triton's cache on disk by many processes: one after the other the kernels would take minutes."""
    processes = max(1, min(len(jobs), (os.cpu_count() or 1) - 2, 14))
    pool = multiprocessing.get_context("spawn").Pool(processes)
    # What was not compiled in time, or could not be, is compiled or fails when its turn comes.
    with pool, contextlib.suppress(multiprocessing.TimeoutError):
        pool.map_async(run_once, jobs, chunksize=1).get(COMPILING_SECONDS)


def run_once(job: tuple[str, str, Size, str]) -> None:
    """One training step of a column, in a process of its own."""
    kind, row, size, dtype = job
    allow_tf32()
    with contextlib.suppress(Exception):
        step = replicas_step(REPLICAS[row]) if kind == "replicas" else Training.of(kind, row, size, dtype).step
        step()
        torch.cuda.synchronize()


def missed(result: dict[str, Any]) -> bool:
    """Whether a row failed or missed a bar."""
    if result["errors"]:
        return True
    if result["layer"] == "replicas":
        return bool(result["many_over_one"] > MANY_OVER_ONE)
    least, most = bars(result)
    slow = least is not None and result["faster"] < least
    return bool(slow or (most is not None and result["centroids_over_noise"] > most))


def bars(result: dict[str, Any]) -> tuple[float | None, float | None]:
    """The least ratio of a row, and the most that centroids may take of the noise column's time."""
    if result["layer"] != "LSTM":
        return None, None
    return FASTER.get((result["size"], result["dtype"])), CENTROIDS_OVER_NOISE if result["dtype"] == "bf16" else None


def number(value: float | None, width: int = 0, digits: int = 2) -> str:
    """A number, or a dash where there is none."""
    return f"{'-':>{width}s}" if value is None else f"{value:{width}.{digits}f}"


def show_header(title: str) -> None:
    """The names of the columns."""
    print(f"\n{title}, microseconds per time step of the whole stack, forward and backward")
    print(
        f"{'steps,batch,hidden,layers':25s}  dtype  cuDNN eager   cuDNN   plain   noise  centroids  noise eager  "
        "ratio (bar)    centroids/noise (bar)  MiB cuDNN, noise"
    )


def show(result: dict[str, Any]) -> None:
    """Print a row as soon as it is there."""
    size = ",".join(map(str, result["size"]))
    if "row" in result["errors"]:
        print(f"{size:25s}  {result['dtype']:5s}  {result['errors']['row']}   MISSED", flush=True)
        return
    times, memory = result["microseconds_per_step"], result["memory_mib"]
    least, most = bars(result)
    widths = {"cudnn_eager": 11, "cudnn": 6, "plain": 6, "noise": 6, "centroids": 9, "noise_eager": 11}
    print(
        f"{size:25s}  {result['dtype']:5s}  "
        + "  ".join(number(times.get(name), width) for name, width in widths.items())
        + f"  {number(result['faster'], 5)} ({number(least, 4)})  {number(result['centroids_over_noise'], 15)} "
        + f"({number(most, 4)})  {number(memory.get('cudnn'), 8, 0)}, {number(memory.get('noise'), digits=0)}"
        + ("   MISSED" if missed(result) else "")
    )
    for column, error in result["errors"].items():
        print(f"    {column} failed: {error}")
    print(f"    noise runs on: {result['plan']}", flush=True)


def show_replicas(result: dict[str, Any]) -> None:
    """Print what many networks take."""
    print(f"\n{REPLICAS['many']} networks of {','.join(map(str, REPLICA_SIZE))} with noise, bf16, by torch.func")
    if result["errors"]:
        print(f"    {result['errors']['row']}   MISSED", flush=True)
        return
    times = result["microseconds"]
    print(
        f"    {times['many']:.1f} microseconds; one by the same path {times['one']:.1f}, by autograd "
        f"{times['autograd']:.1f}; ratios {result['many_over_one']:.2f} ({MANY_OVER_ONE:.2f}) and "
        f"{result['many_over_autograd']:.2f} (-){'   MISSED' if missed(result) else ''}",
        flush=True,
    )


def record(arguments: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    """The results with everything needed to judge and to repeat them."""
    import triton

    found = torch.cuda.get_device_properties(0)
    only = f" --only {' '.join(map(str, arguments.only))}" if arguments.only else ""
    return {
        "command": f"python benchmarks/layers_gpu.py --rounds {arguments.rounds} --seed {arguments.seed} "
        f"--dtypes {' '.join(arguments.dtypes)}{only}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "device": found.name,
            "processors": found.multi_processor_count,
            "memory_gib": round(found.total_memory / 2**30, 1),
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cudnn": torch.backends.cudnn.version(),
            "statewise": statewise.__version__,
        },
        "results": results,
    }


def run(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Compile, then measure and print row after row."""
    chosen = arguments.only or range(len(SIZES) + 1)
    sizes = [SIZES[index] for index in chosen if index < len(SIZES)]
    narrow = "bf16" in arguments.dtypes
    gru_sizes = [size for size in GRU_SIZES if size in sizes and narrow]
    replicated = len(SIZES) in chosen and narrow
    jobs = [
        *(
            ("LSTM", row, size, d)
            for size in sizes
            for d in arguments.dtypes
            for row in ("centroids", "noise", "plain")
        ),
        *(("GRU", "noise", size, "bf16") for size in gru_sizes),
        *(("replicas", row, REPLICA_SIZE, "bf16") for row in REPLICAS if replicated),
    ]
    if not jobs:
        return []
    start = time.perf_counter()
    compile_ahead(jobs)
    print(f"kernels compiled in {time.perf_counter() - start:.0f} s", flush=True)
    results = []
    for kind, title_sizes, dtypes, columns in (
        ("LSTM", sizes, arguments.dtypes, tuple(COLUMNS)),
        ("GRU", gru_sizes, ["bf16"], GRU_COLUMNS),
    ):
        if title_sizes:
            show_header(kind)
        for size in title_sizes:
            for dtype in dtypes:
                work = partial(measure, kind, size, dtype, columns, arguments.rounds)
                results.append(guarded(kind, size, dtype, work))
                show(results[-1])
    if replicated:
        results.append(guarded("replicas", REPLICA_SIZE, "bf16", partial(measure_replicas, arguments.rounds)))
        show_replicas(results[-1])
    return results


def main() -> int:
    """Measure, print, and say whether the bars were met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        type=int,
        nargs="+",
        choices=range(len(SIZES) + 1),
        metavar="SIZE",
        help=f"places in {SIZES}, from 0; {len(SIZES)} stands for the many networks",
    )
    parser.add_argument("--dtypes", nargs="+", choices=tuple(DTYPES), default=list(DTYPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {arguments.json.parent}")
    if not torch.cuda.is_available():
        print("torch sees no CUDA device, so there is nothing to measure here.")
        return 0
    torch.manual_seed(arguments.seed)
    allow_tf32()
    results = run(arguments)
    if not results:
        print("The many networks are measured in bf16 only, so there is nothing to measure.")
        return 0
    if arguments.json:
        arguments.json.write_text(json.dumps(record(arguments, results), indent=1) + "\n")
    met = not any(map(missed, results))
    distances = [result["faster"] / bars(result)[0] for result in results if result.get("faster") and bars(result)[0]]
    worst = f"worst ratio relative to its bar: {min(distances):.3f}" if distances else "no ratio that has a bar"
    print(f"\n{worst} ({'all bars met' if met else 'a bar was missed, or a row failed'})")
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
