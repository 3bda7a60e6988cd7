"""What can be proved of a classifier, with what the proof rests on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from statewise.bounds import Certificate
from statewise.errors import StatewiseError
from statewise.files import read_object
from statewise.report.html import Bar, Bullets, DataTable, Disclosure, Note, Section, Strong, bar_chart, shown
from statewise.report.html.pieces import Part
from statewise.report.run_sections.run import CLASSIFIER, Run
from statewise.report.run_sections.words import percent

#: What ``statewise certify`` writes beside a run.
WRITTEN = "certificate.json"
_TITLE = "The certificate"
_MATRICES = 16


def certificate(run: Run) -> Section | None:
    """The certificate that lies in the run's folder, or a new one, or why there is none and what to type.

    Args:
        run: any; only classifiers of sequences have this section.
    """
    if run.task != CLASSIFIER:
        return None
    command = f"statewise certify {shlex.quote(str(run.folder))} --iid"
    written = run.folder / WRITTEN
    if written.exists() and not run.iid:
        document = read_object(written, wanted="a certificate that statewise certify has written")
        return Section(_TITLE, told(document), prose=f"As {WRITTEN} in the folder of the run has it.")
    if not run.iid:
        words = (
            "A certificate needs sequences that are independent draws of one law, and no program can see whether they "
            "are. If you can vouch for it, type this, or make the page with --iid:"
        )
        return Section(_TITLE, [Note(kind="missing", words=words, command=command)])
    if run.quick or run.sources is None:
        words = "Left out of a quick page." if run.quick else "Nobody here reads the training data again."
        return Section(_TITLE, [Note(kind="missing", words=words, command=command)])
    try:
        found = run.sources.certificate(run)
    except StatewiseError as error:
        return Section(_TITLE, [Note(kind="missing", words=f"None could be computed. {error}", command=command)])
    return Section(_TITLE, told(_document(found)))


def told(found: Mapping[str, Any]) -> list[Part]:
    """A certificate as parts of a page.

    Args:
        found: as ``Certificate.to_json`` gives it.
    """
    # Where nothing is proved of the network itself, something may be of its automaton.
    nothing: Literal["care", "remark"] = "remark" if found["other"] else "care"
    kind: Literal["holds", "care", "remark"] = nothing if found["vacuous"] else "holds"
    sentence = Note(kind=kind, words=Strong(str(found["sentence"])))
    parts: list[Part] = [sentence, _claims(found["claims"])]
    if found["matrices"]:
        parts.append(_prices(found["matrices"]))
    assumptions = [f"{each['statement']}: {each['check']}" for each in found["assumptions"]]
    parts.append(Section("What it rests on", [Bullets(assumptions)]))
    if found["inapplicable"]:
        rows = [(name, str(why)) for name, why in found["inapplicable"].items()]
        caption = "Bounds that say nothing of this network"
        table = DataTable(headings=("bound", "why"), rows=rows, caption=caption, left=2)
        parts.append(Disclosure("Bounds that do not apply", [table]))
    if found["what_if"]:
        worth = [(each["change"], _number(each["nats"]), _share(each["value"])) for each in found["what_if"]]
        table = DataTable(headings=("change", "nats", "bound"), rows=worth, caption="Were the errors the same")
        parts.append(Disclosure("What changes would be worth", [table]))
    return parts


def _document(found: Certificate) -> dict[str, Any]:
    return found.to_json()


def _claims(claims: Sequence[Mapping[str, Any]]) -> Part:
    rows = [
        (
            each["name"],
            each["title"],
            each["origin"] if each["guarantee"] else f"{each['origin']}, no guarantee",
            _share(each["value"]),
            _number(sum(_float(nats) for nats in each["nats"].values())) if each["nats"] else "none",
        )
        for each in claims
    ]
    headings = ("bound", "what it is", "origin", "errs at most", "nats")
    caption = "All bounds side by side; nats are the length of a description, which the sequences pay for"
    return DataTable(headings=headings, rows=rows, caption=caption, left=3)


def _prices(matrices: Sequence[Mapping[str, Any]]) -> Part:
    dearest = sorted(matrices, key=lambda matrix: -_float(matrix["nats"]))[:_MATRICES]
    bars = [
        Bar(
            label=f"{each['name']} ({each['rows']} × {each['columns']}, norm {_number(each['norm'])})",
            value=_float(each["nats"]),
        )
        for each in dearest
    ]
    caption = "Where the price of the network comes from: the longest bar is where a smaller norm or rank gains most."
    return bar_chart(bars, title="Nats for each matrix", value="nats", heading="matrix", caption=caption)


def _float(value: Any) -> float:
    """A number of a JSON file, in which numbers that are not finite are texts."""
    return float(value)


def _number(value: Any) -> str:
    return shown(_float(value))


def _share(value: Any) -> str:
    return percent(_float(value))
