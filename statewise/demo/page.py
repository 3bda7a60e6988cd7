"""The page of the demonstration: what the library is for, for someone who looks only at this page."""

from __future__ import annotations

import statewise
from statewise.automata import to_svg
from statewise.citations import cite
from statewise.demo.language import ASKED, CERTIFIED, DESCRIBED, EPOCHS, SHORT
from statewise.demo.remembering import LENGTH as ADVISED_STEPS
from statewise.demo.remembering import SYMBOLS
from statewise.demo.show import Shown
from statewise.demo.tagging import CLASSES, LENGTH
from statewise.demo.telling import conclusion
from statewise.memory import rank_text
from statewise.report.html import (
    Bar,
    Code,
    DataTable,
    Disclosure,
    Figure,
    KeyFigure,
    KeyFigures,
    Note,
    Page,
    Prose,
    Section,
    Series,
    Terminal,
    bar_chart,
    drawing_of,
    heat_map,
    line_chart,
)
from statewise.report.html.pieces import Part

_SINGULAR = 16  # values of a spectrum that are drawn
_SMALLEST = 1e-6  # of the largest; what is below is rounding


def page_of(shown: Shown) -> Page:
    """All that was shown, as one page.

    Args:
        shown: what the demonstration came to.
    """
    sections = [_learnt(shown), _trusted(shown), _remembered(shown), _generalizes(shown), _next()]
    return Page(
        title="What a recurrent network can tell about itself",
        summary=(
            "Everything on this page was trained, proved and measured on this machine within the last minutes, by the "
            "command statewise demo. Everything it does happens to the hidden state between two steps: it is "
            "drawn to a few centroids, disturbed by noise, mixed, measured and read."
        ),
        sections=[_glance(shown), *sections],
        cite=cite(shown.learnt.automaton.model),
        foot=f"statewise {statewise.__version__}, seed {shown.seed}, {shown.seconds:.0f} seconds",
        kind="statewise demo",
    )


def _glance(shown: Shown) -> Section:
    learnt, plain = shown.learnt, shown.outcomes[0]
    best = min(shown.outcomes[1:], key=lambda outcome: outcome.test.nll)
    longest = learnt.lengths[-1]
    figures = [
        KeyFigure(
            value=f"{learnt.right['state-regularized'][-1]:.0%} : {learnt.right['plain LSTM'][-1]:.0%}",
            label=f"of words of {longest} symbols are judged rightly",
            note="state-regularized : plain LSTM, from the same words",
        ),
        KeyFigure(
            value=f"{len(learnt.automaton.machine)} states",
            label="is all that it has learnt",
            note="read off the weights, with a proof" if learnt.verified.proven else "read off the weights",
        ),
        KeyFigure(
            value=f"{100 * learnt.trust[0].value:.2g} %",
            label="is the most that it errs on new words",
            note=f"proved with {1 - learnt.trust[0].delta:.0%} confidence",
        ),
        KeyFigure(
            value=f"{best.test.nll:.2f} : {plain.test.nll:.2f}",
            label="nats are lost on a label of new data",
            note=f"{best.name} : plain LSTM, from a hundred sequences",
        ),
    ]
    return Section("At a glance", [KeyFigures(figures)])


def _learnt(shown: Shown) -> Section:
    learnt = shown.learnt
    machine = learnt.automaton.machine
    curves = [
        Series(name=name, x=list(learnt.lengths), y=[100 * share for share in shares])
        for name, shares in learnt.right.items()
    ]
    parts: list[Part] = [
        line_chart(
            curves,
            title="Right answers on words longer than any in training",
            x="symbols of a word",
            y="right, %",
            log_x=True,
            caption=f"{ASKED} new words of each length. Words to learn from have at most {SHORT - 1} symbols. The "
            f"plain LSTM judges {learnt.plain_right:.1%} of those rightly: it has learnt them, and not the rule.",
        ),
        Figure(
            svg=drawing_of(to_svg(machine)),
            title="The automaton of the state-regularized network",
            alt=f"An automaton of {len(machine)} states over the symbols {' and '.join(machine.alphabet)}; its table "
            "is below.",
            caption="An arrow leads into the state that it starts in, and a state with two rings accepts. It is not "
            "guessed from examples: the network's state moves among centroids, so its whole behaviour is a finite "
            "table, which was computed.",
            table=DataTable(
                headings=("state", *(f"on {symbol}" for symbol in machine.alphabet), "answer"),
                rows=[
                    (str(state), *(str(int(to)) for to in machine.transitions[state]), _answer(shown, state))
                    for state in range(len(machine))
                ],
                caption="Where each symbol leads",
            ),
        ),
    ]
    if learnt.verified.proof is not None:
        parts.append(Note(kind="holds", words=learnt.verified.proof.sentence))
    else:
        parts.append(Note(kind="care", words=f"There is no proof: {learnt.verified.no_proof}."))
    parts.append(Disclosure("What was compared, word by word", [Prose(str(learnt.verified))]))
    return Section(
        "What has it learnt?",
        parts,
        prose=f"Two networks learn a language from the same {learnt.words} words: {DESCRIBED}. One is a plain LSTM "
        f"after {EPOCHS} passes over the words, as anybody would train it. The state of the other is drawn to "
        "centroids.",
    )


def _answer(shown: Shown, state: int) -> str:
    machine = shown.learnt.automaton.machine
    return str(machine.classes[int(machine.outputs[state])])


