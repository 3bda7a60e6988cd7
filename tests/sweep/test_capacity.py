from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from capacities import bounded, broken, tried
from statewise.data.copying_memory import CopyingMemory
from statewise.data.similarity import StartEndSimilarity
from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.memory.budget import orthogonal_parameters
from statewise.sweep.bisection import Strategy
from statewise.sweep.capacity import read_search, search_capacity
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.capacity_search import CapacitySearch, Network, Tuning, networks_within
from statewise.sweep.executors import ReplicaExecutor
from statewise.sweep.trial import Outcome, Trial
from statewise.train.run import RunFolder
from sweep import standin

HERE = partial(ReplicaExecutor, train=standin.train)
NETWORKS = tuple(Network(depth=depth, width=width) for depth, width in ((1, 1), (1, 2), (2, 3)))


def search(**changes: Any) -> CapacitySearch:
    usual: dict[str, Any] = {
        "like": standin.like(),
        "values": tuple(range(0, 61, 10)),
        "networks": NETWORKS,
        "rates": (standin.GOOD, standin.BETTER),
        "seeds": 1,
    }
    return CapacitySearch(**{**usual, **changes})


def capacities(result: CapacityResult) -> list[int | None]:
    return [each.capacity for each in result.networks]


@pytest.mark.parametrize("plan", [Strategy(), Strategy(method="ascending"), Strategy(at_once=3)])
def test_every_network_has_the_capacity_of_the_formula(tmp_path: Path, plan: Strategy) -> None:
    result = search_capacity(search(strategy=plan), tmp_path / "s", executor=HERE)
    assert capacities(result) == [standin.DELAY * each.depth * each.width for each in NETWORKS]
    for each, network in zip(result.networks, NETWORKS, strict=True):
        assert each.parameters == orthogonal_parameters(inputs=4, classes=4, depth=network.depth, width=network.width)
        assert each.censored == ("all solved" if each.capacity == 60 else "")
        assert each.exceptions == []
        at = next(one for one in each.tries if one.value == each.capacity)
        assert (at.solved, len(at.runs), at.best, at.median) == (2, 2, 0.992, 0.992)
    assert json.loads((tmp_path / "s" / "result.json").read_text())["networks"][0]["capacity"] == 10
    assert CapacityResult.of(json.loads((tmp_path / "s" / "result.json").read_text())) == CapacityResult.of(
        json.loads(json.dumps(result.describe()))
    )


def test_all_networks_are_asked_for_together(tmp_path: Path) -> None:
    """Before anything is known of one, the values of all the others wait."""
    seen: list[set[tuple[int, int]]] = []

    class Watched(ReplicaExecutor):
        def _step(self, waiting: Any) -> Any:
            seen.append({(trial.depth, trial.width) for unit in waiting for trial in unit.trials})
            return super()._step(waiting)

    search_capacity(search(), tmp_path / "s", executor=partial(Watched, train=standin.train))
    assert seen[0] == {(each.depth, each.width) for each in NETWORKS}


def test_none_is_solved(tmp_path: Path) -> None:
    result = search_capacity(search(values=(700, 800), networks=NETWORKS[:1]), tmp_path / "s", executor=HERE)
    (found,) = result.networks
    assert found.capacity is None
    assert found.censored == ""
    assert [each.verdict for each in found.tries] == ["failed", "failed"]
    assert "none" in result.text()


def judged(accuracy: dict[int, float] | None = None, reason: dict[int, str] | None = None, **options: Any) -> Any:
    """A trainer whose outcomes are as said, by the delay."""

    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        outcomes = standin.train(trials, folders, **told)
        delays = [getattr(trial.task, "delay", 0) for trial in trials]
        return [
            replace(
                outcome,
                accuracy=(accuracy or {}).get(delay, outcome.accuracy),
                reason=(reason or {}).get(delay, outcome.reason),
            )
            for outcome, delay in zip(outcomes, delays, strict=True)
        ]

    return partial(ReplicaExecutor, train=train)


def test_what_is_not_monotone_is_kept_and_told(tmp_path: Path) -> None:
    place = judged({15: 0.995, 10: 0.5})
    result = search_capacity(search(networks=NETWORKS[:1], values=(0, 5, 10, 15, 20)), tmp_path / "s", executor=place)
    (found,) = result.networks
    assert found.capacity == 15
    assert found.exceptions == [10]
    assert "10 not solved though 15 was: not monotone" in result.text()


