"""How much a network of this shape can remember, by the theory of separation ranks."""

from __future__ import annotations

import math
from typing import Any

from statewise.layers import RecurrentLayer
from statewise.memory import advise, generic_profile, rank_text
from statewise.memory.advise import Advice, shape_advice
from statewise.report.html import Bar, Note, Section, Series, bar_chart, line_chart
from statewise.report.html.pieces import Part
from statewise.report.run_sections.run import CLASSIFIER, LANGUAGE, STEP_CLASSIFIER, Run
from statewise.train.classify_folder import read_about

_STEPS = 20  # over which runs are compared that do not say how long their sequences are
_LONGEST = 60
_PROFILE = 12  # steps of an exact profile
_SMALL = {"inputs": 6, "width": 24}  # up to which it is quick


def remembering(run: Run) -> Section | None:
    """Bounds on the separation rank of the run's depth and width, and what other depths would do with its parameters.

    Args:
        run: any; language models and classifiers of symbols have this section.
    """
    if run.quick or run.task not in (LANGUAGE, CLASSIFIER, STEP_CLASSIFIER):
        return None
    layers = [module for module in run.model.modules() if isinstance(module, RecurrentLayer)]
    inputs = _symbols(run)
    if not layers or inputs is None or inputs < 2:
        words = "Separation ranks are computed over symbols; a run of numbers has none. Of sampled inputs:"
        command = "statewise memory rank --help"
        return Section("How much it can remember", [Note(kind="missing", words=words, command=command)])
    depth, width = sum(layer.num_layers for layer in layers), min(layer.hidden_size for layer in layers)
    steps = _steps(run)
    budget = sum(each.numel() for layer in layers for each in layer.parameters())
    own = shape_advice(depth=depth, width=width, inputs=inputs, steps=steps)
    parts: list[Part] = [_proxy(run), _of_shapes(own, budget, inputs, steps)]
    if depth == 1 and inputs <= _SMALL["inputs"] and width <= _SMALL["width"]:
        parts.append(_profile(inputs, width))
    known = "proved" if own.proved else "by a conjecture that is not proved"
    prose = (
        f"Over {steps} steps of {inputs:,} symbols, almost every circuit of depth {depth} and width {width} has a "
        f"start-end separation rank of at least {rank_text(own.least)} ({known}) and none more than "
        f"{rank_text(own.most)} (Ziv 2019). The rank counts how many different things the second half of a sequence "
        "can be told about the first."
    )
    return Section("How much it can remember", parts, prose=prose)


def _proxy(run: Run) -> Part:
    cell = str(run.told.get("model", {}).get("cell", ""))
    if cell == "rac":
        return Note(kind="remark", words="This run's cell is the arithmetic circuit that the theory is about.")
    words = (
        "A proxy: the theory is about recurrent arithmetic circuits of the same depth and width, whose cell "
        f"multiplies; this run's cell is {cell or 'another one'}. And it says what weights can do, not what training "
        "finds."
    )
    return Note(kind="care", words=words)


def _of_shapes(own: Advice, budget: int, inputs: int, steps: int) -> Part:
    found = advise(budget=budget, steps=steps, inputs=inputs, classes=1)
    shapes = [own, *(pair for pair in found.pairs if (pair.depth, pair.width) != (own.depth, own.width))]
    bars = [
        Bar(
            label=f"depth {each.depth}, {each.width} channels{' (this run)' if each is own else ''}",
            value=_bits(each.least),
            low=_bits(each.least),
            high=_bits(each.most),
            group=0 if each is own else 5,
            written=_between(_bits(each.least), _bits(each.most)),
        )
        for each in shapes
    ]
    caption = (
        "In bits: the logarithm of the rank to base 2. The bar is the bound from below, the line goes to the bound "
        f"from above. Other depths have as many parameters as this run's recurrent layers, {budget:,}."
    )
    return bar_chart(
        bars, title="Separation rank by depth", value="bits", caption=caption, heading="shape",
        interval="between these bounds",
    )  # fmt: skip


def _profile(inputs: int, width: int) -> Part:
    found = generic_profile(inputs=inputs, width=width, steps=_PROFILE, depth=1)
    splits = [float(split) for split in found.splits]
    series = [Series(name="almost every circuit", x=splits, y=[float(rank) for rank in found.ranks])]
    if found.upper:
        series.append(Series(name="no circuit has more", x=splits, y=[float(rank) for rank in found.upper]))
    return line_chart(
        series,
        title=f"What is carried over each split of {_PROFILE} steps",
        x="steps before the split",
        y="separation rank",
        zero=True,
        caption="Computed exactly, over finite fields, for circuits of this width.",
    )


def _bits(rank: int) -> float:
    return math.log2(rank) if rank > 0 else 0.0


def _between(least: float, most: float) -> str:
    return f"{least:.1f}" if most - least < 0.05 else f"{least:.1f} to {most:.1f}"


def _symbols(run: Run) -> int | None:
    if run.task == LANGUAGE:
        words: Any = getattr(run.model, "words", None)
        return None if words is None else int(words)
    symbols = read_about(run.folder)["symbols"]
    return None if symbols is None else len(symbols)


def _steps(run: Run) -> int:
    """An even number of steps, of the run's own length where it says one."""
    steps = run.told.get("training", {}).get("bptt") or _STEPS
    return max(2, min(_LONGEST, int(steps)) // 2 * 2)
