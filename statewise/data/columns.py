"""A stream as parallel columns, which a network reads side by side, segment after segment."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import torch
from jaxtyping import Int64
from torch import Tensor

from statewise.data.stream import TokenStream
from statewise.errors import ArgumentError, LengthError

Segment = tuple[Int64[Tensor, "steps batch"], Int64[Tensor, "steps batch"]]

#: The target where there is nothing to predict; ``torch.nn.functional.cross_entropy`` leaves it out.
NOTHING = -100

_WINDOW_BYTES = 2**22
_ID_BYTES = 8


class Columns:
    """The stream cut into ``batch_size`` stretches, which lie side by side: column b holds the b-th stretch.

    A column of ``len(columns)`` predictions has one token more: its first one is only an input. For training the
    stretches are ``len(stream) // batch_size`` tokens long, and what is left over is dropped.

    For evaluation, ``overlap=True`` gives each column but the first the last token of the one before as its first
    input, so that no token between two columns goes unpredicted. With ``remainder=True`` nothing is left over either:
    the first columns are longer by one, the others have -100 as their last target, which
    ``torch.nn.functional.cross_entropy`` leaves out. Then every token of the stream but the first is a target
    exactly once; with a ``start_token`` the first one too.

    Args:
        stream: the tokens.
        batch_size: the number of columns.
        start_token: an id to be put before the stream, for instance the vocabulary's ``end_id``; None for none.
        overlap: whether a column begins with the last token of the one before.
        remainder: whether the rest is kept that does not fill all columns; only with ``overlap``.

    >>> columns = Columns(TokenStream(torch.arange(11).numpy()), 2)
    >>> inputs, targets = columns.segment(0, 3)
    >>> inputs.tolist(), targets.tolist()
    ([[0, 5], [1, 6], [2, 7]], [[1, 6], [2, 7], [3, 8]])
    >>> len(columns), columns.predicted
    (4, 8)
    """

    def __init__(
        self,
        stream: TokenStream,
        batch_size: int,
        *,
        start_token: int | None = None,
        overlap: bool = False,
        remainder: bool = False,
    ) -> None:
        _check_positive("Columns.batch_size", batch_size)
        if start_token is not None and start_token < 0:
            raise ArgumentError(where="Columns.start_token", got=start_token, wanted="an id, or None")
        if remainder and not overlap:
            raise ArgumentError(where="Columns.remainder", got=True, wanted="overlap=True with it")
        self._stream, self._start_token = stream, start_token
        tokens = len(stream) + (start_token is not None)
        # Where each column begins, and where what it predicts ends; a prediction needs a token before it.
        if overlap:
            each, more = divmod(max(tokens - 1, 0), batch_size)
            sizes = [each + (remainder and column < more) for column in range(batch_size)]
            self._begins = list(accumulate(sizes, initial=0))[:-1]
        else:
            each = tokens // batch_size - 1
            sizes = [each] * batch_size
            self._begins = [column * (each + 1) for column in range(batch_size)]
        if each < 1:
            wanted = f"at least {batch_size + 1 if overlap else 2 * batch_size} tokens for {batch_size} columns"
            raise LengthError(
                where="Columns.stream", got=f"{tokens} tokens", wanted=wanted, remedy="Use fewer columns."
            )
        self._sizes = sizes
        self._rows = max(sizes)
        self._device = torch.device("cpu")
        self._window: tuple[int, Tensor] = (0, torch.empty(0, batch_size, dtype=torch.int64))

    @property
    def batch_size(self) -> int:
        """The number of columns."""
        return len(self._begins)

    @property
    def predicted(self) -> int:
        """How many tokens are targets, all columns together."""
        return sum(self._sizes)

    @property
    def device(self) -> torch.device:
        """Where segments are."""
        return self._device

    def __len__(self) -> int:
        """How many tokens each column predicts."""
        return self._rows

    def updates(self, length: int) -> int:
        """How many segments of a fixed length there are, the last shorter one included.

        >>> Columns(TokenStream(torch.zeros(929589, dtype=torch.int64).numpy()), 80).updates(35)
        332
        """
        _check_positive("Columns.updates.length", length)
        return -(-self._rows // length)

    def segment(self, start: int, length: int) -> Segment:
        """The rows from ``start`` on as inputs, and the rows one further on as targets, both (length, batch_size).

        Both are views of tokens that are kept, so they must not be written to.
        """
        if start < 0 or length < 1 or start + length > self._rows:
            got, wanted = f"rows {start} to {start + length}", f"at least one of the rows 0 to {self._rows}"
            raise ArgumentError(where="Columns.segment", got=got, wanted=wanted)
        first, kept = self._window
        if start < first or start + length + 1 > first + len(kept):
            rows = max(length + 1, _WINDOW_BYTES // (_ID_BYTES * self.batch_size))
            first, kept = start, self._gathered(start, min(start + rows, self._rows + 1)).to(self._device)
            self._window = first, kept
        begin = start - first
        return kept[begin : begin + length], kept[begin + 1 : begin + length + 1]

    def segments(self, length: int | Sequence[int], *, start: int = 0) -> Iterator[Segment]:
        """All segments in order, the last one as short as it must be.

        Args:
            length: of every segment, or of each in turn, as `bptt_lengths` gives them.
            start: the row to begin with, for a run that goes on where it stopped.
        """
        if isinstance(length, int):
            length = bptt_lengths(self._rows - start, base=length) if start < self._rows else []
        for begin, end in pairwise(accumulate(length, initial=start)):
            yield self.segment(begin, end - begin)

    def to(self, device: torch.device | str, *, limit: int | None = None) -> Columns:
        """The same columns with their segments on a device: all rows at once if they are few, else some at a time.

        Args:
            device: where segments shall be.
            limit: the most bytes that may be kept there, 8 a token; None for 64 MiB on the CPU and 2 GiB elsewhere.
        """
        moved = copy.copy(self)
        moved._device = torch.device(device)
        if limit is None:
            limit = 2**26 if moved._device.type == "cpu" else 2**31
        moved._window = (0, torch.empty(0, self.batch_size, dtype=torch.int64, device=moved._device))
        if (self._rows + 1) * self.batch_size * _ID_BYTES <= limit:
            moved._window = (0, moved._gathered(0, self._rows + 1).to(moved._device))
        return moved

    def shard(self, rank: int, world: int) -> Columns:
        """The columns of one of several processes, which divide them evenly: the first process has the first ones.

        >>> columns = Columns(TokenStream(torch.arange(12).numpy()), 4)
        >>> columns.shard(1, 2).segment(0, 1)[0]
        tensor([[6, 9]])
        """
        _check_positive("Columns.shard.world", world)
        if not 0 <= rank < world:
            raise ArgumentError(where="Columns.shard.rank", got=rank, wanted=f"0 <= rank < {world}")
        if self.batch_size % world:
            wanted = f"a multiple of the {world} processes"
            raise ArgumentError(where="Columns.batch_size", got=self.batch_size, wanted=wanted)
        share = self.batch_size // world
        part = copy.copy(self)
        part._begins = self._begins[rank * share : (rank + 1) * share]
        part._sizes = self._sizes[rank * share : (rank + 1) * share]
        first, kept = self._window
        part._window = (first, kept[:, rank * share : (rank + 1) * share].contiguous())
        return part

    def __repr__(self) -> str:
        return f"Columns({self.batch_size} columns of {self._rows} predictions, {self._device})"

    def _gathered(self, first: int, stop: int) -> Int64[Tensor, "rows batch"]:
        """Some rows of all columns, -100 where a column has ended."""
        rows = torch.full((stop - first, self.batch_size), NOTHING)
        for column, (begin, size) in enumerate(zip(self._begins, self._sizes, strict=True)):
            tokens = self._tokens(begin + first, begin + min(stop, size + 1))
            rows[: len(tokens), column] = tokens
        return rows

    def _tokens(self, start: int, stop: int) -> Int64[Tensor, "tokens"]:
        """Tokens of the stream, the start token counted."""
        if self._start_token is None:
            return torch.from_numpy(self._stream.read(start, stop))
        read = torch.from_numpy(self._stream.read(max(start - 1, 0), stop - 1))
        return read if start else torch.cat([torch.tensor([self._start_token]), read])


def bptt_lengths(
    total: int,
    *,
    base: int,
    random: bool = False,
    generator: torch.Generator | None = None,
    most: int | None = None,
) -> list[int]:
    """The lengths of segments that together have ``total`` steps.

    Fixed: ``base`` each. Random: the mean is ``base`` in 95 of 100 cases and half of it in the others, and the length
    is ``max(5, int(Normal(mean, 5)))``, at most ``most``. The last one is what is left. A learning rate goes with
    length / base. (Merity, Keskar & Socher 2018, section 5.)

    Args:
        total: the number of steps, ``len(columns)``.
        base: the usual length.
        random: whether lengths are drawn.
        generator: where they are drawn from; needed when they are.
        most: the longest there may be when drawn; None for ``base + 40``.

    >>> bptt_lengths(100, base=35)
    [35, 35, 30]
    >>> sum(bptt_lengths(1000, base=70, random=True, generator=torch.Generator().manual_seed(3)))
    1000
    """
    _check_positive("bptt_lengths.total", total)
    _check_positive("bptt_lengths.base", base)
    if not random:
        return [base] * (total // base) + ([total % base] if total % base else [])
    if generator is None:
        wanted = "a torch.Generator for random lengths"
        raise ArgumentError(where="bptt_lengths.generator", got=None, wanted=wanted)
    most = base + 40 if most is None else most
    _check_positive("bptt_lengths.most", most)
    lengths: list[int] = []
    while total:
        lengths.append(min(_drawn_length(base, generator), most, total))
        total -= lengths[-1]
    return lengths


def _drawn_length(base: int, generator: torch.Generator) -> int:
    mean = base if float(torch.rand((), generator=generator)) < 0.95 else base / 2
    return max(5, int(mean + 5 * float(torch.randn((), generator=generator))))


def _check_positive(where: str, value: int) -> None:
    if value < 1:
        raise ArgumentError(where=where, got=value, wanted="an integer >= 1")
