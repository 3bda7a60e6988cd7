"""How much faster is it to read an automaton off a network's weights than to learn it by L*?

Two SR-GRUs with k = 50 centroids over alphabets of 2, 10 and 100 symbols, moved onto the best centroid at every step,
which is how hardened networks are used. One (32 units) is trained until it is an automaton: it counts half of the
symbols modulo 3. The other (100 units) has random weights, scaled so that words reach many states. One way reads the
automaton by `extract`, which evaluates every (centroid, token) pair in one batch and needs no data. The second is L* of
AALpy as it comes, with its own test on random words, asking the same network symbol by symbol. The third is our own
`learn_by_lstar`, which gives AALpy's L* batched queries, each asked only once, and batched tests. All machines are then
compared with the network on words that none has seen. The ratios are of L*'s seconds to the median of the extractions
right after it, in one process.

    python benchmarks/extraction.py [--alphabets 2 10 100] [--seed 0] [--seconds 120] [--json FILE] [--check]

Bar: extraction at least 100 times faster than AALpy's L*, with no more disagreements than either way of asking. What
the batched one costs is reported beside it. L* stops after --seconds; its time then is a lower bound. With --check a
missed bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aalpy
import numpy as np
import torch
from aalpy import SUL, run_Lstar
from aalpy.oracles import RandomWordEqOracle

import statewise
from statewise.automata import MooreMachine, extract, from_aalpy, learn_by_lstar, random_words
from statewise.data import Language, sample_words
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.train import Hardening, learn_automaton

HIDDEN, CENTROIDS = 100, 50
LOUD, LENGTH = 0.3, 5.0  # of the random network: how loud the input is, and how long the centroids are
RATIO = 100.0
REPETITIONS = 20
TEST_WORDS = 2000


def train(symbols: int, seed: int) -> SequenceClassifier:
    """A network that has learnt to count half of its symbols modulo 3, at argmax."""
    counted = np.arange(symbols) < (symbols + 1) // 2
    transitions = (np.arange(3)[:, None] + counted) % 3
    counter = MooreMachine(alphabet=names(symbols), transitions=transitions, outputs=np.array([1, 0, 0]))
    words = sample_words(Language.machine(counter), lengths=range(9), seed=seed)
    learnt = learn_automaton(
        words, ClassifierConfig(hidden=32, centroids=(CENTROIDS,)), hardening=Hardening(steps=3000, seed=seed)
    )
    if not learnt.exact:
        raise SystemExit(f"The network did not become an automaton: {learnt.message}")
    return learnt.model.with_transition("argmax").eval()


def scramble(symbols: int, seed: int) -> SequenceClassifier:
    """A network with random weights, at argmax, whose words reach many states."""
    config = ClassifierConfig(hidden=HIDDEN, centroids=(CENTROIDS,), transition="argmax")
    generator = torch.Generator().manual_seed(seed)
    model = config.build(tokens=symbols, classes=2, symbols=names(symbols), generator=generator)
    with torch.no_grad():
        model.layer.get_parameter("weight_ih_l0").mul_(LOUD)
        # The update gate is kept shut, or the old state would leak into the new one and the network hold still.
        model.layer.get_parameter("bias_ih_l0").chunk(3)[1].fill_(-5)
        # Centred rows of equal length, so that no centroid wins everywhere.
        centroids = model.layer.get_parameter("centroids_l0")
        centroids.sub_(centroids.mean(0))
        centroids.mul_(LENGTH / torch.linalg.vector_norm(centroids, dim=1, keepdim=True))
        _balance(model)
    return model.eval()


KINDS = {"trained": train, "random": scramble}


def names(symbols: int) -> tuple[str, ...]:
    """One character for each symbol."""
    return tuple(chr(ord("0") + symbol) for symbol in range(symbols))


def _balance(model: SequenceClassifier) -> None:
    """Let about half of the centroids be read as each class."""
    network = extract(model).network
    logits = network.read_out([network.layers[0].centroids])
    lead = (logits[:, 1] - logits[:, 0]).sort().values
    model.head.bias[1] -= float(lead[CENTROIDS // 2 - 1 : CENTROIDS // 2 + 1].mean())


class Stepping(SUL):  # type: ignore[misc]
    """The network as AALpy asks it: symbol by symbol, its state kept in between."""

    def __init__(self, model: SequenceClassifier, seconds: float) -> None:
        super().__init__()
        assert model.embedding is not None
        self._model, self._rows = model, model.embedding.weight.detach()
        self._numbers = {symbol: number for number, symbol in enumerate(model.symbols or ())}
        self._until = time.perf_counter() + seconds
        self._state: Any = None

    def pre(self) -> None:
        """Read START."""
        if time.perf_counter() > self._until:
            raise TimeoutError
        self._state = None
        self._read(self._model.start_id)

    def post(self) -> None:
        """Nothing is left open."""

    @torch.no_grad()
    def _read(self, token: int) -> None:
        _, self._state = self._model.layer(self._rows[token].reshape(1, 1, -1), self._state)

    @torch.no_grad()
    def step(self, letter: str | None) -> bool:
        """Read a symbol, and END after it without moving on."""
        if letter is not None:
            self._read(self._numbers[letter])
        output, _ = self._model.layer.plain_step(self._rows[self._model.end_id][None], self._state)
        return bool(self._model.head(output).argmax())


def by_aalpy(model: SequenceClassifier, seconds: float) -> tuple[float, MooreMachine | None]:
    """Seconds and machine of AALpy's own L* with its own random-word test; no machine if it was stopped."""
    alphabet = list(model.symbols or ())
    start = time.perf_counter()
    system = Stepping(model, seconds)
    try:
        learnt = run_Lstar(alphabet, system, RandomWordEqOracle(alphabet, system), "dfa", print_level=0)
    except TimeoutError:
        return time.perf_counter() - start, None
    return time.perf_counter() - start, from_aalpy(learnt, alphabet=alphabet)


