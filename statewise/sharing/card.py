"""The page that goes with a shared model: what it is, how to load it, what was measured, what to cite."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from statewise.citations import cite
from statewise.errors import ArgumentError
from statewise.models import Forecaster, LanguageModel, Saved, SequenceClassifier, Tagger
from statewise.models.kinds import KINDS, kind_of
from statewise.models.reading import NUMBERS

#: What the hub calls the task of a kind of model; None where it has no word for it.
PIPELINES = {"LanguageModel": "text-generation", "SequenceClassifier": "text-classification"}
PIPELINES |= {"Tagger": "token-classification"}
_WHAT = {
    "LanguageModel": "a recurrent language model over {count} words",
    "SequenceClassifier": "a recurrent classifier of {input} into {classes} classes",
    "StepClassifier": "a recurrent classifier of every step of {input} into {classes} classes",
    "Forecaster": "a recurrent forecaster of the next values of sequences of {features} numbers a step",
    "Tagger": "a recurrent tagger with {tags} tags",
    "OrthogonalNetwork": "an orthogonal recurrent network with {classes} outputs",
}


def model_card(model: Saved, *, repo_id: str = "FOLDER", licence: str | None = None) -> str:
    """The README.md of a shared model, with the header that the hub reads.

    Args:
        model: made from a config.
        repo_id: under which name it can be loaded.
        licence: of the weights, as the hub spells it, such as "mit"; None leaves it open.

    >>> from statewise.models import ClassifierConfig
    >>> card = model_card(ClassifierConfig(hidden=8).build(tokens=2, classes=2), repo_id="me/words", licence="mit")
    >>> print(card.splitlines()[1], "|", next(line for line in card.splitlines() if line.startswith("# ")))
    library_name: statewise | # words
    """
    kind = kind_of(model)
    if kind is None or model.config is None:
        got = f"a {type(model).__name__} without a config" if kind else f"a {type(model).__name__}"
        raise ArgumentError(where="model_card", got=got, wanted=f"one of {', '.join(KINDS)}, made from a config")
    parts = [
        _header(model, kind, licence),
        f"# {repo_id.rpartition('/')[2]}",
        f"This is {_what(model, kind)}, of {sum(p.numel() for p in model.parameters()):,} weights, made with "
        "statewise.",
        "## Use",
        f"```bash\npip install 'statewise[hub]'\n```\n\n```python\n{_use(model, kind, repo_id)}\n```",
        "## Settings",
        _table("setting", "value", dataclasses.asdict(model.config)),
    ]
    if model.metrics:
        parts += ["## Measured", _table("what", "value", dict(model.metrics))]
    parts += ["## Cite", f"```bibtex\n{cite(model)}\n```"]
    return "\n\n".join(parts) + "\n"


def _header(model: Saved, kind: str, licence: str | None) -> str:
    lines = ["library_name: statewise", "tags:", "- statewise", "- recurrent-neural-network"]
    if kind in PIPELINES and getattr(model, "features", None) is None:  # the names are of texts
        lines.append(f"pipeline_tag: {PIPELINES[kind]}")
    if licence is not None:
        lines.append(f"license: {json.dumps(licence)}")
    return "\n".join(("---", *lines, "---"))


def _what(model: Any, kind: str) -> str:
    reading = model.reading
    read = "sequences of numbers" if getattr(model, "features", None) else "sequences of tokens"
    if reading is not None and reading.unit != NUMBERS:
        read = "pictures" if reading.height is not None else "texts"
    words = {"input": read, "classes": getattr(model, "classes", None) or getattr(model.config, "classes", "")}
    words["features"] = getattr(model, "features", None)
    if isinstance(model, LanguageModel):
        words["count"] = f"{model.words:,}"
    if isinstance(model, Tagger):
        words["tags"] = str(len(model.lexicon.tags))
    return _WHAT[kind].format(**words)


def _use(model: Any, kind: str, repo_id: str) -> str:
    """Three lines that load the model and ask it something."""
    imports = ["import torch"] if isinstance(model, Forecaster) else []
    lines = [*imports, "import statewise", f"model = statewise.sharing.from_pretrained({repo_id!r})"]
    reading = model.reading
    if isinstance(model, Tagger):
        lines.append(
            'print(model.tag([["Anna", "saw", "Otto"]]))' if not model.context else "print(model.lexicon.tags)"
        )
    elif isinstance(model, SequenceClassifier) and reading is not None and reading.symbols is not None:
        lines.append('classes = model.classify([model.reading.encode("a text")])  # numbers of model.reading.classes')
    elif kind == "LanguageModel" and reading is not None:
        lines.append('numbers = model.reading.encode("a text")  # statewise.models.generate goes on from them')
    elif isinstance(model, Forecaster):
        lines.append(f"values = torch.zeros(20, {model.features})  # yours, a row a step, as they are")
        lines.append("print(model.forecast(values, steps=5).quantile(0.5))")
    else:
        lines.append("print(model)")
    return "\n".join(lines)


def _table(left: str, right: str, rows: dict[str, Any]) -> str:
    said = {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in rows.items()}
    lines = [f"| {name} | {_cell(value)} |" for name, value in said.items()]
    return "\n".join((f"| {left} | {right} |", "| --- | --- |", *lines))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
