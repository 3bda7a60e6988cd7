"""``statewise explore``: a web page on this machine to play with a trained network."""

from __future__ import annotations

import json
import threading
import webbrowser
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.explored import explored
from statewise.commands.shared import command_parser
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError
from statewise.explorer import Address, Explorer, serve
from statewise.train.telling import say

EXAMPLES, MOST_EXAMPLES = 2_000, 20_000


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Open a web page on this machine to play with a trained network, or to compare two: type a word or a sentence, "
        "and watch states, gates, centroids and predictions token by token; change temperature and noise; find the "
        "edits that disturb most, and the training inputs that are nearest.",
        "statewise explore runs/tomita-4 --open",
        "statewise explore runs/plain runs/regularized --port 8123",
        "statewise explore runs/names --examples 0 --json",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run of statewise train classify, lm or tag")
    add("other", type=str, nargs="?", help="the folder of another run, to be compared on the same input")
    add("--port", type=int, default=0, help="to listen on, on 127.0.0.1 only; 0 takes a free one")
    add(
        "--examples", type=int, default=EXAMPLES, help="how many inputs of the run's own data are read, to compare with"
    )
    add("--open", action="store_true", help="open the page in a browser")
    add("--json", action="store_true", help="print the address as a line of JSON, for programs")
    return made


def run(arguments: Any, console: Console) -> None:
    """Read the runs, and serve until Ctrl-C.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    if not 0 <= arguments.examples <= MOST_EXAMPLES:
        wanted = f"a whole number from 0 to {MOST_EXAMPLES}"
        raise ArgumentError(where="--examples", got=arguments.examples, wanted=wanted)
    folders = [arguments.run, *([arguments.other] if arguments.other else [])]
    with one_thread():
        explorer = Explorer([explored(folder, most=arguments.examples) for folder in folders])

        def ready(address: Address) -> None:
            _tell(console, explorer, address, as_json=arguments.json)
            if arguments.open:  # a browser may keep its caller waiting
                threading.Thread(target=webbrowser.open, args=(address.url,), daemon=True).start()

        serve(explorer, port=arguments.port, ready=ready)


def _tell(console: Console, explorer: Explorer, address: Address, *, as_json: bool) -> None:
    if as_json:
        told = {"url": address.url, "port": address.port, "runs": [run.subject.name for run in explorer.runs]}
        console.file.write(json.dumps(told) + "\n")
    else:
        for run in explorer.runs:
            what = f"{run.subject.name}: a {run.subject.kind}, {len(run.examples):,} examples to compare with."
            say(console, f"{what} {run.why_none}".rstrip())
        console.file.write(f"{address.url}\n")
        say(console, "Open this address in a browser on this machine. Ctrl-C ends.")
    console.file.flush()
