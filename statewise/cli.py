"""The commands; what they do is in the modules that they call, which are imported when one is called."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from statewise.commands.catalogue import COMMANDS, Entry, chosen
from statewise.commands.overview import overview, slip

_REMEDIES: Mapping[int | None, str] = {
    errno.ENOSPC: "Make room, and type the command again; what was there before is whole, and --resume goes on.",
    errno.EDQUOT: "Make room, and type the command again; what was there before is whole, and --resume goes on.",
    errno.EFBIG: "Make room, and type the command again; what was there before is whole, and --resume goes on.",
    errno.EACCES: "Name a place that you may use.",
    errno.EPERM: "Name a place that you may use.",
    errno.EROFS: "Name a place that can be written.",
    errno.EEXIST: "Name another folder.",
    errno.ENOTDIR: "Name another folder.",
    errno.ENOENT: "Look at the spelling, and whether it was moved.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a bad argument, or a file that cannot be used, ends it with a message and exit code 2.

    Args:
        arguments: what follows the program's name; None means those of this process.

    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    name, rest = chosen(words)
    try:
        try:
            if name is None:
                _no_command(words)
            _run(name, COMMANDS[name], rest, own=arguments is None)
        except SystemExit as ended:
            _flush(told=bool(ended.code))
            raise
        _flush()
    except BrokenPipeError:
        _silence()
        sys.exit(1)  # whoever read the output has gone, as `head` does
    except OSError as error:  # the output itself cannot be written: commands tell of other files
        _silence()
        _refuse(name or "", _told(error))
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell reports for a program stopped by Ctrl-C


def _run(name: str, entry: Entry, words: list[str], *, own: bool) -> None:
    """Run one command.

    Args:
        name: of the command.
        entry: of the list.
        words: that were typed after its name.
        own: whether the process is this command's own.
    """
    from statewise.errors import StatewiseError

    module = entry.load()
    parser = module.parser()
    parser.prog = f"statewise {name}"
    asked = parser.parse_args(words)
    if own and entry.replicas:
        from statewise.sweep.heap import keep_freed_memory

        keep_freed_memory()
    as_json = bool(asked.get("json")) and not entry.speaks_json
    try:
        found = module.run(asked, _console(as_json))
    except StatewiseError as error:
        _refuse(name, str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        _refuse(name, _told(error))
    if as_json and found is not None:
        print(_json_text(found))


def _flush(*, told: bool = False) -> None:
    """Write what was printed now, so that a reader who has gone, or a disk that is full, is met here.

    Args:
        told: whether a message has been printed already, which stands for that of an error here too.
    """
    try:
        sys.stdout.flush()
    except OSError:
        if not told:
            raise
        _silence()


def _no_command(words: list[str]) -> NoReturn:
    """Help, the version, or what is wrong with words that begin with no command."""
    first = words[0] if words else ""
    kinds = {command.split()[0] for command in COMMANDS if " " in command}
    if first in ("-h", "--help"):
        print(overview())
    elif first == "--version":
        import statewise

        print(f"statewise {statewise.__version__}")
    elif first in kinds and (len(words) == 1 or words[1] in ("-h", "--help")):
        print(overview(first))
        if len(words) == 1:
            _refuse(first, f"{first}: got no kind, wanted one of those above.")
    else:
        if not words:
            print(overview(), file=sys.stderr)
        _refuse("", slip(words))
    sys.exit(0)


def _refuse(name: str, message: str) -> NoReturn:
    """End with exit code 2 and a message of one paragraph, after which a person knows what to do."""
    command = f"statewise {name}".rstrip()
    print(f"{command}: error: {message}\nHelp: {command} --help", file=sys.stderr)
    sys.exit(2)


def _console(as_json: bool) -> Any:
    """Where a command prints: standard output, or standard error if that is for JSON alone."""
    from statewise.commands.shared import own_console

    return own_console(stderr=as_json)


def _json_text(found: Mapping[str, Any]) -> str:
    """A result as one object, in which what is no number is null."""
    from statewise.train.metrics import strict

    return json.dumps(strict(found, "result"), indent=2, ensure_ascii=False)


def _silence() -> None:
    """Let nothing be written at the end of the process to a reader who has gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: OSError) -> str:
    """What the system says, of which file, and what to do.

    >>> _told(FileExistsError(errno.EEXIST, "File exists", "runs"))
    'runs: File exists. Name another folder.'
    """
    place = "" if error.filename is None else f"{error.filename}: "
    said = error.strerror or str(error) or type(error).__name__
    return f"{place}{said}. {_REMEDIES.get(error.errno, '')}".rstrip()
