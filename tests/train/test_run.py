"""The folder of a run survives kills, refuses other runs, and gives back what was put in, bit for bit."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, RunFolderError, RunInUseError
from statewise.train.run import RunFolder
from train.forks import Forks

CONFIG = {"model": {"sizes": (650, 650), "tied": True}, "lr": 30.0, "epochs": 40}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path / "run", CONFIG) as folder:
        yield folder


def resumed(run: RunFolder, **options: Any) -> RunFolder:
    run.close()
    return RunFolder.create(run.path, CONFIG, resume=True, **options)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


class TestTensors:
    def test_every_dtype_comes_back_bit_for_bit(self, run: RunFolder) -> None:
        dtypes = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.uint8, torch.int64]
        tensors = {str(dtype): torch.tensor([0, 1, 3, 250]).to(dtype) for dtype in dtypes}
        tensors |= {"scalar": torch.tensor(3), "empty": torch.zeros(0, 4), "nothing": torch.zeros(0)}
        tensors |= {"odd values": torch.tensor([math.nan, -math.inf, -0.0]), "generator": torch.get_rng_state()}
        run.save_resume(tensors, {})
        loaded = run.load_resume()
        assert loaded is not None
        assert set(loaded[0]) == set(tensors)
        for name, tensor in tensors.items():
            now = loaded[0][name]
            assert (now.dtype, now.shape) == (tensor.dtype, tensor.shape)
            assert torch.equal(now.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))

    def test_a_generator_goes_on_where_it_was(self, run: RunFolder, generator: torch.Generator) -> None:
        run.save_resume({"generator": generator.get_state()}, {})
        expected = torch.randn(3, generator=generator)
        loaded = run.load_resume()
        assert loaded is not None
        other = torch.Generator()
        other.set_state(loaded[0]["generator"])
        assert torch.equal(torch.randn(3, generator=other), expected)

    def test_a_tied_weight_is_stored_once_and_stays_tied(self, run: RunFolder) -> None:
        model = nn.ModuleDict({"embed": nn.Embedding(1000, 8), "decode": nn.Linear(8, 1000)})
        model["decode"].weight = model["embed"].weight
        run.save_model(model.state_dict(), {"perplexity": 70.5})
        assert run.model_path.stat().st_size < 1.3 * 1000 * 9 * 4
        state, metadata = run.load_model()
        assert metadata == {"perplexity": 70.5}
        assert state["embed.weight"] is state["decode.weight"]
        model.load_state_dict(state)

    def test_views_of_one_memory_that_differ_keep_their_own_values(self, run: RunFolder) -> None:
        base = torch.arange(12.0).reshape(3, 4)
        tensors = {"all": base, "row": base[0], "column": base[:, 1], "turned": base.T, "again": base[:]}
        run.save_model(tensors)
        state, _ = run.load_model()
        assert all(torch.equal(state[name], tensor) for name, tensor in tensors.items())
        assert state["again"] is state["all"]

    def test_what_is_no_tensor_is_refused_by_name(self, run: RunFolder, as_users_have_it: None) -> None:
        numbers: Any = {"weight": 3.0}
        with pytest.raises(DtypeError, match=r"tensors\['weight'\]: got float, wanted a tensor"):
            run.save_model(numbers)
        with pytest.raises(ArgumentError, match="a name that the file format has not taken"):
            run.save_model({"__metadata__": torch.zeros(1)})


class TestDocuments:
    def test_a_document_comes_back_with_numbers_to_the_last_bit(self, run: RunFolder) -> None:
        document = {"epoch": 3, "lr": 30 / 1.2**7, "best": None, "trace": [0.1, 1e-300], "name": "état", "on": True}
        run.save_resume({}, document)
        assert run.load_resume() == ({}, document)

    def test_the_readable_copy_says_the_same(self, run: RunFolder) -> None:
        run.append_metrics({"epoch": 1})
        run.save_resume({}, {"epoch": 1})
        assert json.loads((run.path / "resume.json").read_text()) == {"epoch": 1, "metrics_count": 1}

    def test_the_truth_is_the_one_file_and_not_its_copy(self, run: RunFolder) -> None:
        run.save_resume({}, {"epoch": 1})
        (run.path / "resume.json").write_text("torn {")
        assert run.load_resume() == ({}, {"epoch": 1})

    def test_numbers_that_json_lacks_are_written_as_null_and_text(self, run: RunFolder) -> None:
        run.append_metrics({"a": math.nan, "b": math.inf, "c": -math.inf, "d": np.float32(0.5), "e": torch.tensor(2)})
        line = (run.path / "metrics.jsonl").read_text()
        assert line == '{"a": null, "b": "inf", "c": "-inf", "d": 0.5, "e": 2}\n'
        assert float(run.metrics()[0]["b"]) == math.inf

    def test_what_json_cannot_hold_is_refused_by_name(self, run: RunFolder) -> None:
        with pytest.raises(DtypeError, match=r"record\.losses\[1\]: got Tensor, wanted a number"):
            run.append_metrics({"losses": [1.0, torch.zeros(2)]})
        assert run.metrics() == []

    def test_there_is_no_resume_point_before_the_first(self, run: RunFolder) -> None:
        assert run.load_resume() is None
        with pytest.raises(RunFolderError, match=r"got no model\.safetensors"):
            run.load_model()

    def test_the_name_of_the_count_is_taken(self, run: RunFolder) -> None:
        with pytest.raises(ArgumentError, match="metrics_count"):
            run.save_resume({}, {"metrics_count": 1})

    @pytest.mark.parametrize("damage", ["cut", "other"])
    def test_a_damaged_resume_point_is_named(self, run: RunFolder, damage: str) -> None:
        run.save_resume({"weight": torch.zeros(100)}, {})
        if damage == "cut":
            run.resume_path.write_bytes(run.resume_path.read_bytes()[:200])
        else:
            save_file({"weight": torch.zeros(1)}, run.resume_path)
        with pytest.raises(RunFolderError, match=r"resume\.safetensors: got .*Put the file back from a copy"):
            run.load_resume()


class TestMetricsAndResumePoints:
    def test_what_came_after_the_resume_point_is_cut(self, run: RunFolder) -> None:
        for epoch in (1, 2):
            run.append_metrics({"epoch": epoch})
        run.save_resume({}, {})
        run.append_metrics({"epoch": 3})
        with resumed(run) as again:
            assert again.metrics() == [{"epoch": 1}, {"epoch": 2}]
            again.append_metrics({"epoch": 3, "again": True})
            assert len(again.metrics()) == 3

    def test_a_torn_last_line_is_dropped(self, run: RunFolder) -> None:
        run.append_metrics({"epoch": 1})
        run.save_resume({}, {})
        with (run.path / "metrics.jsonl").open("a") as file:
            file.write('{"epoch": 2, "lo')
        assert run.metrics() == [{"epoch": 1}]
        with resumed(run) as again:
            again.append_metrics({"epoch": 2})
            assert again.metrics() == [{"epoch": 1}, {"epoch": 2}]

    def test_without_a_resume_point_the_run_begins_anew(self, run: RunFolder) -> None:
        run.append_metrics({"epoch": 1})
        with resumed(run) as again:
            assert (again.metrics(), again.load_resume()) == ([], None)

    def test_records_that_are_lost_are_missed(self, run: RunFolder) -> None:
        run.append_metrics({"epoch": 1})
        run.save_resume({}, {})
        (run.path / "metrics.jsonl").write_text("")
        with pytest.raises(RunFolderError, match=r"got 0 records, wanted the 1 that the resume point knows of"):
            resumed(run)
        (run.path / "metrics.jsonl").write_text('{"epoch": 1}\n')
        resumed(run).close()  # the failure has let go of the lock

    def test_a_record_that_is_no_json_names_its_line(self, run: RunFolder) -> None:
        (run.path / "metrics.jsonl").write_text('{"epoch": 1}\n{"epoch\n')
        with pytest.raises(RunFolderError, match=r"metrics\.jsonl, line 2: got "):
            run.metrics()


class TestOneRunOneFolder:
    def test_a_folder_with_a_run_is_not_written_over(self, run: RunFolder) -> None:
        run.close()
        with pytest.raises(RunFolderError, match=r"got a folder with a run, .* Use resume=True to go on with that run"):
            RunFolder.create(run.path, CONFIG)

    def test_other_settings_are_named(self, run: RunFolder) -> None:
        run.close()
        other = {"model": {"sizes": [650, 1500], "tied": 1}, "lr": 30.0, "seed": 1}
        with pytest.raises(RunFolderError) as caught:
            RunFolder.create(run.path, other, resume=True)
        assert caught.value.got == (
            "other settings than those of the run: model.sizes was [650, 650] and is now [650, 1500]; "
            "model.tied was True and is now 1; epochs was 40 and is now nothing; seed was nothing and is now 1"
        )

    @pytest.mark.parametrize("may_differ", ["training.epochs", "training"])
    def test_fields_that_may_differ_may_and_are_kept(self, tmp_path: Path, may_differ: str) -> None:
        RunFolder.create(tmp_path, {"training": {"epochs": 40}, "seed": 1}).close()
        now = {"training": {"epochs": 60}, "seed": 1}
        with RunFolder.create(tmp_path, now, resume=True, may_differ=(may_differ,)) as again:
            assert again.config() == now
        with pytest.raises(RunFolderError, match=r"training\.epochs was 60 and is now 80"):
            RunFolder.create(
                tmp_path, {"training": {"epochs": 80}, "seed": 1}, resume=True, may_differ=("train", "seed")
            )

    def test_a_folder_with_other_files_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("")
        with pytest.raises(RunFolderError, match=r"got a folder with other files: thesis\.tex"):
            RunFolder.create(tmp_path, CONFIG, resume=True)
        assert names(tmp_path) == ["thesis.tex"]

    def test_a_folder_that_is_refused_loses_nothing(self, tmp_path: Path) -> None:
        others = [".download.partial", ".resume.safetensors.abc.partial", "thesis.txt"]
        for name in others:
            (tmp_path / name).write_text("mine")
        with pytest.raises(RunFolderError, match="got a folder with other files"):
            RunFolder.create(tmp_path, CONFIG)
        assert names(tmp_path) == others

    def test_a_run_that_is_refused_keeps_what_its_writer_left(self, run: RunFolder) -> None:
        run.close()
        (run.path / ".resume.safetensors.abc.partial").write_bytes(b"half")
        before = names(run.path)
        with pytest.raises(RunFolderError, match="got a folder with a run"):
            RunFolder.create(run.path, CONFIG)
        assert names(run.path) == before

    def test_going_on_without_a_run_begins_one(self, tmp_path: Path) -> None:
        with RunFolder.create(tmp_path / "a" / "b", CONFIG, resume=True) as new:
            assert new.config() == json.loads(json.dumps(CONFIG))

    def test_a_reader_needs_a_run_and_does_not_write(self, run: RunFolder, tmp_path: Path) -> None:
        run.append_metrics({"epoch": 1})
        reader = RunFolder(run.path)
        assert reader.metrics() == [{"epoch": 1}]
        with pytest.raises(RunFolderError, match="got a run that is open for reading"):
            reader.append_metrics({})
        with pytest.raises(RunFolderError, match=r"got no config\.json"):
            RunFolder(tmp_path)

    def test_a_second_writer_is_told_who_the_first_is(self, run: RunFolder) -> None:
        with pytest.raises(RunInUseError, match=rf"got a run that process {os.getpid()} on .* is writing"):
            RunFolder.create(run.path, CONFIG, resume=True)
        resumed(run).close()

    def test_what_killed_writers_left_is_cleared_away(self, run: RunFolder) -> None:
        for name in ("resume.safetensors", "resume.json", "model.safetensors", "config.json", "vocabulary.txt"):
            (run.path / f".{name}.abc.partial").write_bytes(b"half")
        (run.path / ".download.partial").write_bytes(b"of somebody else")
        resumed(run).close()
        assert names(run.path) == [".download.partial", ".lock", "config.json"]


@contextmanager
def room(size: int) -> Iterator[None]:
    """A region in which no file can grow beyond a size, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestASystemThatRefuses:
    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "run").write_text("a file")
        for path in (tmp_path / "run", tmp_path / "run" / "deeper"):
            with pytest.raises(RunFolderError, match=r"wanted a folder .* A file has the name") as caught:
                RunFolder.create(path, CONFIG)
            assert caught.value.where == str(path)
        assert (tmp_path / "run").read_text() == "a file"

    @pytest.mark.parametrize(
        ("number", "remedy"),
        [(errno.EACCES, "where you may write"), (errno.EROFS, "where you may write"), (errno.ENOSPC, "Free some space"),
         (errno.EDQUOT, "Free some space"), (errno.EIO, "See to the disk")],
    )  # fmt: skip
    def test_what_it_says_comes_with_the_folder_and_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "open", refuse)
        with pytest.raises(RunFolderError, match=rf'got "{os.strerror(number)}".*{remedy}') as caught:
            RunFolder.create(tmp_path / "run", CONFIG)
        assert caught.value.where == str(tmp_path / "run")
        assert isinstance(caught.value.__cause__, OSError)

    def test_without_locks_nobody_is_blamed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr("fcntl.flock", refuse)
        with pytest.raises(RunFolderError, match=r"No locks available.*use a folder on another one") as caught:
            RunFolder.create(tmp_path / "run", CONFIG)
        assert not isinstance(caught.value, RunInUseError)

    def test_on_a_full_disk_the_old_files_stay_and_the_run_goes_on(self, run: RunFolder) -> None:
        run.append_metrics({"epoch": 1})
        run.save_resume({"weight": torch.ones(1000)}, {"epoch": 1})
        run.save_model({"weight": torch.ones(1000)})
        before = {name: (run.path / name).read_bytes() for name in names(run.path)}
        size = (run.path / "metrics.jsonl").stat().st_size
        writes: list[Callable[[], None]] = [
            lambda: run.append_metrics({"epoch": 2, "text": "x" * 200}),
            lambda: run.save_resume({"weight": torch.zeros(1000)}, {"epoch": 2}),
            lambda: run.save_model({"weight": torch.zeros(1000)}),
        ]
        for write in writes:
            # Room for a part of the record, and for a part of what a buffer would still hold of it.
            with room(size + 120), pytest.raises(RunFolderError, match=r"Free some space, then go on") as caught:
                write()
            assert caught.value.where == str(run.path)
        assert {name: (run.path / name).read_bytes() for name in names(run.path)} == before
        run.append_metrics({"epoch": 2})
        assert run.metrics() == [{"epoch": 1}, {"epoch": 2}]

    def test_a_file_that_cannot_be_read_is_no_traceback_either(
        self, run: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run.append_metrics({"epoch": 1})
        run.close()

        def refuse(*_: object, **__: object) -> bytes:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", refuse)
        monkeypatch.setattr(Path, "read_text", refuse)
        for read in (lambda: RunFolder(run.path), run.metrics, run.config):
            with pytest.raises(RunFolderError, match="Permission denied"):
                read()


# Forks write into a folder until they are killed.
WRITERS = """
import torch
from statewise.train.run import RunFolder
from train.forks import serve

def write(arguments):
    with RunFolder.create(arguments[0], {"lr": 1.0}, resume=True) as run:
        loaded = run.load_resume()
        number = 0 if loaded is None else loaded[1]["number"]
        while True:
            number += 1
            run.append_metrics({"number": number})
            weight = torch.full((100_000,), float(number))
            if number % 3 == 0:
                run.save_model({"weight": weight}, {"number": number})
            run.save_resume({"weight": weight, "tied": weight, "count": torch.tensor(number)}, {"number": number})

torch.set_num_threads(1)
serve(write)
"""


@pytest.fixture(scope="module")
def writers() -> Iterator[Forks]:
    started = Forks("-c", WRITERS)
    yield started
    started.close()


def kill_one(writers: Forks, path: Path, seconds: float) -> None:
    child = writers.start(str(path))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert writers.wait(child) == -signal.SIGKILL


def check_whole(path: Path) -> int:
    """The number that the resume point holds, after everything in the folder has been held against it."""
    before = RunFolder(path).metrics() if (path / "config.json").exists() else []
    with RunFolder.create(path, {"lr": 1.0}, resume=True) as run:
        assert not list(path.glob(".*.partial"))
        loaded = run.load_resume()
        number: int = 0 if loaded is None else loaded[1]["number"]
        assert run.metrics() == [{"number": each + 1} for each in range(number)] == before[:number]
        assert len(before) - number in (0, 1)
        if loaded is not None:
            assert (loaded[0]["weight"] == number).all()
            assert loaded[0]["tied"] is loaded[0]["weight"]
            assert loaded[0]["count"] == number
        if run.model_path.exists():
            state, metadata = run.load_model()
            assert (state["weight"] == metadata["number"]).all()
            assert metadata["number"] % 3 == 0
            assert metadata["number"] <= number + 1
    return number


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_a_writer_killed_at_any_moment_leaves_a_whole_run(kills: int, writers: Forks, tmp_path: Path) -> None:
    chance = random.Random(kills)
    reached = [0]
    for _ in range(kills):
        kill_one(writers, tmp_path / "run", chance.uniform(0.0, 0.15))
        reached.append(check_whole(tmp_path / "run"))
    assert reached == sorted(reached)
    assert reached[-1] >= 3  # there was something to lose


def test_a_writer_in_another_process_holds_the_folder_until_it_is_killed(writers: Forks, tmp_path: Path) -> None:
    child = writers.start(str(tmp_path / "run"))
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "resume.safetensors").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(RunInUseError, match=rf"got a run that process {child} on"):
        RunFolder.create(tmp_path / "run", {"lr": 1.0}, resume=True)
    os.kill(child, signal.SIGKILL)
    assert writers.wait(child) == -signal.SIGKILL
    assert check_whole(tmp_path / "run") >= 1


def test_nothing_is_pickled(run: RunFolder) -> None:
    run.save_resume({"weight": torch.zeros(2)}, {"epoch": 1})
    run.save_model({"weight": torch.zeros(2)})
    run.append_metrics({"epoch": 1})
    whole: dict[str, Any] = {name: (run.path / name).read_bytes() for name in names(run.path)}
    assert set(whole) == {
        ".lock", "config.json", "metrics.jsonl", "model.safetensors", "resume.json", "resume.safetensors",
    }  # fmt: skip
    for name, content in whole.items():
        # An archive, or a pickle's protocol; a safetensors file begins with the length of its header, perhaps 0x80.
        assert not re.match(rb"PK|\x80[\x02-\x05]", content), name


@pytest.mark.gpu
def test_tensors_of_a_device_go_there_and_back(run: RunFolder) -> None:
    weight: Tensor = torch.randn(4, device="cuda")
    run.save_resume({"weight": weight}, {})
    loaded = run.load_resume(device="cuda")
    assert loaded is not None
    assert loaded[0]["weight"].is_cuda
    assert torch.equal(loaded[0]["weight"], weight)
