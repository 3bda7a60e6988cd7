"""Tables of exact ranks: many shapes, on several processes, written down as they are found."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from statewise.errors import ArgumentError, RunFolderError, StatewiseError
from statewise.memory.counts import state_bound
from statewise.memory.drawn import STARTS
from statewise.memory.elimination import BACKENDS
from statewise.memory.grid import check_sizes
from statewise.memory.rank_table_book import KIND, RankBook
from statewise.memory.rank_table_cases import Shape
from statewise.memory.rank_table_rows import RankRow, RankTable, rank_row
from statewise.memory.telling import DIGITS
from statewise.memory.whole import whole, wholes

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def rank_table(
    shapes: Sequence[tuple[int, int, int]],
    *,
    depth: int,
    path: Path | str | None = None,
    jobs: int = 1,
    runs: int = 2,
    seed: int = 0,
    start: str = "ones",
    backend: str = "auto",
    on_row: Callable[[RankRow, int, int], None] | None = None,
) -> RankTable:
    """The exact generic ranks of many shapes, beside the conjecture, its repair, and both upper bounds.

    With a path, what is found is in that file at once: whoever is killed goes on with the same call. Rows of other
    shapes that the file holds are left in it. Large shapes come first, so that no process waits at the end.

    Args:
        shapes: triples (M, R, T), T even.
        depth: L.
        path: a file of JSON lines; None to keep nothing.
        jobs: processes, each with one thread; 1 for this one.
        runs: of each shape at most; a rank that meets an upper bound needs one.
        seed: of the first run.
        start: "ones" or "drawn", as :func:`~statewise.memory.generic.generic_rank` has it.
        backend: of the elimination.
        on_row: called with each row that was computed, how many are there, and how many are asked.

    >>> print(rank_table([(6, 5, 4), (7, 5, 4), (2, 2, 6)], depth=3).sentence)
    L = 3, 3 shapes, against the printed conjecture: 1 equal, 1 larger, 1 violated; against the repaired one: 0 ...
    """
    asked = list(dict.fromkeys(_shape(shape) for shape in shapes))
    depth, runs, jobs = wholes("rank_table", depth=depth, runs=runs, jobs=jobs)
    seed = whole(seed, where="rank_table.seed", least=0)
    _check(asked, depth=depth, start=start, backend=backend)
    told = {"kind": KIND, "depth": depth, "runs": runs, "seed": seed, "start": start}
    book = RankBook(None if path is None else Path(path), told)
    waiting = sorted((one for one in asked if one not in book.rows), key=lambda one: (-one.words, -one.width))
    options = {"depth": depth, "runs": runs, "seed": seed, "start": start, "backend": backend}
    with book.kept():
        for row in _computed(waiting, options, jobs):
            book.add(row)
            if on_row is not None:
                on_row(row, sum(one in book.rows for one in asked), len(asked))
    return RankTable(depth=depth, rows=tuple(book.rows[one] for one in asked))


def read_rank_table(path: Path | str) -> RankTable:
    """All rows of a file that :func:`rank_table` wrote, sorted by shape.

    Args:
        path: the file.

    >>> read_rank_table("nowhere.jsonl")
    Traceback (most recent call last):
    statewise.errors.DataError: nowhere.jsonl: got no such file, wanted a table of ranks. Make one: ...
    """
    book = RankBook(Path(path), None)
    return RankTable(depth=int(book.told["depth"]), rows=tuple(book.rows[shape] for shape in sorted(book.rows)))


def _computed(shapes: Sequence[Shape], options: dict[str, Any], jobs: int) -> Iterator[RankRow]:
    """The rows as they come."""
    if jobs == 1 or len(shapes) < 2:
        yield from (rank_row(shape, **options) for shape in shapes)
        return
    # A fresh interpreter: threads do not survive a fork.
    pool = ProcessPoolExecutor(min(jobs, len(shapes)), mp_context=multiprocessing.get_context("spawn"))
    try:
        with _one_thread():  # processes begin as they are given something to do
            futures = [pool.submit(rank_row, shape, **options) for shape in shapes]
        failed: list[StatewiseError] = []
        for future in as_completed(futures):
            try:
                yield future.result()
            except StatewiseError as error:  # the other shapes are computed all the same
                failed.append(error)
        if failed:
            raise failed[0]
    except BrokenProcessPool:
        raise RunFolderError(
            where="rank_table.jobs",
            got="a process that was killed from outside, often for want of memory",
            wanted="memory for all shapes that are computed at a time",
            remedy="Use fewer jobs; with a path the same call goes on.",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """A region in which processes that begin use one thread; those that exist are not touched."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _shape(shape: Sequence[int]) -> Shape:
    wanted = "(M, R, T) with whole numbers >= 1 and an even T"
    try:
        inputs, width, steps = (whole(size, where="rank_table.shapes") for size in shape)
    except (ArgumentError, ValueError, TypeError):
        raise ArgumentError(where="rank_table.shapes", got=repr(shape), wanted=wanted) from None
    if steps % 2:
        raise ArgumentError(where="rank_table.shapes", got=repr(shape), wanted=wanted)
    return Shape(inputs, width, steps)


def _check(shapes: Sequence[Shape], *, depth: int, start: str, backend: str) -> None:
    """Refuse what cannot be computed before anything is computed or written."""
    for name, value, known in (("start", start, STARTS), ("backend", backend, BACKENDS)):
        if value not in known:
            raise ArgumentError(where=f"rank_table.{name}", got=value, wanted=f"one of {', '.join(known)}")
    if not shapes:
        raise ArgumentError(where="rank_table.shapes", got="none", wanted="at least one (M, R, T)")
    for shape in shapes:
        check_sizes(shape.inputs, steps=shape.steps, split=shape.steps // 2)
        if state_bound(R=shape.width, T=shape.steps, L=depth) >= 10**DIGITS:
            got = f"{tuple(shape)} at depth {depth}, whose bound U1 has more than {DIGITS} digits"
            remedy = "Leave it out, and ask for it alone: generic_rank(...), or statewise memory rank."
            raise ArgumentError(
                where="rank_table.shapes", got=got, wanted="numbers that a file can hold", remedy=remedy
            )