def test_what_was_cut_short_is_capped_and_not_failed(tmp_path: Path) -> None:
    place = judged(reason={15: "iterations"})
    result = search_capacity(search(networks=NETWORKS[:1], values=(0, 5, 10, 15, 20)), tmp_path / "s", executor=place)
    (found,) = result.networks
    assert found.capacity == 10
    assert {each.value: each.verdict for each in found.tries}[15] == "capped"
    assert found.censored == "capped"
    assert "≥ 10" in result.text()
    assert "15 capped" in result.text()


def test_a_run_that_ended_at_its_goal_and_missed_the_test_is_capped_and_not_failed(tmp_path: Path) -> None:
    place = judged({15: 0.9899}, {15: "solved"})
    result = search_capacity(search(networks=NETWORKS[:1], values=(0, 5, 10, 15, 20)), tmp_path / "s", executor=place)
    assert {each.value: each.verdict for each in result.networks[0].tries}[15] == "capped"
    assert result.networks[0].censored == "capped"


def test_a_trial_that_cannot_be_run_is_told_and_tried_again_when_the_search_goes_on(tmp_path: Path) -> None:
    asked = search(networks=NETWORKS[:1], values=(0, 5, 10, 15, 20))
    broken = [True]

    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        if broken and getattr(trials[0].task, "delay", 0) == 10:
            raise MemoryError("no room")
        return standin.train(trials, folders, **told)

    place = partial(ReplicaExecutor, train=train)
    first = search_capacity(asked, tmp_path / "s", executor=place)
    assert capacities(first) == [5]
    assert first.networks[0].censored == "broken"
    assert "10 could not be run: MemoryError: no room" in first.text()
    broken.clear()
    again = search_capacity(asked, tmp_path / "s", executor=place, resume=True)
    assert capacities(again) == [10]
    assert again.networks[0].censored == ""


def test_the_seconds_of_a_network_end_its_search_and_more_let_it_go_on(tmp_path: Path) -> None:
    asked = search(
        like=standin.like(iterations=20),  # 0.4 s a run
        values=(0, 10, 20),
        rates=(standin.SLOW,),
        networks=NETWORKS[:1],
        network_seconds=0.2,
    )
    first = search_capacity(asked, tmp_path / "s", executor=HERE)
    (found,) = first.networks
    assert {each.value: each.verdict for each in found.tries} == {10: "capped"}
    assert found.capacity is None
    assert found.censored == "unfinished"
    assert found.ended == "seconds a network"
    assert "ended by the budget of seconds a network" in first.text()
    assert "0.2 s a network" in first.text()
    same = search_capacity(asked, tmp_path / "s", executor=HERE, resume=True)
    assert same == first
    more = search_capacity(replace(asked, network_seconds=60.0), tmp_path / "s", executor=HERE, resume=True)
    assert capacities(more) == [10]
    assert more.networks[0].ended == ""


