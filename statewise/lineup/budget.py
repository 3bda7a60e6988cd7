"""How many epochs fit into the time that is left, told from how long they have taken so far."""

from __future__ import annotations

from statewise.errors import ArgumentError

#: Parts of the time after which candidates are compared and the worse ones dropped; the rest is the finalists'.
MARKS = (1 / 3, 2 / 3, 1.0)


def more_epochs(*, left: float, epoch: float) -> int:
    """How many epochs to train all candidates for before looking at the clock again; 0 if not even one fits.

    ``n = max(1, floor(left / (2 epoch)))``: half of what seems to fit, so that epochs which turn out to be up to twice
    as long still end in time; the last steps are of one epoch, so that what is begun in time ends at most one epoch's
    time after it.

    Args:
        left: seconds.
        epoch: how many an epoch of all candidates takes, as far as is known.

    >>> more_epochs(left=100.0, epoch=10.0), more_epochs(left=11.0, epoch=10.0), more_epochs(left=9.0, epoch=10.0)
    (5, 1, 0)
    """
    if epoch < 0:
        raise ArgumentError(where="more_epochs.epoch", got=epoch, wanted="seconds, 0 or more")
    if epoch > left or left <= 0:
        return 0
    return max(1, int(left / (2 * epoch))) if epoch > 0 else 1


def too_little(*, budget: float, epoch: float, runs: int) -> ArgumentError:
    """The error for a time in which not even one epoch of all candidates fits.

    Args:
        budget: seconds that were given.
        epoch: seconds of an epoch of all runs.
        runs: how many there are.

    >>> print(too_little(budget=60.0, epoch=600.0, runs=30))
    --minutes: got 1, wanted about 31 or more: one epoch of 30 runs takes 10.0 minutes. Give more time, or compare fewer
    (--lineup none,dropout,noise) with fewer --seeds, a smaller --hidden, or more --workers; in another folder (--out).
    """
    return ArgumentError(
        where="--minutes",
        got=f"{budget / 60:g}",
        wanted=f"about {3 * epoch / 60 + 1:.0f} or more: one epoch of {runs} runs takes {epoch / 60:.1f} minutes",
        remedy="Give more time, or compare fewer (--lineup none,dropout,noise) with fewer --seeds, a smaller --hidden, "
        "or more --workers; in another folder (--out).",
    )