def _trusted(shown: Shown) -> Section:
    good, plain = shown.learnt.trust
    parts: list[Part] = [Note(kind="holds" if not good.vacuous else "care", words=good.sentence)]
    price = [Bar(label=name, value=nats) for name, nats in good.best.nats.items() if nats > 0]
    if price:
        parts.append(
            bar_chart(
                price,
                title="What the certificate of the state-regularized network costs",
                value="nats",
                caption=f"Each nat has to be paid for by sequences; {CERTIFIED:,} independent words were drawn.",
            )
        )
    parts.append(Prose(["Of the plain LSTM: ", plain.sentence]))
    if plain.matrices:
        dearest = sorted(plain.matrices, key=lambda matrix: -matrix.nats)
        parts.append(
            bar_chart(
                [Bar(label=matrix.name, value=matrix.nats, group=1) for matrix in dearest],
                title="Why nothing can be proved of the plain LSTM",
                value="nats",
                caption="The price of each matrix, by the norms of all: the longest bar is where to begin.",
            )
        )
    rests = [(assumption.statement, assumption.check) for assumption in good.assumptions]
    table = DataTable(headings=("what", "how it was checked"), rows=rests, left=2, caption="What it rests on")
    parts.append(Disclosure("What the certificate rests on", [table]))
    return Section(
        "How far can it be trusted?",
        parts,
        prose="A certificate bounds the error on new sequences from the ones at hand; nothing is held back. It is "
        "short because an automaton of a few states is short to describe.",
    )


def _remembered(shown: Shown) -> Section:
    regular, plain = shown.remembered
    parts: list[Part] = []
    for name, found in (("state-regularized network", regular), ("plain LSTM", plain)):
        parts.append(
            heat_map(
                found.table.tolist(),
                rows=found.halves,
                columns=found.halves,
                title=f"The two halves of a word in the {name}",
                what="probability of acceptance",
                low=0.0,
                high=1.0,
                row_name="first half",
                column_name="second half",
                caption=f"Its separation rank is {found.spectrum.rank(_SMALLEST)}: so many different things of the "
                "first half matter in the second. Evenly spread singular values would be "
                f"{found.spectrum.effective_rank:.1f} of them.",
            )
        )
    lines = [
        Series(
            name=name,
            x=list(range(1, _SINGULAR + 1)),
            y=[max(float(value), _SMALLEST) for value in found.spectrum.values[:_SINGULAR] / found.spectrum.values[0]],
        )
        for name, found in (("state-regularized", regular), ("plain LSTM", plain))
    ]
    parts.append(
        line_chart(
            lines,
            title="Singular values of the two tables",
            x="number",
            y="of the largest",
            log_y=True,
            caption="The language needs three: a count modulo 3. What is more is not the language.",
        )
    )
    advised = [
        (f"{pair.depth}", f"{pair.width:,}", f"{pair.parameters:,}", rank_text(pair.least), rank_text(pair.most))
        for pair in shown.advised.pairs
    ]
    columns = ("depth", "width", "parameters", "at least", "at most")
    parts += [
        Prose(["An exact rank of an architecture, whatever its weights: ", shown.rank.sentence]),
        DataTable(
            headings=columns,
            rows=advised,
            caption=f"Which depth, within a budget? Separation ranks over {ADVISED_STEPS} steps of {SYMBOLS} symbols",
        ),
        Prose(shown.advised.sentence, quiet=True),
    ]
    return Section(
        "How much does it remember?",
        parts,
        prose="Every first half of a word is followed by every second half. Where the table has few different rows, "
        "few things about the first half are remembered.",
    )


def _generalizes(shown: Shown) -> Section:
    bars = [
        Bar(label=outcome.name, value=outcome.test.nll, group=int(place > 0))
        for place, outcome in enumerate(shown.outcomes)
    ]
    bars.append(Bar(label="best possible", value=shown.best_possible.nll, group=2))
    curves = [
        Series(name=outcome.name, x=[look.step for look in outcome.curve], y=[look.nll for look in outcome.curve])
        for outcome in shown.outcomes
    ]
    rows = [
        (
            outcome.name,
            f"{outcome.train.nll:.3f}",
            f"{outcome.test.nll:.3f}",
            f"{outcome.best.nll:.3f}",
            f"{outcome.test.accuracy:.1%}",
            f"{outcome.seconds:.1f}",
        )
        for outcome in shown.outcomes
    ]
    parts: list[Part] = [
        bar_chart(
            bars,
            title="Loss on new sequences",
            value="nats a label",
            heading="network",
            caption="Shorter is better. No network can beat the last bar but by luck: it knows how the data is made.",
        ),
        line_chart(
            curves,
            title="Loss on new sequences while training",
            x="training step",
            y="nats a label",
            caption="The plain network learns its hundred sequences by heart, and becomes sure of what is wrong.",
        ),
        DataTable(
            headings=("network", "train loss", "test loss", "best on the way", "accuracy", "seconds"),
            rows=rows,
            caption="All numbers",
        ),
        Prose(conclusion(shown.outcomes)),
        Prose(
            "Strengths were set by hand on other held-out sequences. One seed: statewise compare trains several, and "
            "says which differences are more than chance.",
            quiet=True,
        ),
    ]
    return Section(
        "Does it generalize better?",
        parts,
        prose=f"Five LSTMs with the same weights at the start give each of {LENGTH} noisy steps one of {CLASSES} "
        "labels, from a hundred sequences. What differs is what happens to the state while they train.",
    )


def _next() -> Section:
    commands = "\n".join(
        (
            "statewise compare mydata.csv --minutes 10",
            "statewise train classify --data mywords.tsv --automaton --out runs/mine",
            "statewise report runs/mine",
            "statewise explore runs/mine",
        )
    )
    line = 'layer = statewise.LSTM(32, 64, num_layers=2, transforms=statewise.Noise("gaussian", 0.5))'
    parts: list[Part] = [
        Terminal(commands),
        Prose(["In a program, a layer takes the place of torch.nn's, with one argument more: ", Code(line)]),
    ]
    return Section("On your own data", parts)
