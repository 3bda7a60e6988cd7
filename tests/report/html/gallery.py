"""A page with every piece and every chart on it, and names that somebody hostile chose."""

from __future__ import annotations

import math

import numpy as np

from statewise.automata import MooreMachine, to_svg
from statewise.report.html import (
    Bar,
    Bullets,
    Code,
    DataTable,
    Disclosure,
    Drawing,
    Figure,
    KeyFigure,
    KeyFigures,
    Listing,
    Note,
    Page,
    Points,
    Prose,
    Section,
    Series,
    Strong,
    Terminal,
    bar_chart,
    drawing_of,
    heat_map,
    line_chart,
    reliability_chart,
    scatter_chart,
    sparkline,
)

LONG = "a GRU with a very long name that does not fit into its place"
HOSTILE = "<script>alert('x')</script>"
URL = '"><img src=http://evil.example/x onerror=alert(1)>'


def gallery() -> Page:
    """Every piece there is."""
    return Page(
        title=f"Every piece, and {HOSTILE}",
        summary=["What pages are made of, with ", Code(URL), " among the names."],
        sections=[_pieces(), _charts(), _automaton()],
        cite="@misc{hostile,\n  title = {" + HOSTILE + "}\n}",
        foot="Made in a test.",
    )


def curves(count: int = 2, points: int = 14) -> list[Series]:
    """Falling curves; the first has a band."""
    x = list(range(1, points + 1))
    made = []
    for number in range(count):
        y = [2.2 + 0.3 * number + 3.5 * math.exp(-0.28 * place) for place in x]
        low, high = [value - 0.2 for value in y], [value + 0.2 for value in y]
        name = HOSTILE if number == 1 else f"variant {number}"
        band = {"low": low, "high": high} if number == 0 else {}
        made.append(Series(name=name, x=x, y=y, **band))
    return made


def machine() -> MooreMachine:
    """Four states, with a symbol that would end an element."""
    moves = np.array([[1, 0, 2], [2, 1, 3], [3, 0, 3], [3, 3, 3]])
    return MooreMachine(alphabet=("a", "</svg>", HOSTILE), transitions=moves, outputs=np.array([0, 1, 1, 0]))


def _pieces() -> Section:
    rows: list[tuple[str | Code | Strong | Drawing, ...]] = [
        ("plain", "109.2", "0.4", sparkline([5, 4, 3.2, 3, 2.9])),
        (HOSTILE, "98.7", "0.3", sparkline([5, 3.5, 2.9, 2.6, 2.4])),
        (Code(URL), "101.3", "0.3", sparkline([5, float("nan"), 3.1, 2.8, 2.7])),
    ]
    table = DataTable(
        headings=("variant", "test perplexity", "±", "validation"),
        rows=rows,
        caption="Three variants",
        best=(None, 1, None),
    )
    typed: list[Terminal | Listing] = [Terminal("statewise doctor", says="torch 2.13"), Listing("a\n  b")]
    return Section(
        "Pieces",
        [
            KeyFigures(
                [
                    KeyFigure(value="98.7", label="test perplexity", note="97.9 to 99.4"),
                    KeyFigure(value="4", label="states of its automaton"),
                    KeyFigure(value="12 s", label="of training"),
                ]
            ),
            Bullets(["One thing.", ["Another, in ", Code("config.json"), "."]]),
            table,
            Note(kind="holds", words="The machine equals the network on every word up to length 12."),
            Note(kind="care", words=["This is a sample, ", Strong("not a proof"), "."]),
            Note(kind="missing", words="No test data was given.", command="statewise evaluate runs/a test.txt"),
            Note(kind="remark", words="Lower is better."),
            Section("Commands and listings", typed),
            Disclosure("Every setting", [Prose("There are none.", quiet=True), table]),
        ],
        prose="A paragraph begins the section. It is long enough to be broken into lines, so that one sees how far "
        "apart they stand and how wide the column is.",
    )  # fmt: skip


def _charts() -> Section:
    generator = np.random.default_rng(0)
    states = [f"state {number}" for number in range(6)]
    moves = generator.dirichlet(np.full(6, 0.3), size=6).tolist()
    words = [f"word-{number}" for number in range(30)]
    wide = generator.random((8, 30)).tolist()
    bars = [
        Bar(label="LSTM", value=0.71, low=0.66, high=0.76),
        Bar(label=LONG, value=0.83, low=0.8, high=0.87, group=1),
        Bar(label=HOSTILE, value=0.64, low=0.6, high=0.68, group=2),
    ]  # fmt: skip
    cloud = [
        Points(name=name, x=generator.lognormal(3, 1, 20).tolist(), y=generator.random(20).tolist())
        for name in ("first", "second", "third")
    ]
    return Section(
        "Charts",
        [
            line_chart(curves(), title="Loss", x="epoch", y="nats a word", caption="The band is twice the error."),
            line_chart(curves(6, 200), title="Six curves", x="step", y="loss", log_x=True, log_y=True),
            line_chart([Series(name="alone", x=[3], y=[0.5])], title="One point", x="epoch", y="loss"),
            bar_chart(bars, title="Accuracy", value="accuracy on the test set", caption="Bars from zero."),
            bar_chart(bars, title="Accuracy, near", value="accuracy", zero=False),
            heat_map(moves, rows=states, columns=states, title="Moves", what="probability", low=0, high=1,
                     row_name="from", column_name="to"),
            heat_map(wide, rows=[*states, "x", HOSTILE], columns=words, title="A wide map", what="share"),
            scatter_chart(cloud, title="Size and loss", x="parameters", y="loss", log_x=True),
            reliability_chart([0.35, 0.55, 0.75, 0.95], [0.3, 0.45, 0.7, 0.88], [4, 20, 60, 200], title="Calibration"),
        ],
    )  # fmt: skip


def _automaton() -> Section:
    drawn = Figure(svg=drawing_of(to_svg(machine())), title="An automaton", alt="Four states, of which two accept.")
    return Section("What it learnt", [drawn])
