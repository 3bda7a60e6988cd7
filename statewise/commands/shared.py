"""What several commands take: parsers, devices, lists, folders."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Action, HelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.errors import ArgumentError, RunFolderError

if TYPE_CHECKING:
    import torch

WIDE = 160
#: The option --device.
DEVICE: dict[str, Any] = {"type": str, "default": "auto", "help": "auto, cpu, cuda or cuda:1"}


#: The option --json.
JSON: dict[str, Any] = {
    "action": "store_true",
    "help": "print the result as one JSON object on standard output, and all else on standard error",
}
_FEW = 6  # options that a line of usage has room for
_EXAMPLES = "examples:"


class PlainHelp(HelpFormatter):
    """Says of an option what its sentence says, and its default where it has one; leaves examples as they are."""

    def _get_help_string(self, action: Action) -> str:
        told = action.help or ""
        absent = any(action.default is nothing for nothing in (SUPPRESS, None, "", False))
        return told if absent or not action.option_strings else f"{told} (default: %(default)s)"

    def _format_usage(self, usage: str | None, actions: Iterable[Action], groups: Any, prefix: str | None) -> str:
        """One line: dozens of options are listed below it."""
        options = [action for action in actions if action.option_strings]
        if usage is not None or len(options) <= _FEW:
            return super()._format_usage(usage, actions, groups, prefix)
        words = [self._format_args(action, action.dest) for action in actions if not action.option_strings]
        return f"{'usage: ' if prefix is None else prefix}{' '.join([self._prog, *words, '[OPTIONS]'])}\n\n"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)


class Parser(ArgumentParser):
    """A parser that says in one paragraph what is wrong, and where the help is; the usage is not repeated."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """End with exit code 2.

        Args:
            message: what is wrong.
            ex: the exception that says it.
        """
        sys.stderr.write(f"{self.prog}: error: {message}\nHelp: {self.prog} --help\n")
        self.exit(2)


def command_parser(description: str, *examples: str) -> ArgumentParser:
    """A parser without abbreviations, which a new option could make ambiguous.

    Args:
        description: of the command.
        examples: that can be typed.
    """
    shown = "\n  ".join([_EXAMPLES, *examples]) if examples else None
    return Parser(description=description, epilog=shown, formatter_class=PlainHelp, allow_abbrev=False)


def split_list(text: str) -> tuple[str, ...]:
    """The entries of a list with commas.

    >>> split_list("gaussian, dropout+gaussian")
    ('gaussian', 'dropout+gaussian')
    """
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def column(said: str | None) -> str | int | None:
    """A column as it was typed: a number is a place, from the end if it is negative; all else a name.

    >>> column("-1"), column("ner")
    (-1, 'ner')
    """
    return int(said) if said is not None and said.removeprefix("-").isdecimal() else said


def find_device(name: str) -> torch.device:
    """The device of a name; "auto" is the first CUDA device where there is one, else the CPU.

    >>> find_device("cpu")
    device(type='cpu')
    """
    import torch  # late, because some commands need none

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ArgumentError(where="--device", got=name, wanted="auto, cpu, cuda or cuda:0")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ArgumentError(
            where="--device", got=name, wanted="a device that is here", remedy="Use --device cpu, or auto."
        )
    return device


def require_classifier_run(folder: str) -> None:
    """Refuse what is no folder of a run, and say how to make one.

    Args:
        folder: as it was typed.
    """
    if not (Path(folder) / "config.json").exists():
        raise RunFolderError(
            where=folder,
            got="no config.json",
            wanted="the folder of a run",
            remedy="statewise train classify --data EXAMPLES --out FOLDER makes one.",
        )


def check_new(folder: Path, resume: bool, *, within: Sequence[str] = (".",)) -> None:
    """Refuse a folder with a run that nobody wants to go on with; under torchrun, in the first process.

    The others may come when the first has begun.

    Args:
        folder: that was named.
        resume: whether a run in it goes on.
        within: where in it the runs are.
    """
    taken = [name for name in within if (folder / name / "config.json").exists()]
    if taken and not resume and first_process():
        runs = "a run" if taken == ["."] else f"runs of {', '.join(taken)}"
        raise RunFolderError(
            where=str(folder),
            got=f"a folder with {runs}",
            wanted="a new or empty one",
            remedy=f"Go on (--resume --out {folder}), or name another folder (--out).",
        )


def first_process() -> bool:
    """Whether this is the first of the processes that torchrun has started, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0


def own_console(*, stderr: bool = False) -> Console:
    """Standard output; quiet in all but the first of the processes that torchrun has started.

    What is no terminal, such as a file, gets lines long enough for a table.

    Args:
        stderr: standard error instead.
    """
    quiet = not first_process()
    console = Console(quiet=quiet, stderr=stderr)
    wide = console.is_terminal or "COLUMNS" in os.environ
    return console if wide else Console(quiet=quiet, stderr=stderr, width=WIDE)


def absolute(named: Any) -> Any:
    """Names of files, wherever they are read again; all else, such as the name of a task, as it is.

    Args:
        named: a name, or a list of them.

    >>> absolute("tomita:4"), absolute(["sample"])
    ('tomita:4', ['sample'])
    """
    if isinstance(named, list):
        return [absolute(each) for each in named]
    place = Path(named).expanduser()
    return str(place.resolve()) if place.is_file() else named
