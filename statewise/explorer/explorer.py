"""What can be asked of one or two networks; all that is read from files is read before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from statewise.errors import ArgumentError
from statewise.explorer.disturbance import Setting
from statewise.explorer.edits import search_edits
from statewise.explorer.machines import ShownMachine, machine_of
from statewise.explorer.neighbours import Neighbours, spread
from statewise.explorer.subjects import Example, Subject
from statewise.explorer.tracing import trace_of

SYMBOLS_TOLD, CHOICES = 64, 40
REMEMBERED = 32  # answers that cost much and depend on the setting only


@dataclass(frozen=True, kw_only=True)
class Explored:
    """A network to be explored.

    Args:
        subject: the network.
        examples: of its data; none where they cannot be read.
        why_none: why there are none, in a sentence.
    """

    subject: Subject
    examples: tuple[Example, ...] = ()
    why_none: str = ""


class Explorer:
    """Answers questions about networks; the network itself is asked by one thread at a time.

    Args:
        runs: one network, or two to be compared.

    >>> from statewise.explorer.classifying import ClassifierSubject
    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2, symbols="ab")
    >>> subject = ClassifierSubject("small", model, {"examples": {"classes": ["no", "yes"]}})
    >>> explorer = Explorer([Explored(subject=subject)])
    >>> explorer.trace(0, "abba", Setting())["steps"]
    ['START', 'a', 'b', 'b', 'a']
    """

    def __init__(self, runs: Sequence[Explored]) -> None:
        if not 1 <= len(runs) <= 2:
            raise ArgumentError(where="Explorer.runs", got=f"{len(runs)} runs", wanted="one, or two to be compared")
        self.runs = tuple(runs)
        self._lock, self._remembered = Lock(), OrderedDict[Any, dict[str, Any]]()
        self._machines = tuple(machine_of(run.subject) for run in runs)
        self._neighbours = tuple(Neighbours.of(run.subject, run.examples) if run.examples else None for run in runs)

    def about(self) -> dict[str, Any]:
        """What there is to be explored."""
        return {"runs": [self._about(place) for place in range(len(self.runs))]}

    def trace(self, run: int, text: str, setting: Setting, *, shown: int = 0) -> dict[str, Any]:
        """What happens in a network, step by step.

        Args:
            run: 0 or 1.
            text: as it was typed.
            setting: temperature and noise.
            shown: 0 for the undisturbed network, else the number of a draw.
        """
        subject, machine = self._subject(run), self._machines[run]
        if not 0 <= shown <= setting.draws:
            raise ArgumentError(where="shown", got=shown, wanted=f"a draw from 1 to {setting.draws}, or 0 for none")
        tokens = subject.read(text)
        with self._lock:
            found = machine if isinstance(machine, ShownMachine) else None
            return {"run": run, **trace_of(subject, tokens, setting, machine=found, shown=shown)}

    def disturb(self, run: int, text: str, setting: Setting, *, by: str) -> dict[str, Any]:
        """The single edits that disturb most.

        Args:
            run: 0 or 1.
            text: as it was typed.
            setting: temperature.
            by: "prediction" or "state".
        """
        subject = self._subject(run)
        tokens = subject.read(text)
        with self._lock:
            found = search_edits(subject, tokens, setting)
            answer = subject.answers(subject.follow([tokens], setting))[0]
        return {
            "run": run,
            "answer": list(answer),
            "tried": len(found.edits),
            "possible": found.possible,
            "changing": sum(found.changed),
            "edits": found.ranked(subject, by),
        }

    def nearest(self, run: int, text: str, *, by: str) -> dict[str, Any]:
        """The examples that leave a network in the most similar state.

        Args:
            run: 0 or 1.
            text: as it was typed.
            by: "cosine" or "euclidean".
        """
        tokens, neighbours = self._subject(run).read(text), self._known(run)
        with self._lock:
            found = neighbours.nearest(tokens, by)
        return {"run": run, "of": len(neighbours.examples), "examples": found}

    def fragile(self, run: int, setting: Setting) -> dict[str, Any]:
        """The examples that bear noise worst.

        Args:
            run: 0 or 1.
            setting: temperature and noise.
        """
        neighbours, key = self._known(run), (run, setting)
        if not setting.noisy:
            raise ArgumentError(where="gamma", got=0, wanted="a number above 0", remedy="Move the slider of the noise.")
        with self._lock:
            if key not in self._remembered:
                self._remembered[key] = {"run": run, **neighbours.fragile(setting)}
                if len(self._remembered) > REMEMBERED:
                    self._remembered.popitem(last=False)
            return self._remembered[key]

    def _subject(self, run: int) -> Subject:
        if not 0 <= run < len(self.runs):
            raise ArgumentError(where="run", got=run, wanted=f"a run from 0 to {len(self.runs) - 1}")
        return self.runs[run].subject

    def _known(self, run: int) -> Neighbours:
        self._subject(run)
        found = self._neighbours[run]
        if found is None:
            raise ArgumentError(
                where="examples",
                got="none",
                wanted="the data of the run",
                remedy=self.runs[run].why_none or "Start the command where the run's data can be read.",
            )
        return found

    def _about(self, place: int) -> dict[str, Any]:
        run, machine = self.runs[place], self._machines[place]
        subject, layer = run.subject, run.subject.layers[0]
        few = len(subject.alphabet) <= SYMBOLS_TOLD
        shown = isinstance(machine, ShownMachine)
        return {
            "name": subject.name,
            "kind": subject.kind,
            "cell": layer.cell.name,
            "layers": sum(each.num_layers for each in subject.layers),
            "units": layer.hidden_size,
            "bidirectional": layer.bidirectional,
            "parameters": sum(weight.numel() for weight in subject.weights()),
            "temperature": subject.temperature,
            "outcomes": len(subject.outcomes),
            "symbols": list(subject.alphabet) if few else None,
            "vocabulary": len(subject.alphabet),
            "glue": subject.glue,
            "start": subject.start,
            "most_tokens": subject.most_tokens,
            "machine": _drawn(machine) if isinstance(machine, ShownMachine) else None,
            "why_no_machine": "" if shown else machine,
            "examples": len(run.examples),
            "why_no_examples": run.why_none,
            "choices": self._choices(run),
        }

    @staticmethod
    def _choices(run: Explored) -> list[str]:
        """Some inputs to begin with, of several lengths and answers."""
        short = [each for each in run.examples if 0 < len(each.tokens) <= min(24, run.subject.most_tokens)]
        texts = [run.subject.text(short[at].tokens) for at in spread(len(short), min(CHOICES, len(short)))]
        return list(dict.fromkeys(texts))


def _drawn(machine: ShownMachine) -> dict[str, Any]:
    return {
        "svg": machine.svg,
        "drawn": list(machine.drawn),
        "arrows": [list(ends) for ends in machine.arrows],
        "names": list(machine.names),
        "classes": [machine.machine.classes[kind] for kind in machine.machine.outputs.tolist()],
        "description": machine.description,
        "told": machine.exact,
    }
