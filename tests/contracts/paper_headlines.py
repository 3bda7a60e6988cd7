"""The rows of each of the five papers, made of the files of the runs and of the numbers that its recipes have."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from contracts.headlines import ABSENT, Headline, Run, below, kept, points, runs
from statewise.recipes import find_recipe
from statewise.recipes.memory_pixels import PUBLISHED as PIXELS
from statewise.recipes.published import TABLE5
from statewise.recipes.published_bounds import TABLE1 as ORDERS
from statewise.recipes.published_mixup import TABLE2
from statewise.recipes.published_states import TOMITA


def noisin() -> Iterator[Headline]:
    names = {
        "none": "no noise",
        "gaussian": "Gaussian noise",
        "bernoulli": "Bernoulli noise",
        "chi-square": "chi-square noise",
        "dropout": "dropout",
        "dropout+gaussian": "dropout and Gaussian noise",
        "dropout+beta": "dropout and beta noise",
    }
    first = {("table3", "medium"): {"none", "gaussian", "dropout", "dropout+beta"}, ("table4", "medium"): {"gaussian"}}
    for recipe, data in (("table3", "Penn Treebank"), ("table4", "WikiText-2")):
        for run in runs("noisin", recipe):
            printed, ours = run["published"]["test"], run["test_perplexity"]
            shown = run["row"] in first.get((recipe, run["size"]), set()) and run["placement"] != "outputs"
            where = ", on outputs only" if run["placement"] == "outputs" else ""
            what = f"{data}, {run['size']}: {names[run['row']]}{where}"
            verdict = below(printed, ours, 1)
            yield Headline(what, "test perplexity", f"{printed:g}", f"{ours:.1f}", verdict, first=shown)
    alone = {run["row"]: run for run in runs("noisin", "table3", size="medium", placement="recurrent")}
    alone |= {run["row"]: run for run in runs("noisin", "table3", size="medium", row="dropout")}
    yield better("Penn Treebank, medium: Gaussian noise alone or dropout", "gaussian", "dropout", names, alone)
    (run,) = runs("noisin", "table5")
    what = f"Penn Treebank, AWD-LSTM-MoS: gamma noise, {run['epochs']} of 400 epochs"
    printed = TABLE5["this paper, + Noisin"][1].test
    ours = f"{run['test_perplexity']:.1f}"
    yield Headline(what, "test perplexity", f"{printed:g}", ours, "not comparable: training not finished", first=True)


def better(what: str, one: str, other: str, names: Mapping[str, str], found: Mapping[str, Run]) -> Headline:
    """Which of two rows has the lower test perplexity, as published and as measured."""
    pair = (found[one], found[other])
    printed = names[min(pair, key=lambda run: float(run["published"]["test"]))["row"]]
    ours = names[min(pair, key=lambda run: float(run["test_perplexity"]))["row"]]
    verdict = "reached" if printed == ours else "missed: the other order"
    return Headline(what, "which is better", printed, ours, verdict, first=True)


def mixed(run: Mapping[str, Any], name: str) -> float:
    return float(run["tests"]["test"][name])


def sequence_mixup() -> Iterator[Headline]:
    table = find_recipe("sequence-mixup/table1")
    cells = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}
    rows = {"standard": "not mixed", "input-0.5": "input", "pre-output-0.5": "pre-output"}
    rows["through-time-0.5"] = "through time"
    for size, cell in cells.items():
        for row, place in rows.items():
            own = runs("sequence-mixup", "table1", size=size, row=row)
            printed = table.beside(size, row)[0]  # type: ignore[attr-defined]
            ours = statistics.fmean(100 * mixed(run, "f1") for run in own)
            seeds = f"{len(own)} seed" + "s" * (len(own) > 1)
            verdict = points(printed, ours, 2)
            what = f"Table 1, {cell}, {place} ({seeds})"
            yield Headline(what, "F1 %", f"{printed:.2f}", f"{ours:.2f}", verdict, first=size == "lstm")
    settled = {run["row"]: run for run in reversed(own_table2())}
    plain, printed_plain = settled["standard"], TABLE2["standard"]
    for row, place in (("input", "input"), ("pre-output", "pre-output"), ("through-time", "through time")):
        f1, loss = TABLE2[row]
        gain, share = (mixed(settled[row], "f1") - mixed(plain, "f1")), mixed(settled[row], "loss")
        share, printed_gain, printed_share = (
            share / mixed(plain, "loss"),
            f1 - printed_plain[0],
            loss / printed_plain[1],
        )
        what = f"Table 2, biLSTM-CRF, {place} (other vectors)"
        verdict = points(round(printed_gain, 2), 100 * gain, 2)
        yield Headline(what, "gain of F1", f"{printed_gain:+.2f}", f"{100 * gain:+.2f}", verdict, first=True)
        verdict = points(round(printed_share, 2), share, 2, low=True)
        yield Headline(what, "loss, of not mixed", f"{printed_share:.2f}", f"{share:.2f}", verdict, first=True)


def own_table2() -> list[Run]:
    """The runs of Table 2 with the recipe's own settings."""
    epochs = find_recipe("sequence-mixup/table2").epochs
    own = [
        result
        for result in kept("sequence-mixup")
        if result["recipe"] == "sequence-mixup/table2"
        and not result["request"]["overrides"]
        and result["request"]["epochs"] == epochs
    ]
    return [run for result in own for run in result["runs"]]


