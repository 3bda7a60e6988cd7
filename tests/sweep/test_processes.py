from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from contracts.executors import ExecutorContract
from statewise.errors import ArgumentError
from statewise.sweep.executors import Executor
from statewise.sweep.folders import folder_name
from statewise.sweep.processes import ProcessExecutor
from statewise.sweep.seat import read_outcome
from statewise.sweep.trial import Outcome
from statewise.train.run import RunFolder
from sweep import standin


class TestProcessExecutor(ExecutorContract):
    @classmethod
    def make(cls, folder: Path) -> Executor:
        return ProcessExecutor(folder, workers=2, replicas=3, train=standin.train)


@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_trains_loses_nothing(tmp_path: Path) -> None:
    """kill -9 of a process that trains: its trials go on in another from where they were, the others' too."""
    trials = [standin.like(lr=standin.SLOW, seed=seed, iterations=60) for seed in range(2)]
    with ProcessExecutor(tmp_path, workers=2, train=standin.train) as place:
        place.submit(trials)
        victim = tmp_path / folder_name(trials[0]) / "resume.json"
        killer = threading.Thread(target=kill_holder_when_there, args=(victim,))
        killer.start()
        found = {result.trial: result.outcome for result in place.results()}
        killer.join()
    for trial in trials:
        outcome = found[trial]
        assert isinstance(outcome, Outcome)
        assert outcome.reason == "converged"
        assert outcome.best_iteration == 60
    assert standin.attempts(tmp_path / folder_name(trials[0])) == 2
    assert standin.attempts(tmp_path / folder_name(trials[1])) == 1


def kill_holder_when_there(sign: Path) -> None:
    """Kill the process that holds the run of a folder, as soon as it has a resume point."""
    while not sign.exists():
        time.sleep(0.01)
    holder = int((sign.parent / ".lock").read_text().split()[1])
    assert holder != os.getpid()
    os.kill(holder, signal.SIGKILL)


@pytest.mark.slow
def test_closing_ends_the_workers_and_leaves_runs_to_go_on_from(tmp_path: Path) -> None:
    trial = standin.like(lr=standin.SLOW, iterations=10_000)
    place = ProcessExecutor(tmp_path, workers=1, train=standin.train)
    with place:
        place.submit([trial])
        place._begin(place._waiting)
        sign = tmp_path / folder_name(trial) / "resume.json"
        while not sign.exists():
            time.sleep(0.01)
        process = place._crew[0].process.pid
    assert process is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert read_outcome(sign.parent) is None
    assert list(place.results()) == []


def test_a_wrong_number_of_workers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"ProcessExecutor\.workers: got 0"):
        ProcessExecutor(tmp_path, workers=0)


SCRIPT = """
import sys
from pathlib import Path
from statewise.sweep.processes import ProcessExecutor
from sweep import standin
if __name__ == "__main__":
    with ProcessExecutor(sys.argv[1], workers=1, train=standin.train) as place:
        list(place.run([standin.like(lr=standin.SLOW, iterations=10_000)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_when_their_master_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    """So that a search that goes on at once finds nobody in its folders."""
    script, tests = tmp_path / "script.py", Path(__file__).parents[1]
    script.write_text(SCRIPT)
    master = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "runs")],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        stderr=subprocess.DEVNULL,
    )
    trial = standin.like(lr=standin.SLOW, iterations=10_000)
    sign = tmp_path / "runs" / folder_name(trial) / "resume.json"
    while not sign.exists():
        assert master.poll() is None
        time.sleep(0.01)
    worker = int((sign.parent / ".lock").read_text().split()[1])
    assert worker != master.pid
    master.send_signal(how)
    assert master.wait(40) != 0
    for _ in range(500):
        if not Path(f"/proc/{worker}").exists():
            break
        time.sleep(0.02)
    with RunFolder.create(sign.parent, trial.describe(), resume=True) as run:
        found = run.load_resume()
    assert found is not None
    assert found[1]["step"] > 0
