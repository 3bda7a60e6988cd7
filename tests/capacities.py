"""What a search for capacities finds, made by hand."""

from __future__ import annotations

from statewise.sweep.network_capacity import NetworkCapacity
from statewise.sweep.trial import Failure, Outcome
from statewise.sweep.tries import Run, Try

#: How a run ends that does not solve its value.
REASONS = {"capped": "iterations", "failed": "converged", "stopped": "stopped"}


def tried(value: int, accuracy: float, reason: str = "converged") -> Try:
    """A value with one run."""
    return _once(
        value,
        Outcome(
            accuracy=accuracy,
            loss=0.1,
            best_iteration=1,
            iterations=1,
            reason=reason,
            seconds=1.0,
            orthogonality=0.0,
        ),
    )


def broken(value: int) -> Try:
    """A value whose run could not be made."""
    return _once(value, Failure(error="no memory"))


def _once(value: int, outcome: Outcome | Failure) -> Try:
    return Try(value=value, runs=(Run(lr=1e-3, lr_recurrent=1e-4, seed=0, folder="run", outcome=outcome),))


def bounded(depth: int, capacity: int | None, how: str = "capped") -> NetworkCapacity:
    """A network that has solved one of the values 0, 50, 100 and 150, or none of them; ``how`` the next one ended."""
    values = (0, 50, 100, 150)
    solved = [value for value in values if capacity is not None and value <= capacity]
    tries = [tried(value, 1.0) for value in solved]
    harder = values[len(solved) :]
    if harder and how != "untried":
        tries.append(broken(harder[0]) if how == "broken" else tried(harder[0], 0.5, REASONS[how]))
    return NetworkCapacity(
        depth=depth,
        width=8,
        size=None,
        parameters=100,
        thesis_parameters=90,
        values=values,
        tries=tuple(tries),
        seconds=1.0,
    )
