"""What the commands know of a run: where its examples are, what was typed for it, and what goes on with it."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from statewise.bounds import Certificate
from statewise.commands.automaton import TAKEN
from statewise.commands.certify import certificate_of
from statewise.commands.certify import parser as certify_parser
from statewise.commands.classify import DEFAULTS as CLASSIFY
from statewise.commands.classify import REGULAR
from statewise.commands.labelled import read_examples
from statewise.commands.series_sets import read_sets as read_series_sets
from statewise.commands.tag import MODEL, TRAINING
from statewise.commands.train_lm import DEFAULTS as LANGUAGE_TRAINING
from statewise.errors import DataError
from statewise.models import ClassifierConfig, ForecastConfig, LanguageModelConfig, TaggerConfig
from statewise.report.run_sections.run import CLASSIFIER, FORECASTER, LANGUAGE, TAGGER, Run
from statewise.train import AUTOMATON, ClassifierSettings, Hardening, TaggerSettings, TrainingSettings
from statewise.train.callback_kinds import callbacks_of
from statewise.train.classify_folder import describe_examples, read_about
from statewise.train.settings import as_json

_WIDTH = 62  # of a line of a command, after which the next option begins another
_COMMANDS = {LANGUAGE: "lm", CLASSIFIER: "classify", TAGGER: "tag", FORECASTER: "series"}
#: For each task: the kinds of its settings, and the defaults of its command, which are named whatever they are.
Kinds = tuple[type, type, Mapping[str, Any], Mapping[str, Any]]
_KINDS: Mapping[str, Kinds] = {
    LANGUAGE: (LanguageModelConfig, TrainingSettings, {}, LANGUAGE_TRAINING),
    CLASSIFIER: (ClassifierConfig, ClassifierSettings, {**CLASSIFY, **REGULAR}, {}),
    TAGGER: (TaggerConfig, TaggerSettings, {**MODEL, "word_dropout": None}, TRAINING),
    FORECASTER: (ForecastConfig, ClassifierSettings, {}, {}),
}
#: The same of a classifier of numeric sequences, whose command has other defaults.
_OF_NUMBERS: Kinds = (ClassifierConfig, ClassifierSettings, {"readout": None}, {})
#: What callbacks are asked for by: the option, by kind and field.
_ASKED = {
    "spectral projection": {"recurrent": "project-recurrent", "input": "project-input", "head": "project-head"},
    "cover penalty": {"strength": "cover-penalty", "gamma": "cover-margin"},
    "rounded weights": {"levels": "levels", "bias_levels": "bias-levels"},
}


class CommandSources:
    """Reads examples again, certifies, and tells what to type, by the same code as the commands themselves."""

    def examples(self, run: Run) -> Any:
        """The sets of a classifier, if they are still those that it was trained on.

        Args:
            run: of a classifier.
        """
        source = run.told.get("source", {})
        if "data" not in source:
            raise DataError(
                where=str(run.folder),
                got="no word of where its examples came from",
                wanted="a run of statewise train classify or series",
            )
        learnt = run.told.get("training", {})
        found: Any
        if run.of_numbers:
            found = read_series_sets(source, seed=learnt.get("seed", 0))
        else:
            found = read_examples(source, seed=learnt.get("seed", 0), hold="exact" not in learnt)
        before, now = run.told["data"]["train"], describe_examples(found.train, found.valid, {})["train"]
        if before != now and read_about(run.folder).get("permutation") is None:
            raise DataError(
                where=str(source["data"]),
                got=f"{now['examples']:,} examples that are not those of the run",
                wanted=f"the {before['examples']:,} that it was trained on (checksum {before['checksum']})",
                remedy="Put the file back as it was, or train again.",
            )
        return found

    def certificate(self, run: Run) -> Certificate:
        """As ``statewise certify --iid`` gives it.

        Args:
            run: of a classifier.
        """
        asked = certify_parser().get_defaults()
        return certificate_of(Namespace(**{**vars(asked), "run": str(run.folder), "iid": True, "device": "cpu"}))

    def command(self, run: Run) -> str:
        """What makes the same run: options that nobody had to name are left out.

        Args:
            run: any.
        """
        if run.task not in _COMMANDS:
            return f"# made in Python, by statewise.train, as a {run.task}"
        words = ["statewise", "train", _command_of(run), *_of_source(run.told.get("source", {}))]
        model, training = run.told.get("model", {}), run.told.get("training", {})
        if run.task == CLASSIFIER and "exact" in training:
            words += ["--automaton", *_differing(model, as_json(AUTOMATON))]
            words += _differing({name: training[name] for name in TAKEN if name in training}, as_json(Hardening()))
        else:
            kinds = _OF_NUMBERS if run.of_numbers and run.task == CLASSIFIER else _KINDS[run.task]
            words += _differing(model, _defaults(kinds[0]), always=kinds[2])
            words += _differing(training, _defaults(kinds[1]), always=kinds[3])
            words += _of_callbacks(run.told)
        return typed([*words, "--out", str(run.folder)])

    def resume(self, run: Run) -> str:
        """What goes on with a run.

        Args:
            run: any.
        """
        if run.task not in _COMMANDS or "exact" in run.told.get("training", {}):
            return ""  # what is learnt in one go cannot go on
        words = ["statewise", "train", _command_of(run), "--resume", "--out", str(run.folder)]
        if run.final:
            words += ["--epochs", str(2 * max(1, len(run.epochs)))]
        return typed(words)


def _command_of(run: Run) -> str:
    return "series" if run.of_numbers else _COMMANDS[run.task]


def option_text(value: Any) -> str:
    """A value as it is typed.

    Args:
        value: of a setting.

    >>> [option_text(value) for value in (None, True, (200, 100), 0.5)]
    ['none', 'true', '200,100', '0.5']
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return repr(value) if isinstance(value, float) else str(value)