def state_regularized() -> Iterator[Headline]:
    page = "state-regularized"
    for size, cell in (("multiplicative", "our network"), ("gru", "the paper's cell")):
        for solved, grammars in ((True, "1 to 4 and 7"), (False, "5 and 6")):
            own = [run for run in runs(page, "tomita", size=size) if run["row"] != "random"]
            own = [run for run in own if (TOMITA[run["row"]] == "yes") is solved]
            right = sum(run["recovered"] for run in own)
            what = f"Tomita's grammars {grammars}, {cell}"
            ours, printed = f"{right} of {len(own)}", "all" if solved else "none"
            verdict = "reached" if right == len(own) else f"missed by {len(own) - right}"
            yield Headline(what, "automata recovered", printed, ours, verdict, first=size == "multiplicative")
    own = runs(page, "tomita", row="random")
    ours = f"{sum(run['recovered'] for run in own)} of {len(own)}"
    yield Headline("Random machines of 4 to 8 states", "automata recovered", ABSENT, ours, "beyond the paper")
    yield from _errors(
        "table1", "large", "Parentheses, large set", "sr-lstm-p", shown={"d 10-20, l 200", "d 20, l 1000"}
    )
    yield from _errors(
        "table1", "small", "Parentheses, small set", "sr-lstm-p", shown={"d 10-20, l 200", "d 20, l 1000"}
    )
    for row in ("lstm", "sr-lstm-p"):
        yield from _errors("table3", "100", "Palindromes", row, percent=1, shown={"l 500"})
    yield _fewest("table3", "100", "l 500", "Palindromes: l 500", first=True)
    yield _fewest("table1", "large", "d 20, l 1000", "Parentheses, large set: d 20, l 1000")
    yield from _errors("table4", "256", "Reviews, trained on ten words", "sr-lstm-p", percent=2)
    yield from _errors("table5", "256", "Reviews", "sr-lstm-p", percent=1, shown={"test"})
    (run,) = runs(page, "table7", size="mnist")
    printed = find_recipe(f"{page}/table7").beside("mnist", run["row"])["test"]  # type: ignore[attr-defined]
    ours_ = 100 * (1 - run["tests"]["test"]["error"])
    verdict = points(printed, ours_, 2)
    what = "MNIST pixel by pixel, SR-LSTM-P, 100 centroids"
    yield Headline(what, "accuracy %", f"{printed:g}", f"{ours_:.2f}", verdict, first=True)


def _errors(
    recipe: str, size: str, what: str, row: str, *, percent: int | None = None, shown: set[str] | None = None
) -> Iterator[Headline]:
    """Medians of errors over the seeds, test set by test set."""
    own = runs("state-regularized", recipe, size=size, row=row)
    beside = find_recipe(f"state-regularized/{recipe}").beside(size, row)  # type: ignore[attr-defined]
    for test in own[0]["tests"]:
        ours = statistics.median((100 if percent else 1) * run["tests"][test]["error"] for run in own)
        digits, unit = (percent, "error %") if percent else (3, "error")
        seeds = f"median of {len(own)}" if len(own) > 1 else "1 seed"
        verdict = points(beside[test], ours, digits, low=True)
        named = f"{what}, {row.upper()}: {test} ({seeds})"
        yield Headline(named, unit, f"{beside[test]:.{digits}f}", f"{ours:.{digits}f}", verdict, test in (shown or ()))


def _fewest(recipe: str, size: str, test: str, what: str, *, first: bool = False) -> Headline:
    """Which network has the fewest errors, of those that are published, as published and by our medians."""
    beside = find_recipe(f"state-regularized/{recipe}").beside  # type: ignore[attr-defined]
    own: dict[str, list[float]] = {}
    for run in runs("state-regularized", recipe, size=size):
        if test in beside(size, run["row"]):
            own.setdefault(run["row"], []).append(run["tests"][test]["error"])
    printed = min(own, key=lambda row: beside(size, row)[test]).upper()
    ours = min(own, key=lambda row: statistics.median(own[row])).upper()
    verdict = "reached" if printed == ours else "missed: another order"
    return Headline(what, "fewest errors", printed, ours, verdict, first)


