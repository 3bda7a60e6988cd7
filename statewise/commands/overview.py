"""What ``statewise --help`` and a slip in the name of a command print; nothing heavy is imported for it."""

from __future__ import annotations

from statewise.commands.catalogue import COMMANDS, GROUPS

_WHAT = "Recurrent networks that generalize, remember and can be understood."
_EXAMPLES = (
    "statewise demo",
    "statewise compare mydata.csv --minutes 10",
    "statewise train classify --data sample --automaton --out runs/words",
    "statewise report runs/words",
    "statewise explore runs/words --open",
)
_CODES = (
    "Exit codes: 0 done; 1 whoever read the output has gone; 2 something that was typed, or a file, cannot be used "
    "(the message says what to do); 130 stopped by Ctrl-C."
)
_WIDTH = 80


def overview(first: str = "") -> str:
    """Every command with what it is for, or those that begin with a word.

    Args:
        first: such as "train"; empty for all.

    >>> print(overview("memory"))
    usage: statewise memory KIND [OPTIONS]
    <BLANKLINE>
    understand it:
      memory rank      how much almost all networks of a shape can remember, exactly
      memory advise    depths and widths within a budget, and what each remembers
      memory capacity  the hardest task that trained networks solve
    <BLANKLINE>
    Add --help to a command for its options and examples.
    """
    shown = {
        title: {name: entry.help for name, entry in entries.items() if not first or name.split()[0] == first}
        for title, entries in GROUPS.items()
    }
    width = max(len(name) for entries in shown.values() for name in entries)
    usage = f"usage: statewise {first} KIND [OPTIONS]" if first else "usage: statewise COMMAND [OPTIONS]"
    lines = [usage, "", *([] if first else [_WHAT, ""])]
    for title, entries in shown.items():
        if entries:
            lines += [f"{title}:", *(f"  {name:<{width}}  {told}" for name, told in entries.items()), ""]
    if not first:
        lines += ["examples:", *(f"  {example}" for example in _EXAMPLES), ""]
        lines += ["options:", "  -h, --help  show this and exit", "  --version   show the version and exit", ""]
    lines.append("Add --help to a command for its options and examples.")
    return "\n".join(lines if first else [*lines, *_wrapped(_CODES)])


def slip(words: list[str]) -> str:
    """What to say to words that begin with no command.

    Args:
        words: that were typed.

    >>> slip(["dmeo"])
    'dmeo: got no command, wanted one of those that statewise --help lists. Did you mean statewise demo?'
    >>> slip(["train", "tga"])
    'train tga: got no command, wanted one of those that statewise --help lists. Did you mean statewise train tag?'
    """
    if not words:
        return "statewise: got no command, wanted one of those above. Start with statewise demo."
    from difflib import get_close_matches

    plain = [word for word in words[:2] if not word.startswith("-")] or words[:1]
    groups = {name.split()[0] for name in COMMANDS}
    typed = " ".join(plain) if plain[0] in groups else plain[0]
    near = get_close_matches(typed, [*COMMANDS, *groups], n=1, cutoff=0.5)
    remedy = f" Did you mean statewise {near[0]}?" if near else " statewise --help lists them."
    return f"{typed}: got no command, wanted one of those that statewise --help lists.{remedy}"


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, _WIDTH)
