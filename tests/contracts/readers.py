"""What every reader owes to whoever names a file: a value, or an error that says which file and what is wrong."""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from random import Random
from types import FrameType
from typing import ClassVar

import jaxtyping
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.damage import any_bytes, damaged
from statewise.errors import StatewiseError

#: Inputs of a quick test of a reader, of which there are several, and of all its slow ones together.
QUICK, MANY = 20, 3000
#: Chooses by hypothesis's draws, so that a file that shows a fault is made as small as it can be.
CHANCE = st.randoms(use_true_random=False)
#: What a reader may take beyond what the process has, for files of a few kilobytes.
_MEMORY = 2**29
_SECONDS = 20
#: Nobody reads a message of several screens: what is quoted of a file is cut short.
_LONGEST_MESSAGE = 3000


class HangError(BaseException):
    """A reader took too long; no reader may catch it."""


class ReaderContract:
    """The tests of one reader.

    A subclass says what a file is called, gives some that are right and how they are read, and, where it can, files
    that are nearly right: of the right form with values that are not.
    """

    #: The name of the file under the folder that a test gives.
    name: ClassVar[str]
    #: Whether errors name the file; a reader of texts does not know it.
    names_file: ClassVar[bool] = True

    def right(self) -> Sequence[bytes]:
        """Files that can be read."""
        raise NotImplementedError

    @cached_property
    def files(self) -> Sequence[bytes]:
        """The same, made once."""
        return tuple(self.right())

    def nearly_right(self, chance: Random) -> bytes:
        """A file of the right form with other values.

        Args:
            chance: chooses.
        """
        return damaged(chance, self.files)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Put what else a reader needs into the folder, once."""

    def read(self, path: Path) -> object:
        """Read a file, and use what it gives."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def place(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("files")
        cls.prepare(folder)
        return folder / cls.name

    def test_files_that_are_right_are_read(self, place: Path) -> None:
        for content in self.right():
            place.write_bytes(content)
            self.read(place)

    @settings(max_examples=QUICK // 2)
    @given(chance=CHANCE)
    def test_any_bytes_give_a_value_or_an_error_that_helps(self, place: Path, chance: Random) -> None:
        self.check(place, any_bytes(chance))

    @settings(max_examples=QUICK)
    @given(chance=CHANCE)
    def test_a_damaged_file_gives_a_value_or_an_error_that_helps(self, place: Path, chance: Random) -> None:
        self.check(place, damaged(chance, self.files))

    @settings(max_examples=QUICK)
    @given(chance=CHANCE)
    def test_a_file_that_is_nearly_right_gives_a_value_or_an_error(self, place: Path, chance: Random) -> None:
        self.check(place, self.nearly_right(chance))

    def test_some_files_more_give_values_or_errors_that_help(self, place: Path) -> None:
        self.check_many(place, seed=0, inputs=2 * QUICK)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(1, 6))
    def test_thousands_of_files_give_values_or_errors_that_help(self, place: Path, seed: int) -> None:
        self.check_many(place, seed=seed, inputs=MANY // 5)

    def check_many(self, place: Path, *, seed: int, inputs: int) -> None:
        """Read files of all kinds, half of them nearly right; what goes wrong is told with the file."""
        for number in range(inputs):
            chance = Random(f"{type(self).__name__} {seed} {number}")
            kind = chance.randrange(8)
            content = self.nearly_right(chance) if kind < 4 else damaged(chance, self.files)
            content = any_bytes(chance) if kind == 7 else content
            try:
                self.check(place, content)
            except BaseException as error:
                error.add_note(f"input {number} of seed {seed}: {content[:2000]!r}")
                raise

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        self.prepare(tmp_path)
        place = tmp_path / self.name
        place.unlink(missing_ok=True)
        place.mkdir()
        self.refused(place)

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        self.prepare(tmp_path)
        (tmp_path / self.name).unlink(missing_ok=True)
        self.refused(tmp_path / self.name)

    def refused(self, place: Path) -> None:
        """Read what cannot be read; the error says so."""
        with pytest.raises(StatewiseError) as raised:
            self.read(place)
        self.check_message(place, raised.value)

    def check(self, place: Path, content: bytes) -> None:
        """Read a file of such content; nothing but a value or an error of ours may come of it."""
        place.write_bytes(content)
        try:
            with _bounded():
                self.read(place)
        except StatewiseError as error:
            self.check_message(place, error)

    def check_message(self, place: Path, error: StatewiseError) -> None:
        """It names the file or its folder, says what was got and wanted, and is short enough to be read."""
        text = str(error)
        if self.names_file:
            assert place.name in text or str(place.parent) in text
        assert error.wanted
        assert len(text) < _LONGEST_MESSAGE + 4 * len(str(place))
        assert not text.startswith(":")


@contextmanager
def _bounded() -> Iterator[None]:
    """A region as users have it, but with little memory and little time.

    A size that a file only claims to have is not given to it, and the run-time check of annotations, which would catch
    what a reader let pass, is off.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _hang)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, hard))
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def _hang(_: int, __: FrameType | None) -> None:
    raise HangError(f"more than {_SECONDS} seconds for one small file")
