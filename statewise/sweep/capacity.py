"""The search for the hardest task that networks can solve: many networks, values, rates and seeds at once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from statewise.errors import DataError, RunFolderError, StatewiseError
from statewise.files import read_object, write_atomically
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.capacity_search import CapacitySearch
from statewise.sweep.course import Course
from statewise.sweep.executors import Executor
from statewise.sweep.trial import Trial
from statewise.sweep.tuned_search import tuned
from statewise.train.metrics import strict
from statewise.train.run import RunFolder
from statewise.train.telling import say

SEARCH, RESULT, RUNS, TUNING = "search.json", "result.json", "runs", "tuning"
#: What may be another when a search goes on: budgets of time; the runs that were cut short by them go on too.
_MAY_DIFFER = ("seconds", "network_seconds")
_FORMAT = 1


def search_capacity(
    search: CapacitySearch,
    folder: Path | str,
    *,
    executor: Callable[[Path], Executor],
    resume: bool = False,
    console: Console | None = None,
) -> CapacityResult:
    """Find the largest value that each network solves.

    The next values of all networks go to the executor together, so that workers stay busy. After every value the search
    is written down; with ``resume`` a search that was killed goes on from there and from the folders of its runs, and
    ends with the same answer.

    Args:
        search: what is looked for.
        folder: of the search: ``search.json``, in the end ``result.json``, under ``runs`` a folder for each run, and
            under ``tuning`` the studies of a search that tunes.
        executor: makes the place that trains, given the folder of the runs; it is closed at the end.
        resume: go on with the search that is there; without one, begin. Its budgets of time may be larger then.
        console: where to tell of every value that is begun, and of every one that is known; None for silence.
    """
    folder = Path(folder)
    # The place first: if it cannot be had, there is no search yet to go on with.
    with (
        executor(folder / RUNS) as place,
        RunFolder.create(folder, search.describe(), resume=resume, may_differ=_MAY_DIFFER) as held,
    ):
        began = time.monotonic()
        search, without = tuned(search, folder / TUNING, executor=executor, console=console)
        courses = [Course(search, network, folder / RUNS, without.get(network, "")) for network in search.networks]
        before = _recall(held.path / SEARCH, courses) if resume else 0.0
        return _Search(search, folder, courses, place, began - before, console).work()


def read_search(folder: Path | str) -> CapacitySearch:
    """What the search in a folder was told, to go on with.

    Args:
        folder: of the search.

    Raises:
        RunFolderError: there is none.
    """
    config = Path(folder) / "config.json"
    if not config.exists():
        there = Path(folder).is_dir(), Path(folder).exists()
        got = {(True, True): "a folder without a search", (False, True): "a file"}.get(there, "no such folder")
        remedy = "Name its folder." if got == "a file" else "Begin one there: search_capacity without resume."
        raise RunFolderError(where=str(folder), got=got, wanted="the folder of a search", remedy=remedy)
    told = RunFolder(folder).config()
    wanted, remedy = "a search for capacities", "Use the folder of another search, or begin one in a new folder."
    if not told.keys() >= {"like", "networks"}:
        raise RunFolderError(where=str(folder), got="a run of another kind", wanted=wanted, remedy=remedy)
    try:
        return CapacitySearch.of(told)
    except StatewiseError as error:
        got = f"what this version cannot read ({error})"
        raise RunFolderError(where=str(config), got=got, wanted=wanted, remedy=remedy) from error


class _Search:
    """A search under way."""

    def __init__(
        self,
        search: CapacitySearch,
        folder: Path,
        courses: list[Course],
        place: Executor,
        began: float,
        console: Console | None,
    ) -> None:
        self.search, self.folder, self.courses, self.place, self.console = search, folder, courses, place, console
        self.began = began  # as time.monotonic() counts; what an earlier process took is a part of it, and tuning
        self.deadline = None if search.seconds is None else time.time() + search.seconds - self.seconds
        self.whose: dict[Trial, Course] = {}

    @property
    def seconds(self) -> float:
        """Since the search began, those before a kill included."""
        return time.monotonic() - self.began

    def work(self) -> CapacityResult:
        try:
            for course in self.courses:
                self._go_on(course)
            for ended in self.place.results():
                course = self.whose.pop(ended.trial)
                found = course.take(ended)
                if found is not None:
                    say(self.console, course.told(found))
                    self._write()
                if not course.waiting:
                    self._go_on(course)
        finally:
            self._write()  # Ctrl-C too: the seconds that were spent are not forgotten
        result = self.result()
        text = json.dumps(strict({**result.describe(), "seconds": round(self.seconds, 3)}, RESULT), indent=2)
        write_atomically(self.folder / RESULT, text + "\n")
        return result

    def result(self) -> CapacityResult:
        return CapacityResult(search=self.search.describe(), networks=tuple(course.found() for course in self.courses))

    def _go_on(self, course: Course) -> None:
        """Ask for the next values of a network, if there is any and time for it."""
        late = self.deadline is not None and time.time() >= self.deadline
        trials = course.begin_next(late=late)
        if not trials:
            return
        for line in course.told_begun():
            say(self.console, line)
        self.whose.update(dict.fromkeys(trials, course))
        self.place.submit(
            trials,
            enough=self.search.enough,
            above=self.search.above,
            seconds=course.seconds_left,
            deadline=self.deadline,
        )

    def _write(self) -> None:
        document = {
            "format": _FORMAT,
            "seconds": self.seconds,
            "networks": [course.describe() for course in self.courses],
        }
        text = json.dumps(strict(document, SEARCH), indent=1, allow_nan=False)
        write_atomically(self.folder / SEARCH, text + "\n")


def _recall(path: Path, courses: list[Course]) -> float:
    """Tell the networks what an earlier process found out; gives the seconds that it took."""
    if not path.exists():
        return 0.0
    wanted = "what this version has written"
    remedy = "Remove it: what the folders of the runs hold is read again."
    document = read_object(path, wanted=wanted, remedy=remedy, error=DataError)
    try:
        if document["format"] != _FORMAT:
            raise ValueError(f"format {document['format']}")
        for course, known in zip(courses, document["networks"], strict=True):
            course.recall(known)
        return float(document["seconds"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        got = f"no file of a search ({error})"
        raise DataError(where=str(path), got=got, wanted=wanted, remedy=remedy) from error
