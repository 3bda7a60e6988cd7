"""``statewise completion``: the script by which a shell completes commands, options and their values."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.catalogue import COMMANDS
from statewise.commands.shared import command_parser

_BASH = """\
# Completion of statewise {version}. In ~/.bashrc: eval "$(statewise completion bash)"
_statewise() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words=""
    COMPREPLY=()
    case "$command" in
{kinds}
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{firsts}" -- "$current")); return
    fi
    case "$command $previous" in
{values}
    esac
    if [[ "$current" == -* ]]; then
        case "$command" in
{options}
        esac
        COMPREPLY=($(compgen -W "$words" -- "$current")); return
    fi
    COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -o bashdefault -F _statewise statewise
"""
_ZSH = """\
#compdef statewise
# In ~/.zshrc: eval "$(statewise completion zsh)"
autoload -U +X compinit && compinit -u
autoload -U +X bashcompinit && bashcompinit
"""
_FISH = """\
# Completion of statewise {version}. In ~/.config/fish/config.fish: statewise completion fish | source
"""
SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Args:
        name: such as ``--epochs``.
        help: its sentence.
        values: those that it may have; empty where they are not a few words.
        takes: whether it takes a value at all.
    """

    name: str
    help: str
    values: tuple[str, ...]
    takes: bool


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Print the script by which a shell completes commands, options and their values.",
        'eval "$(statewise completion bash)"',
        "statewise completion zsh",
        "statewise completion fish",
    )
    made.add_argument("shell", choices=SHELLS, help="which shell")
    return made


def run(arguments: Any, console: Console) -> None:
    """Print the script.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    console.file.write(script(arguments.shell))


def script(shell: str) -> str:
    """The script for a shell.

    Args:
        shell: "bash", "zsh" or "fish".
    """
    options = {name: tuple(_options(entry.load().parser())) for name, entry in COMMANDS.items()}
    if shell == "fish":
        return _fish(options)
    return (_ZSH if shell == "zsh" else "") + _bash(options)


def _options(made: ArgumentParser) -> Iterator[Option]:
    for action in made._actions:
        for name in action.option_strings:
            if name.startswith("--") and action.help is not SUPPRESS:
                values = tuple(map(str, action.choices or ()))
                yield Option(name, (action.help or "").split(";")[0], values, action.nargs != 0)


def _bash(options: Mapping[str, tuple[Option, ...]]) -> str:
    """A script of tables: which kinds a command has, which values an option, which options a command."""
    import statewise

    groups: dict[str, list[str]] = {}
    for name in options:
        first, _, kind = name.partition(" ")
        groups.setdefault(first, []).extend([kind] if kind else [])
    kinds = [
        f"        {first})\n"
        f'            if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "{" ".join(names)}" -- "$current")); '
        f"return; fi\n"
        f'            command="{first} ${{COMP_WORDS[2]}}" ;;'
        for first, names in groups.items()
        if names
    ]
    values = [
        f'        "{name} {option.name}") COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$current")); return;;'
        for name, found in options.items()
        for option in found
        if option.values
    ]
    lists = {name: " ".join(option.name for option in found) for name, found in options.items()}
    words = [f'            "{name}") words="{listed}" ;;' for name, listed in lists.items()]
    return _BASH.format(
        version=statewise.__version__,
        firsts=" ".join([*groups, "--help", "--version"]),
        kinds="\n".join(kinds),
        values="\n".join(values),
        options="\n".join(words),
    )


def _fish(options: Mapping[str, tuple[Option, ...]]) -> str:
    """A line for each command and each option."""
    import statewise

    lines = [_FISH.format(version=statewise.__version__).rstrip()]
    for name, entry in COMMANDS.items():
        first, _, kind = name.partition(" ")
        at = f"__fish_seen_subcommand_from {first}" if kind else "__fish_use_subcommand"
        lines.append(f"complete -c statewise -f -n '{at}' -a {kind or first} -d {_quoted(entry.help)}")
        if kind:
            lines.append(f"complete -c statewise -f -n __fish_use_subcommand -a {first}")
        here = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        for option in options[name]:
            takes = f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -r" if option.takes else ""
            lines.append(f"complete -c statewise -n '{here}' -l {option.name[2:]}{takes} -d {_quoted(option.help)}")
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _quoted(text: str) -> str:
    r"""A text as fish reads it.

    >>> print(_quoted("the model's"))
    'the model\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", " ")
    return f"'{escaped}'"
