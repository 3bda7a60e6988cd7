"""Every command by name: what it is for, and the module that has it. Nothing is imported to read this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A command in the list.

    Args:
        module: of ``statewise.commands``, with ``parser()`` and ``run(arguments, console)``.
        help: what it is for, in a line.
        replicas: whether it trains many networks side by side, which needs memory that stays.
        speaks_json: whether it prints its JSON itself; else ``run`` returns what is printed with ``--json``.
    """

    module: str
    help: str
    replicas: bool = False
    speaks_json: bool = False

    def load(self) -> ModuleType:
        """Import the module."""
        return import_module(f"statewise.commands.{self.module}")


#: From the first command that a person needs to the last, by what it is for.
GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "start here": {
        "demo": Entry(module="demo", help="see what acting on the state does, in a few minutes"),
        "compare": Entry(module="compare_data", help="which regularizer helps on data of yours, and by how much"),
        "doctor": Entry(module="doctor", help="tell what runs here: versions, threads, engine, CPU kernel"),
    },
    "train": {
        "train lm": Entry(module="train_lm", help="a word-level language model on a text of yours"),
        "train classify": Entry(module="classify", help="a classifier of sequences, whose states can be read"),
        "train series": Entry(module="series", help="classes or next values of sequences of numbers"),
        "train tag": Entry(module="tag", help="a tagger: names in a text, parts of speech"),
    },
    "use what was trained": {
        "evaluate": Entry(module="evaluate", help="score a text, tagged sentences or numbers by a trained model"),
        "predict": Entry(
            module="predict", help="tags, classes, next words or next values of new data", speaks_json=True
        ),
        "generate": Entry(module="generate", help="let a trained language model go on from a prompt"),
        "export": Entry(module="export", help="make a folder or an ONNX file of a run, for others"),
    },
    "understand it": {
        "extract": Entry(module="extract", help="read the automaton of a trained classifier"),
        "certify": Entry(module="certify", help="prove how often a trained classifier errs at most", speaks_json=True),
        "explore": Entry(
            module="explore", help="play with trained networks on a web page of your own machine", speaks_json=True
        ),
        "report": Entry(module="report", help="one page about runs, which needs nothing but a browser"),
        "memory rank": Entry(
            module="memory_rank", help="how much almost all networks of a shape can remember, exactly", speaks_json=True
        ),
        "memory advise": Entry(
            module="memory_advise", help="depths and widths within a budget, and what each remembers", speaks_json=True
        ),
        "memory capacity": Entry(
            module="memory_capacity", help="the hardest task that trained networks solve", replicas=True
        ),
    },
    "papers": {
        "reproduce": Entry(module="reproduce", help="make a published table again, beside ours", replicas=True),
    },
    "this program": {
        "completion": Entry(module="completion", help="the script by which a shell completes these commands"),
    },
}
COMMANDS: Mapping[str, Entry] = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def chosen(words: list[str]) -> tuple[str | None, list[str]]:
    """The command that words begin with, and the words after it; None if they begin with none.

    Args:
        words: that were typed after the program's name.

    >>> chosen(["train", "lm", "--epochs", "3"])
    ('train lm', ['--epochs', '3'])
    >>> chosen(["train"])
    (None, ['train'])
    """
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return name, words[length:]
    return None, words
