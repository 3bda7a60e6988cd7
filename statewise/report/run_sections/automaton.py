"""The automaton that a classifier computes: its drawing, how far it may be trusted, its moves and its states."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np

from statewise.automata import Extraction, MooreMachine, UnfaithfulMachineWarning, describe, extract, to_svg, verify
from statewise.automata.captions import symbol_text
from statewise.automata.prototypes import word_prototypes
from statewise.automata.words import longest_within
from statewise.errors import NotMemorylessError, StatewiseError
from statewise.models import SequenceClassifier
from statewise.report.html import Code, DataTable, Disclosure, Figure, Note, Prose, Section, drawing_of, heat_map, shown
from statewise.report.html.pieces import Cell, Inline, Part
from statewise.report.run_sections.run import CLASSIFIER, Run

_DRAWN = 40  # states that a drawing is still readable with
_LISTED = 60
_SYMBOLS = 30  # columns of a table of moves
_MAPS = 6  # symbols whose moves are drawn
_PREFIXES = 4
_SHORT, _RANDOM = 2000, 300  # words that are compared: all short ones, and longer ones by chance
_MASS = 0.02  # of a step, from which on a centroid is worth a column
_READ = 2000  # sequences that prototypes are averaged over


def automaton(run: Run) -> Section | None:
    """The machine of a classifier of symbols, or why there is none.

    Args:
        run: any; only classifiers of sequences have this section.
    """
    if run.task != CLASSIFIER or run.of_numbers:
        return None
    model = run.model
    assert isinstance(model, SequenceClassifier)
    try:
        if model.symbols is None:
            got, wanted = "a classifier of numbers", "one of symbols: an automaton has an alphabet"
            raise NotMemorylessError(where=run.name, got=got, wanted=wanted)
        found = extract(model, classes=run.classes)
    except NotMemorylessError as error:
        return Section("The automaton", [_refused(run, model, error), *_moves_without(model)])
    parts: list[Part] = [*_trust(model, found, quick=run.quick), _drawing(found.machine), _moves(found.machine)]
    parts += [_prefixes(found), *_maps(run, found)]
    prose = (
        f"At the likeliest centroid the network is a machine of {len(found.table)} states, read off its weights "
        f"without any data; {_left(len(found.machine))} when states that no word tells apart are merged "
        "(Wang & Niepert 2019, Theorem 3.2)."
    )
    return Section("The automaton", parts, prose=prose)


def prototypes(run: Run) -> Section | None:
    """Which words each centroid stands for, by the network's own transition probabilities.

    Args:
        run: any; only classifiers of symbols with centroids have this section.
    """
    if run.task != CLASSIFIER:
        return None
    model = run.model
    assert isinstance(model, SequenceClassifier)
    if model.symbols is None or not any(model.config.centroids) or len(model.symbols) <= 3:
        return None  # of two or three symbols the moves say all
    examples = run.examples.train
    few = examples.select(range(_READ)) if len(examples) > _READ else examples
    found = word_prototypes(model, few, min_count=5, top=8)
    rows: list[tuple[Cell, ...]] = [
        (f"centroid {number}", " ".join(f"{symbol_text(word)} ({mean:.2f})" for word, mean, _ in found.words(number)))
        for number in range(len(found.table()))
    ]
    prose = (
        "The words at which the network moves to a centroid most surely, with the mean probability of that move. "
        "Centroids whose words mean alike are a reading of what the network has learnt; words that occur fewer than "
        f"{found.min_count} times are left out."
    )
    table = DataTable(headings=("centroid", "words"), rows=rows, caption="Prototypes of the centroids", left=2)
    return Section("What the centroids stand for", [table], prose=prose)


def _refused(run: Run, model: SequenceClassifier, error: StatewiseError) -> Note:
    folder = shlex.quote(str(run.folder))
    words = f"No exact automaton: got {error.got}, wanted {error.wanted}."
    if model.symbols is None:
        return Note(kind="missing", words=words)
    if not any(model.config.centroids):
        command = f"statewise train classify --data {run.told.get('source', {}).get('data', 'DATA')} --centroids 10"
        return Note(kind="missing", words=f"{words} Train with centroids:", command=command)
    words += " What is remembered beside the state belongs to no finite table. An approximate machine, by counting:"
    return Note(kind="missing", words=words, command=f"statewise extract {folder} --count")


def _moves_without(model: SequenceClassifier) -> list[Part]:
    if model.symbols is None or not any(model.config.centroids):
        return []
    return [Prose("For the same reason it has no law of moves from centroid to centroid for each symbol.", quiet=True)]


def _trust(model: SequenceClassifier, found: Extraction, *, quick: bool) -> list[Part]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfaithfulMachineWarning)
        longest = longest_within(len(found.machine.alphabet), _SHORT)
        checked = verify(model, found.machine, max_length=longest, random_words=100 if quick else _RANDOM)
    proof = f"no proof, since {checked.no_proof}" if checked.proof is None else checked.proof.sentence
    rows = [("the network as it is", str(checked.soft))]
    if checked.hard is not None:
        rows.append(("at the likeliest centroid", str(checked.hard)))
    rows += [("smallest margin", shown(found.min_margin)), ("centroids that words reach", _used(found))]
    table = DataTable(headings=("question", "answer"), rows=rows, caption="How far the machine may be trusted", left=2)
    notes = [Note(kind="holds" if checked.proven else "care", words=proof)]
    if checked.counter_examples:
        word = checked.counter_examples[0].word
        named = "".join(word) if isinstance(word, str) else " ".join(word)
        differs: list[Inline] = ["The network as it is answers ", Code(named or "ε"), " otherwise than this machine: "]
        differs.append("the machine says what it would do at the likeliest centroid, not what it does.")
        notes.insert(0, Note(kind="care", words=differs))
    return [*notes, table]


def _left(states: int) -> str:
    return "1 is left" if states == 1 else f"{states} are left"


def _used(found: Extraction) -> str:
    return " and ".join(
        f"{len(used)} of {len(used) + len(unused)}" for used, unused in zip(found.used, found.unused, strict=True)
    )


def _drawing(machine: MooreMachine) -> Part:
    if len(machine) > _DRAWN:
        words = f"Not drawn: {len(machine)} states; a drawing is readable up to about 30."
        return Note(kind="missing", words=words)
    accepting = "Two rings: the words that end there are accepted. " if len(machine.classes) == 2 else ""
    caption = f"The arrow from nowhere leads to the start. {accepting}Numbers name the centroids of a state."
    drawn = drawing_of(to_svg(machine, hide_sinks=len(machine) > 12))
    return Figure(svg=drawn, title="The machine", alt=describe(machine), caption=caption)


def _moves(machine: MooreMachine) -> Part:
    """The table of the machine, which says in words what its drawing shows."""
    symbols = machine.alphabet[:_SYMBOLS]
    names = machine.labels or tuple(map(str, range(len(machine))))
    rows: list[tuple[Cell, ...]] = []
    for state in range(min(len(machine), _LISTED)):
        targets = [names[int(machine.transitions[state, place])] for place in range(len(symbols))]
        begin = " (start)" if state == machine.start else ""
        rows.append((f"{names[state]}{begin}", machine.classes[int(machine.outputs[state])], *targets))
    left_out = len(machine.alphabet) - len(symbols)
    caption = "From each state, where each symbol leads" + (f"; {left_out:,} symbols are left out" if left_out else "")
    headings = ("state", "class", *map(symbol_text, symbols))
    table = DataTable(headings=headings, rows=rows, caption=caption, left=2)
    return Disclosure("The table of its moves", [table])


def _prefixes(found: Extraction) -> Part:
    """The shortest words that lead to each state: what a state remembers of what was read."""
    machine = found.machine
    names = machine.labels or tuple(map(str, range(len(machine))))
    rows: list[tuple[Cell, ...]] = [
        (names[state], machine.classes[int(machine.outputs[state])], Code(", ".join(words) or "none that is short"))
        for state, words in sorted(shortest_prefixes(machine).items())[:_LISTED]
    ]
    caption = "The shortest beginnings of words after which the machine is in a state (ε is the empty one)"
    return DataTable(headings=("state", "class", "after reading"), rows=rows, caption=caption, left=3)


def shortest_prefixes(machine: MooreMachine, *, each: int = _PREFIXES, most: int = 4000) -> dict[int, list[str]]:
    """For each state the shortest words that lead there.

    Args:
        machine: any.
        each: how many for a state.
        most: words that are looked at.

    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> shortest_prefixes(even, each=2)
    {0: ['ε', '0'], 1: ['1', '01']}
    """
    joint = "" if all(len(symbol) == 1 for symbol in machine.alphabet) else " "
    found: dict[int, list[str]] = {state: [] for state in range(len(machine))}
    queue: deque[tuple[int, tuple[str, ...]]] = deque([(machine.start, ())])
    looked = 0
    while queue and looked < most and any(len(words) < each for words in found.values()):
        state, word = queue.popleft()
        looked += 1
        if len(found[state]) < each:
            found[state].append(joint.join(map(symbol_text, word)) if word else "ε")
        for symbol, target in zip(machine.alphabet, map(int, machine.transitions[state]), strict=True):
            if len(queue) < most:
                queue.append((target, (*word, symbol)))
    return found


def _maps(run: Run, found: Extraction) -> list[Part]:
    """For each symbol, how probable the network moves from one centroid to another."""
    if len(found.network.layers) > 1:
        words = "With several layers the law over tuples of centroids is not one matrix a symbol."
        return [Note(kind="missing", words=words)]
    near = np.array(softly_reached(found.probabilities, found.used[0]), dtype=np.int64)
    names = [f"s{number}" for number in near]
    laws = found.probabilities[:, near][:, :, near]
    symbols, how = _frequent(run, found.network.symbols)
    maps = [
        heat_map(
            laws[found.network.symbols.index(symbol)].tolist(),
            rows=names,
            columns=names,
            title=f"Moves at {symbol_text(symbol)}",
            what="probability",
            low=0.0,
            high=1.0,
            row_name="from",
            column_name="to",
        )
        for symbol in symbols
    ]
    words = (
        f"The law of the next centroid at the network's own temperature, {how}; centroids that are left out get less "
        f"than {_MASS:.0%} of a step from each of those that are shown. A row of one dark cell is a step that the "
        "network makes like an automaton."
    )
    return [Section("Moves from centroid to centroid", maps, prose=words)]


def softly_reached(laws: np.ndarray, begin: Sequence[int], *, mass: float = _MASS) -> list[int]:
    """The centroids that a soft network moves to: those to begin with, and what gets enough of a step from them.

    Args:
        laws: (symbols, k, k), the law of the next centroid.
        begin: centroids that words reach.
        mass: the probability that is enough.

    >>> softly_reached(np.array([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]), [0])
    [0, 1]
    """
    reached = np.zeros(laws.shape[1], dtype=bool)
    reached[list(begin)] = True
    for _ in range(len(reached)):
        reached |= (laws[:, reached] >= mass).any(axis=(0, 1))
    return [int(number) for number in np.flatnonzero(reached)]


def _frequent(run: Run, symbols: Sequence[str]) -> tuple[list[str], str]:
    if len(symbols) <= _MAPS:
        return list(symbols), "for every symbol"
    try:
        read = run.examples.train
        counts = Counter(np.asarray(read.tokens).ravel().tolist())
    except (StatewiseError, OSError, AttributeError):
        return list(symbols[:_MAPS]), f"for the first {_MAPS} of {len(symbols):,} symbols"
    most = [symbols[place] for place, _ in counts.most_common() if 0 <= place < len(symbols)][:_MAPS]
    return most, f"for the {_MAPS} most frequent of {len(symbols):,} symbols"