def measure(symbols: int, kind: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """All three ways on one network."""
    model = KINDS[kind](symbols, arguments.seed)
    alphabet = model.symbols or ()
    extract(model), model.classify(["0", "1"])  # warm
    aalpy_s, by_steps = by_aalpy(model, arguments.seconds)
    learnt = learn_by_lstar(model.classify, alphabet, max_seconds=arguments.seconds, seed=arguments.seed)
    seconds = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        found = extract(model)
        seconds.append(time.perf_counter() - start)
    words = random_words(alphabet, TEST_WORDS, min_length=1, max_length=100, seed=arguments.seed + 12345)
    truth = model.classify(words)

    def wrong(machine: MooreMachine | None) -> int | None:
        return None if machine is None else int(np.sum(machine.classify(words) != truth))

    own = statistics.median(seconds)
    return {
        "alphabet": symbols,
        "kind": kind,
        "used_states": len(found.reachable),
        "minimal_states": len(found.machine),
        "extract_ms": 1e3 * own,
        "aalpy_s": aalpy_s,
        "aalpy_ratio": aalpy_s / own,
        "batched_s": learnt.seconds,
        "batched_ratio": learnt.seconds / own,
        "batched_queries": learnt.queries,
        "batched_complete": learnt.complete,
        "wrong": {"extract": wrong(found.machine), "aalpy": wrong(by_steps), "batched": wrong(learnt.machine)},
    }


def report(results: list[dict[str, Any]]) -> bool:
    """Print the table; return whether the bar was met."""
    print("symbols  network      states (minimal)  extract ms   AALpy s (ratio)    batched s (ratio)  wrong of 2000")
    met = True
    for row in results:
        wrong = row["wrong"]
        fewest = min(count for name, count in wrong.items() if name != "extract" and count is not None)
        good = row["aalpy_ratio"] >= RATIO and wrong["extract"] <= fewest
        met &= good
        stopped = ">" if wrong["aalpy"] is None else " "  # then its time is only a lower bound
        print(
            f"{row['alphabet']:7}  {row['kind']:11}  {row['used_states']:10} ({row['minimal_states']:2})  "
            f"{row['extract_ms']:10.2f}  {stopped}{row['aalpy_s']:7.2f} ({row['aalpy_ratio']:6.0f})  "
            f"{row['batched_s']:8.2f} ({row['batched_ratio']:6.0f})  {wrong['extract']}, {wrong['aalpy']}, "
            f"{wrong['batched']} {'ok' if good else 'MISSED'}"
        )
    return met


def record(arguments: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    """What goes into the file."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    listed = " ".join(map(str, arguments.alphabets))
    options = f"--alphabets {listed} --seed {arguments.seed} --seconds {arguments.seconds:g}"
    return {
        "command": f"python benchmarks/extraction.py {options}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": model, "cores": os.cpu_count(), "threads": torch.get_num_threads()},
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "aalpy": getattr(aalpy, "__version__", ""),
            "statewise": statewise.__version__,
        },
        "results": results,
    }


def main() -> int:
    """Measure, print, and say whether the bar was met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alphabets", type=int, nargs="+", default=[2, 10, 100])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    random.seed(arguments.seed)  # AALpy draws its words from Python's global source
    results = [measure(symbols, kind, arguments) for symbols in arguments.alphabets for kind in KINDS]
    met = report(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(record(arguments, results), indent=1) + "\n")
    least = min(row["aalpy_ratio"] for row in results)
    print(f"smallest ratio to AALpy: {least:.0f} ({'the bar is met' if met else 'the bar is missed'})")
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