def test_a_network_that_no_rates_were_found_for_does_not_end_the_search_of_the_others(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    full = [True]

    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        if full and trials[0].width == 2:
            raise MemoryError("no room")
        return standin.train(trials, folders, **told)

    place, asked = partial(ReplicaExecutor, train=train), search(tuning=Tuning(trials=2, at_once=2, iterations=20))
    first = search_capacity(asked, tmp_path / "s", executor=place)
    assert capacities(first) == [10, None, 60]
    assert first.networks[1].censored == "unfinished"
    assert "depth 1, 2 channels: no rates were found for it: no run that came to its end" in first.text()
    assert "no room" in first.text()
    full.clear()
    again = search_capacity(asked, tmp_path / "s", executor=place, resume=True)
    assert capacities(again) == [10, 20, 60]
    assert "no rates" not in again.text()


def test_the_seconds_of_the_search_are_those_of_its_tuning_too(tmp_path: Path) -> None:
    pytest.importorskip("optuna")

    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        time.sleep(0.1)
        return standin.train(trials, folders, **told)

    place, networks = partial(ReplicaExecutor, train=train), NETWORKS[:1]
    asked = search(tuning=Tuning(trials=1, at_once=1, iterations=20), networks=networks, seconds=0.1)
    found = search_capacity(asked, tmp_path, executor=place)
    assert (found.networks[0].tries, found.networks[0].ended) == ((), "seconds of the search")
    assert json.loads((tmp_path / "result.json").read_text())["seconds"] >= 0.1


def test_an_interruption_leaves_word_of_the_seconds_that_were_spent(tmp_path: Path) -> None:
    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        time.sleep(0.05)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_capacity(search(), tmp_path, executor=partial(ReplicaExecutor, train=train))
    assert json.loads((tmp_path / "search.json").read_text())["seconds"] >= 0.05


def test_what_could_not_be_run_or_ran_out_of_time_is_not_called_not_monotone() -> None:
    solved, unsolved = tried(30, 1.0), [tried(0, 0.5), tried(10, 0.5, "stopped"), broken(20)]
    found = replace(bounded(1, 0), values=(0, 10, 20, 30), tries=(*unsolved, solved))
    assert found.exceptions == [0]


def test_a_damaged_result_of_a_run_is_named_with_what_to_do(tmp_path: Path) -> None:
    search_capacity(search(), tmp_path, executor=HERE)
    (tmp_path / "search.json").unlink()
    damaged = next((tmp_path / "runs").glob("*/result.json"))
    for text in ("{", "[]", '{"accuracy": 1}'):
        damaged.write_text(text)
        with pytest.raises(RunFolderError, match=r"result\.json: got .* Remove the file"):
            search_capacity(search(), tmp_path, executor=HERE, resume=True)
    damaged.unlink()
    assert capacities(search_capacity(search(), tmp_path, executor=HERE, resume=True)) == [10, 20, 60]


def test_the_seconds_of_the_search_end_all(tmp_path: Path) -> None:
    asked = search(like=standin.like(iterations=20), rates=(standin.SLOW,), seconds=0.2)
    result = search_capacity(asked, tmp_path / "s", executor=HERE)
    assert all(each.ended == "seconds of the search" for each in result.networks)
    assert all(each.capacity is None for each in result.networks)
    assert {one.verdict for each in result.networks for one in each.tries} == {"capped"}
    assert "0.2 s in all" in result.text()


def test_enough_stops_the_others_and_the_interval_says_so(tmp_path: Path) -> None:
    result = search_capacity(search(enough=1), tmp_path / "s", executor=HERE)
    assert capacities(result) == [10, 20, 60]
    at = next(each for each in result.networks[0].tries if each.value == 10)
    assert at.solved == 1
    assert at.interval[0] == pytest.approx(0.0945, abs=1e-3)  # 1 of 2, by Wilson's formula
    assert at.interval[1] == 1.0


def test_a_finished_search_is_read(tmp_path: Path) -> None:
    first = search_capacity(search(), tmp_path / "s", executor=HERE)

    def train(*told: Any, **more: Any) -> list[Outcome]:
        raise AssertionError

    again = search_capacity(search(), tmp_path / "s", executor=partial(ReplicaExecutor, train=train), resume=True)
    assert again == first


def test_a_folder_with_a_search_is_refused_without_resume_and_with_other_settings(tmp_path: Path) -> None:
    search_capacity(search(networks=NETWORKS[:1]), tmp_path / "s", executor=HERE)
    with pytest.raises(RunFolderError, match="a folder with a run"):
        search_capacity(search(networks=NETWORKS[:1]), tmp_path / "s", executor=HERE)
    with pytest.raises(RunFolderError, match="seeds"):
        search_capacity(search(networks=NETWORKS[:1], seeds=3), tmp_path / "s", executor=HERE, resume=True)
    (tmp_path / "s" / "search.json").write_text("{}")
    with pytest.raises(DataError, match="Remove it"):
        search_capacity(search(networks=NETWORKS[:1]), tmp_path / "s", executor=HERE, resume=True)
    (tmp_path / "s" / "search.json").unlink()
    assert capacities(search_capacity(search(networks=NETWORKS[:1]), tmp_path / "s", executor=HERE, resume=True)) == [
        10
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"values": (5, 0)}, "increasing"),
        ({"values": ()}, "at least one"),
        ({"rates": (1e-3, 1e-3)}, "none of them twice"),
        ({"networks": (Network(depth=1, width=2), Network(depth=1, width=2, size=9))}, "each depth and width once"),
        ({"seeds": 0}, "an integer >= 1"),
        ({"seconds": 0.0}, "a number above 0"),
        ({"network_seconds": math.inf}, "a number above 0"),
        ({"seeds": 5001}, "at most 10,000 runs of a value"),
        ({"above": 1.0}, "an accuracy between 0 and 1"),
        ({"above": 0.999, "like": standin.like(goal=0.995)}, "at least 0.999, what counts as solved"),
        ({"values": (-1, 0)}, "delay"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        search(**wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"networks": (Network(depth=2, width=3, size=90, rates=((1e-3, None), (1e-4, 1e-5))),), "enough": 1},
        {"strategy": Strategy(method="ascending", misses=3), "tuning": Tuning(trials=2, iterations=5), "seconds": 3.5},
        {"like": standin.like(goal=0.999, lr_recurrent=0.1, update="full-capacity"), "network_seconds": 9.0},
        {"like": replace(standin.like(), task=StartEndSimilarity(length=8, m=2, n=3)), "values": (8, 10)},
    ],
)
def test_a_search_is_rebuilt_from_what_its_folder_holds(tmp_path: Path, changes: dict[str, Any]) -> None:
    asked = search(**changes)
    assert CapacitySearch.of(json.loads(json.dumps(asked.describe()))) == asked
    RunFolder.create(tmp_path / "s", asked.describe()).close()
    assert read_search(tmp_path / "s") == asked


