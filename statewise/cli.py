"""The commands; what they do is in the modules that they call."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping, Sequence

from jsonargparse import ArgumentParser

import statewise
from statewise import demo, doctor
from statewise.commands import certify, evaluate, extract, generate, memory, predict, reproduce, train
from statewise.commands.shared import PlainHelp, own_console
from statewise.errors import StatewiseError
from statewise.sweep.heap import keep_freed_memory

_WHAT = "Recurrent layers for PyTorch whose hidden state can be acted on between steps."

_REMEDIES: Mapping[int | None, str] = {
    errno.ENOSPC: "Make room, and type the command again; what was there before is whole, and --resume goes on.",
    errno.EDQUOT: "Make room, and type the command again; what was there before is whole, and --resume goes on.",
    errno.EACCES: "Name a place that you may use.",
    errno.EPERM: "Name a place that you may use.",
    errno.EROFS: "Name a place that can be written.",
    errno.EEXIST: "Name another folder.",
    errno.ENOTDIR: "Name another folder.",
    errno.ENOENT: "Look at the spelling, and whether it was moved.",
}

#: What trains many networks side by side.
_WITH_REPLICAS = ("memory", "reproduce")
_COMMANDS = {
    "train": train,
    "evaluate": evaluate,
    "generate": generate,
    "predict": predict,
    "extract": extract,
    "certify": certify,
    "memory": memory,
    "reproduce": reproduce,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a bad argument, or a file that cannot be used, ends it with a message and exit code 2.

    Args:
        arguments: what follows the program's name; None means those of this process.

    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    parser = _parser()
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    if arguments is None and chosen.command in _WITH_REPLICAS:
        keep_freed_memory()  # the process is this command's own
    try:
        if chosen.command == "demo":
            demo.run(seed=chosen.demo.seed, steps=chosen.demo.steps)
        elif chosen.command == "doctor":
            doctor.report()
        else:
            _COMMANDS[chosen.command].run(chosen[chosen.command], own_console())
    except StatewiseError as error:
        parser.error(str(error))
    except BrokenPipeError:
        sys.exit(1)  # whoever read the output has gone, as `head` does
    except OSError as error:
        parser.error(_told(error))
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell reports for a program stopped by Ctrl-C


def _told(error: OSError) -> str:
    """What the system says, of which file, and what to do.

    >>> _told(FileExistsError(errno.EEXIST, "File exists", "runs"))
    'runs: File exists. Name another folder.'
    """
    place = "" if error.filename is None else f"{error.filename}: "
    said = error.strerror or str(error) or type(error).__name__
    return f"{place}{said}. {_REMEDIES.get(error.errno, '')}".rstrip()


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="statewise",
        description=_WHAT,
        version=statewise.__version__,
        formatter_class=PlainHelp,  # commands take it over
        allow_abbrev=False,
        exit_on_error=True,
    )
    commands = parser.add_subcommands(dest="command")
    commands.add_subcommand("demo", _demo(), help="train a plain and three regularized networks, and compare them")
    commands.add_subcommand("doctor", _doctor(), help="tell what runs here: versions, threads, engine, C++ kernel")
    training = train.parser()
    commands.add_subcommand("train", training, help="train a language model, a classifier or a tagger on data of yours")
    train.add_kinds(training)
    commands.add_subcommand("evaluate", evaluate.parser(), help="score a text, or tagged sentences, by a trained model")
    commands.add_subcommand("generate", generate.parser(), help="let a trained model go on from a prompt")
    commands.add_subcommand("predict", predict.parser(), help="tag sentences, or name the classes of texts")
    commands.add_subcommand("extract", extract.parser(), help="read the automaton of a trained classifier")
    commands.add_subcommand("certify", certify.parser(), help="prove how often a trained classifier errs at most")
    remembering = memory.parser()
    commands.add_subcommand("memory", remembering, help="tell how much a recurrent network can remember")
    memory.add_kinds(remembering)
    commands.add_subcommand("reproduce", reproduce.parser(), help="make a published table again, beside ours")
    return parser


def _demo() -> ArgumentParser:
    parser = ArgumentParser(description="Train a plain and three regularized LSTMs on an embedded task.")
    parser.add_argument("--seed", type=int, default=0, help="of the training data, the weights and the noise")
    parser.add_argument("--steps", type=int, default=demo.STEPS, help="training steps of each network")
    return parser


def _doctor() -> ArgumentParser:
    return ArgumentParser(description="Tell what runs here, and compile the C++ kernel if that is still to be done.")
