"""``statewise export``: the model of a run, for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.shared import JSON, command_parser
from statewise.errors import ArgumentError
from statewise.files import write_atomically
from statewise.models.kinds import kind_of
from statewise.sharing import export_onnx, load, model_card
from statewise.train.telling import say

FORMATS = ("folder", "onnx")
CARD = "README.md"


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Make of a run what can be given to others: a folder with the best model, its words, classes and a page about "
        "it, which statewise.load reads; or an ONNX file, which is run and compared with the model.",
        "statewise export runs/words --out shared/words",
        "statewise export runs/words --format onnx --out words.onnx",
        "statewise export runs/words --out shared/words --licence mit --json",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run of statewise train, or of a saved model")
    add("--out", type=str, required=True, help="the folder, or the file, to make or to replace")
    add("--format", choices=FORMATS, default="folder", help="a folder for statewise, or a file for ONNX")
    add("--licence", type=str, help="folder: the licence of the weights for its page, such as mit; a page that "
        "is there stays as it is")  # fmt: skip
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Load the model, and write it.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    out = Path(arguments.out).expanduser()
    _refuse(arguments, out)
    model = load(arguments.run)
    told: dict[str, Any] = {"run": arguments.run, "kind": kind_of(model), "format": arguments.format, "out": str(out)}
    if arguments.format == "onnx":
        out.parent.mkdir(parents=True, exist_ok=True)
        told["largest_difference"] = export_onnx(model, out)
        said = f"Written: {out}; it differs from the model by at most {told['largest_difference']:.2g} (rounding)."
        following = f"onnxruntime.InferenceSession({str(out)!r}) runs it; its metadata name the inputs and classes."
    else:
        model.save(out)
        # A page that is there may be a person's own.
        if not (out / CARD).exists():
            write_atomically(out / CARD, model_card(model, repo_id=out.name, licence=arguments.licence))
        told["files"] = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        said = f"Written: {out} ({', '.join(told['files'])})"
        following = f"statewise.load({str(out)!r}) gives the model back, on any machine."
    say(console, said)
    say(console, following)
    return told


def _refuse(arguments: Any, out: Path) -> None:
    """Refuse what would destroy something, and options that would do nothing."""
    if arguments.format == "onnx" and arguments.licence is not None:
        raise ArgumentError(where="--licence", got=arguments.licence, wanted="no such option for an ONNX file")
    if arguments.format == "onnx" and out.is_dir():
        raise ArgumentError(where="--out", got=f"{arguments.out}, which is a folder", wanted="a file to write")
    if arguments.format == "folder" and out.is_file():
        raise ArgumentError(where="--out", got=f"{arguments.out}, which is a file", wanted="a folder to write")
    if out.exists() and Path(arguments.run).exists() and out.samefile(arguments.run):
        raise ArgumentError(where="--out", got=f"{arguments.out}, which is read", wanted="another place")