def typed(words: Sequence[str]) -> str:
    r"""A command as it is typed; a long one goes on in the next line.

    Args:
        words: of the command.

    >>> typed(["statewise", "train", "lm", "--data", "my text"])
    "statewise train lm --data 'my text'"
    """
    lines = [""]
    for place, word in enumerate(words):
        option = word.startswith("--") and place > 0
        piece = shlex.quote(word)
        if option and len(lines[-1]) > _WIDTH:
            lines.append(f"    {piece}")
        else:
            lines[-1] = f"{lines[-1]} {piece}".lstrip() if len(lines) == 1 else f"{lines[-1]} {piece}"
    return " \\\n".join(lines)


def _defaults(kind: type) -> dict[str, Any]:
    return {entry.name: entry.default for entry in fields(kind)}


def _differing(
    told: Mapping[str, Any], usual: Mapping[str, Any], *, always: Mapping[str, Any] | None = None
) -> list[str]:
    """Options for what is not as usual; those whose default the command has changed are named in any case."""
    words = []
    for name, value in told.items():
        if name not in usual:
            continue
        plain = usual[name]
        same = list(plain) == list(value) if isinstance(plain, Sequence) and isinstance(value, list) else plain == value
        if not same or name in (always or {}):
            words += [f"--{name.replace('_', '-')}", option_text(value)]
    return words


def _of_source(source: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in source.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name == "min_count" and value == 1:
            continue
        elif isinstance(value, list):
            words += [option, *map(str, value)]
        elif value is not None and value is not False and name != "scheme":
            words += [option, str(value)]
    return words


def _of_callbacks(told: Mapping[str, Any]) -> list[str]:
    words = []
    for each in callbacks_of(told):
        for field, option in _ASKED.get(type(each).kind, {}).items():
            value = getattr(each, field, None)
            if value is not None:
                words += [f"--{option}", option_text(value)]
    return words
