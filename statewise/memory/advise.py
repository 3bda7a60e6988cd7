"""Which depth and width to take: what each pair within a budget can remember, at least and at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statewise.errors import ArgumentError
from statewise.memory.budget import orthogonal_parameters, width_within
from statewise.memory.counts import conjecture, end_cap, repaired_conjecture, start_cap, state_bound, theorem1
from statewise.memory.sharper_bound import sharper_state_bound
from statewise.memory.split import split_of
from statewise.memory.telling import counted, listed, rank_text
from statewise.memory.whole import whole

__all__ = ["DEPTHS", "Advice", "Advised", "advise", "rank_text", "shape_advice"]

DEPTHS = (1, 2, 3, 4)
#: Bounds over more steps have millions of digits.
MOST_STEPS = 10**6
_SYMBOLS = (
    "It is how many symbols there are; where there is only one, nothing is to be remembered. Numbers, such as pixels, "
    "are no symbols: sampled_rank, or statewise memory rank --samples, is about these."
)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One pair of depth and width, and between which bounds its Start-End separation rank lies.

    Args:
        depth: L.
        width: R, the most channels within the budget.
        parameters: of the orthogonal network of this shape.
        inputs: M.
        steps: T.
        split: steps of the Start.
        least: what almost all weights reach; see ``proved``.
        proved: whether ``least`` is a theorem (Ziv 2019, Theorem 1); else it is the repaired conjecture.
        printed: what the conjecture asks for as printed; more than ``end_cap`` where it is false.
        state_bound: U1, from the size of the state.
        sharper: U1 made sharper, see :func:`~statewise.memory.sharper_bound.sharper_state_bound`.
        end_cap: U2, from what the End, or the Start if it is less, can tell apart on a finite alphabet.
        warning: what speaks against the pair; empty if nothing does.
    """

    depth: int
    width: int
    parameters: int
    inputs: int
    steps: int
    split: int
    least: int
    proved: bool
    printed: int
    state_bound: int
    sharper: int
    end_cap: int
    warning: str

    @property
    def most(self) -> int:
        """No weights reach more: the lesser of U2 and of U1, made sharper where that is possible."""
        return min(self.sharper, self.end_cap)

    @property
    def known(self) -> bool:
        """Whether both bounds meet: then almost all circuits have this rank."""
        return self.proved and self.least == self.most


@dataclass(frozen=True, kw_only=True)
class Advised:
    """All pairs within a budget.

    Args:
        budget: N.
        count: how parameters were counted.
        pairs: one for each depth that fits, shallow ones first.
        left_out: depths for which the budget has not even one channel.
    """

    budget: int
    count: str
    pairs: tuple[Advice, ...]
    left_out: tuple[int, ...] = ()

    @property
    def best(self) -> Advice:
        """The pair with the largest bound from below, proved or conjectured; of equals the shallowest."""
        return max(self.pairs, key=lambda pair: (pair.least, -pair.depth))

    @property
    def rivals(self) -> tuple[int, ...]:
        """The other depths that may have more than the best has for certain: their upper bounds allow for it."""
        best = self.best
        return tuple(pair.depth for pair in self.pairs if pair is not best and pair.most > best.least)

    @property
    def sentence(self) -> str:
        """The advice in one sentence."""
        best, rivals = self.best, self.rivals
        within = counted(self.budget, "parameter")
        known = "proved" if best.proved else "by the repaired conjecture, which is not proved"
        others = f" Upper bounds allow for more at depth {listed(rivals)}." if rivals else ""
        return (
            f"Within {within} and over {counted(best.steps, 'step')}, depth {best.depth} with "
            f"{counted(best.width, 'channel')} has the largest bound from below: almost all its circuits "
            f"have a separation rank of at least {rank_text(best.least)} ({known}).{others} "
            f"What training finds of it is another matter."
        )