def test_what_is_no_search_is_refused(tmp_path: Path) -> None:
    whole = search().describe()
    for wrong in ({**whole, "values": 3}, {**whole, "colour": 1}, {**whole, "strategy": {"pace": 1}}, {"like": 1}):
        with pytest.raises(ArgumentError, match=r"CapacitySearch\.of: got no search"):
            CapacitySearch.of(wrong)
    with pytest.raises(RunFolderError, match="no such folder"):
        read_search(tmp_path / "nowhere")
    RunFolder.create(tmp_path / "s", {"task": "language model"}).close()
    with pytest.raises(RunFolderError, match="a run of another kind"):
        read_search(tmp_path / "s")


def test_widths_are_those_of_the_thesis() -> None:
    """Ziv 2019 does not print widths; these follow from both ways to count (a table of the sizes 2^13 to 2^17)."""
    task = CopyingMemory(m=30, n=32, delay=0)
    for count, widths in (("true", [76, 48, 39, 299, 164, 127]), ("thesis", [76, 54, 45, 299, 187, 148])):
        found = networks_within(task, depths=(1, 2, 3), sizes=(2**13, 2**16), count=count)
        assert [network.width for network in found] == widths


SCRIPT = '''
import sys
from functools import partial
from statewise.sweep.capacity import search_capacity
from statewise.sweep.executors import ReplicaExecutor
from sweep import standin
from sweep.test_capacity import slow_search

steps, sleep = [], standin.time.sleep


def stall(seconds):
    """In the midst of the second run nothing goes on any more."""
    steps.append(seconds)
    sleep(60 if len(steps) == 7 else seconds)


standin.time.sleep = stall
search_capacity(slow_search(), sys.argv[1], executor=partial(ReplicaExecutor, train=standin.train), resume=True)
'''


def slow_search() -> CapacitySearch:
    like = standin.like(iterations=4)
    return search(like=like, rates=(standin.SLOW,), seeds=1, networks=NETWORKS[:2], values=(0, 10, 20, 30))


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_search_that_is_killed_goes_on_and_ends_with_the_same_answer(tmp_path: Path, how: signal.Signals) -> None:
    folder, tests = tmp_path / "s", Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        stderr=subprocess.DEVNULL,
    )
    while not (folder / "search.json").exists():  # one value is known, others are under way
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(0.2)
    process.send_signal(how)
    assert process.wait(20) != 0
    assert not (folder / "result.json").exists()
    resumed = search_capacity(slow_search(), folder, executor=HERE, resume=True)
    whole = search_capacity(slow_search(), tmp_path / "whole", executor=HERE)
    assert [replace(each, seconds=0.0) for each in resumed.networks] == [
        replace(each, seconds=0.0) for each in whole.networks
    ]
    assert capacities(resumed) == [10, 20]


def test_networks_are_searched(tmp_path: Path) -> None:
    """Real training of the smallest sizes, which solves nothing, and says that it was cut short."""
    like = standin.like(validate=32, test=32, batch=8)
    asked = CapacitySearch(like=like, values=(0, 2, 4), networks=(Network(depth=1, width=6),), rates=(1e-3,), seeds=2)
    (found,) = search_capacity(asked, tmp_path / "s", executor=ReplicaExecutor).networks
    assert found.capacity is None
    assert found.censored == "capped"
    assert {run.outcome.reason for each in found.tries for run in each.runs if isinstance(run.outcome, Outcome)} == {
        "iterations"
    }
    assert len(list((tmp_path / "s" / "runs").glob("*/result.json"))) == 2 * len(found.tries)