def generalization_bounds() -> Iterator[Headline]:
    page = "generalization-bounds"
    ranges = {"below": ("β < 1", "tanh"), "equal": ("β = 1", "identity"), "above": ("β > 1", "tanh")}
    measured = {run["row"]: run for run in runs(page, "table1")}
    for row, (text, activation) in ranges.items():
        printed, ours = ORDERS[row]["thm2"].steps, measured[row]["thm2"][f"t_{activation}"]
        verdict = "holds" if abs(ours - printed) < 0.05 else "does not hold"
        what = f"Theorem 2, {text} ({activation})"
        yield Headline(what, "power of t", f"{printed:g}", f"{ours:.3f}", verdict, first=True)
    printed, ours = ORDERS["below"]["bound3"].dimension, measured["below"]["tied"]["d_tanh"]
    what = "Theorem 3, bound (3) as it holds, β < 1"
    yield Headline(what, "power of d", f"{printed:g}", f"{ours:.3f}", "does not hold as printed", first=True)
    smallest = min(10 ** run["log10_thm2"] for run in runs(page, "vacuous") if "log10_thm2" in run)
    what = "Theorem 2 with its constants, least of all networks"
    yield Headline(what, "penalty (1 is vacuous)", ABSENT, f"{smallest:.1f}", "vacuous everywhere", first=True)
    for row, text in (
        ("dh4-m100000", "Elman, 4 units, 100,000 sequences"),
        ("dh8-m100000", "Elman, 8 units, 100,000 sequences"),
    ):
        mean = statistics.fmean(run["certificate"] for run in runs(page, "trained", row=row))
        yield Headline(f"Certificate: {text}", "error at most", ABSENT, f"{mean:.4f}", "beyond the paper", first=True)
    names = {
        "rnn-1.5": "MNIST by rows, Elman by norms",
        "gru-ternary": "MNIST by rows, GRU of three levels",
        "shared": "MNIST by rows, shared weights",
        "randomised": "MNIST by rows, randomised network",
    }
    for row, text in names.items():
        (run,) = runs(page, "row-mnist", row=row)
        shown = f"{run['certificate']:.4f} (test {run['test_error']:.4f})"
        yield Headline(f"Certificate: {text}", "error at most", ABSENT, shown, "beyond the paper", row == "shared")
    automata = [run["certificate"] for run in runs(page, "automata")]
    shown = f"{min(automata):.4f} to {max(automata):.4f}"
    yield Headline(
        "Certificate: automata of Tomita's grammars", "error at most", ABSENT, shown, "beyond the paper", True
    )


def depth_memory() -> Iterator[Headline]:
    page = "depth-memory"
    one, two = runs(page, "theorem1")
    shown = f"{one['equal']} of {one['shapes']} equal"
    yield Headline("Theorem 1, one layer: rank min{R, M^(T/2)}", "shapes", "all", shown, "holds", first=True)
    shown = f"{two['violated']} of {two['shapes']} below"
    yield Headline("Theorem 1, two layers: lower bound", "shapes", "none below", shown, "holds", first=True)
    for depth in (3, 4):
        own = [run for run in runs(page, "conjecture") if run["depth"] == depth]
        shapes = sum(run["shapes"] for run in own)
        for name, text in (("violated", "as printed"), ("repaired_violated", "repaired")):
            count = sum(run[name] for run in own)
            verdict = "does not hold" if count else "holds on all that were tried"
            printed = "none below" if name == "violated" else ABSENT
            what = f"Conjecture 1 {text}, {depth} layers"
            yield Headline(what, "shapes", printed, f"{count} of {shapes} below", verdict, first=True)
    for row in ("2x128", "1x256", "3x256"):
        (run,) = runs(page, "tableC1", row=row)
        accuracy, ours = PIXELS[row][1], 100 * run["accuracy"]
        what = f"Permuted pixel MNIST, {row} (layers x channels)"
        verdict = points(accuracy, ours, 2)
        yield Headline(what, "test accuracy %", f"{accuracy:g}", f"{ours:.2f}", verdict, first=True)
    for recipe, text in (("figure3.1-bits", "bits repeated"), ("figure3.1-delay", "delay bridged")):
        for result in (one for one in kept(page) if one["recipe"] == f"{page}/{recipe}"):
            yield from _capacities(result, text)


def _capacities(result: dict[str, Any], text: str) -> Iterator[Headline]:
    """What networks of three depths reach, one row a size: the thesis prints a plot and no numbers."""
    for size in dict.fromkeys(run["size"] for run in result["runs"]):
        own = sorted((run for run in result["runs"] if run["size"] == size), key=lambda run: run["depth"])
        found = [run["capacity"] or 0 for run in own]
        told = [str(run["capacity"] or "none") + "+" * (run["censored"] == "all solved") for run in own]
        undecided = all(run["censored"] == "all solved" for run in own)
        verdict = "undecided" if undecided else "order holds" if found == sorted(found) else "order does not hold"
        largest = f", up to {own[0]['values'][-1]}" if "delay" in text else ""
        what = f"Copying, {int(size):,} parameters{largest}: depths 1, 2, 3"
        yield Headline(what, text, "plot only", ", ".join(told), verdict, first=not undecided)


PAPERS: Mapping[str, tuple[str, Callable[[], Iterator[Headline]]]] = {
    "noisin": ("Noisin", noisin),
    "sequence-mixup": ("Sequence Mixup", sequence_mixup),
    "state-regularized": ("State-regularized networks", state_regularized),
    "generalization-bounds": ("Generalization bounds", generalization_bounds),
    "depth-memory": ("Depth and memory", depth_memory),
}