def advise(
    *,
    budget: int,
    steps: int,
    inputs: int,
    classes: int = 1,
    count: str = "true",
    depths: Sequence[int] = DEPTHS,
    split: int | None = None,
) -> Advised:
    """The depths and widths that a budget allows, each with what almost all its circuits remember.

    The measure is the Start-End separation rank. Widths are those of an orthogonal network; bounds are those of an
    arithmetic circuit of that depth and width, read on M one-hot symbols: Theorem 1 and the conjecture of Ziv 2019,
    repaired, from below; the new bounds U1 and U2 from above.

    Args:
        budget: N, the most parameters.
        steps: T.
        inputs: M, how many symbols there are.
        classes: C.
        count: "true", or "thesis" for sizes as the thesis prints them.
        depths: that are looked at.
        split: steps of the Start; None for half of an even T.

    >>> found = advise(budget=2**13, steps=60, inputs=34, classes=34, depths=(1, 2, 3))
    >>> [(pair.depth, pair.width, rank_text(pair.least), pair.proved) for pair in found.pairs]
    [(1, 76, '76', True), (2, 48, '8.60e17', True), (3, 39, '8.79e45', False)]
    """
    if not isinstance(depths, Sequence) or isinstance(depths, str) or not depths:
        raise ArgumentError(where="advise.depths", got=depths, wanted="a list of at least one depth, such as (1, 2)")
    depths = [whole(depth, where="advise.depths") for depth in depths]
    budget, classes = whole(budget, where="advise.budget"), whole(classes, where="advise.classes")
    try:
        inputs = whole(inputs, where="advise.inputs", least=2)
    except ArgumentError as error:
        raise error.told(remedy=_SYMBOLS) from None
    steps = whole(steps, where="advise.steps", least=2, most=MOST_STEPS)
    if split is not None:
        split = whole(split, where="advise.split", most=steps - 1)  # two halves, neither of them empty
    start = split_of(steps, split, where="advise", name="steps")
    sizes: dict[str, Any] = {"inputs": inputs, "classes": classes, "count": count}
    pairs, left_out = list[Advice](), list[int]()
    for depth in sorted(set(depths)):
        try:
            width = width_within(budget=budget, depth=depth, **sizes)
        except ArgumentError as error:
            if error.where != "budget" or budget < 1:
                raise
            left_out.append(depth)
            continue
        spent = orthogonal_parameters(depth=depth, width=width, **sizes)
        pairs.append(shape_advice(depth=depth, width=width, parameters=spent, inputs=inputs, steps=steps, split=start))
    if not pairs:  # the error of the shallowest says what it would need
        width_within(budget=budget, depth=min(depths), **sizes)
    return Advised(budget=budget, count=count, pairs=tuple(pairs), left_out=tuple(left_out))


def shape_advice(
    *, depth: int, width: int, inputs: int, steps: int, split: int | None = None, parameters: int = 0
) -> Advice:
    """The bounds of one shape.

    Args:
        depth: L.
        width: R.
        inputs: M.
        steps: T.
        split: steps of the Start; None for half of an even T.
        parameters: that it has, if anybody asks.

    >>> shape_advice(depth=3, width=5, inputs=6, steps=4).warning
    'R = 5 < M = 6: the inputs tell at most U2 = 30 words apart; the printed conjecture, 35, is false here'
    """
    steps = whole(steps, where="shape_advice.steps", most=MOST_STEPS)
    start = split_of(steps, split, where="shape_advice", name="steps")
    shape: dict[str, Any] = {"M": inputs, "R": width, "T": steps, "L": depth, "split": start}
    proved = depth == 1 or (depth == 2 and 2 * start == steps)
    printed = conjecture(**shape)
    cap = min(end_cap(**shape), start_cap(**shape))
    least = theorem1(**shape) if proved else repaired_conjecture(**shape)
    sharper = sharper_state_bound(**shape)
    binds, words = cap <= sharper, inputs ** min(start, steps - start)
    return Advice(
        depth=depth,
        width=width,
        parameters=parameters,
        inputs=inputs,
        steps=steps,
        split=start,
        least=least,
        proved=proved,
        printed=printed,
        state_bound=state_bound(R=width, T=steps, L=depth, split=start),
        sharper=sharper,
        end_cap=cap,
        warning=_warning(inputs, width, printed, cap, words, reached=least == cap, proved=proved) if binds else "",
    )


def _warning(inputs: int, width: int, printed: int, cap: int, words: int, *, reached: bool, proved: bool) -> str:
    """What follows where U2 binds: the words of the shorter half are not all told apart, or they are."""
    if cap < words and cap < printed:
        return (
            f"R = {width} < M = {inputs}: the inputs tell at most U2 = {rank_text(cap)} words apart; the printed "
            f"conjecture, {rank_text(printed)}, is false here"
        )
    if cap < words:
        return f"R = {width} < M = {inputs}: U2 = {rank_text(cap)} binds; more channels would tell more words apart"
    if reached:
        whether = "" if proved else "if the repaired conjecture holds, "
        return f"{whether}the words of a half are all told apart: more depth or width cannot help over so few steps"
    return ""
