"""The grid tensor of any network: its last output for every word of templates, and the matrices it can be cut into."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.memory.whole import exceeds, wholes

Network = Callable[..., Any]

#: Grid tensors of more entries are refused: half a gigabyte of float64.
MOST = 1 << 26


def grid_tensor(
    network: Network,
    templates: Float[Tensor, "templates features"],
    steps: int,
    *,
    readout: Float[Tensor, "#outputs channels"] | Float[Tensor, " channels"] | nn.Linear | None = None,
    output: int = 0,
    chunk: int = 4096,
) -> Float[Tensor, "..."]:
    """``A[d_1, ..., d_T] = y(x^(d_1), ..., x^(d_T))``: an order for every step (Ziv 2019, eq. 2.8).

    Args:
        network: any callable of inputs (steps, batch, features): a recurrent layer of this library or of torch, which
            returns (output, state), or a function that returns scores (batch,) or (batch, outputs).
        templates: the inputs there are.
        steps: T.
        readout: of the last state of a layer: a vector, a matrix (outputs, channels) or a linear layer.
        output: which of several scores.
        chunk: words that are computed together.

    >>> import statewise
    >>> layer = statewise.LSTM(2, 3).double()
    >>> grid_tensor(layer, torch.eye(2).double(), 4, readout=torch.ones(3).double()).shape
    torch.Size([2, 2, 2, 2])
    """
    scores = on_words(scorer(network, readout=readout, output=output), templates, steps, chunk=chunk)
    return scores.reshape([len(templates)] * steps)


def on_words(
    score: Callable[[Tensor], Tensor], templates: Float[Tensor, "templates features"], steps: int, *, chunk: int = 4096
) -> Float[Tensor, "words *scores"]:
    """What a function says of all words of templates, the first step most significant.

    Args:
        score: of inputs (steps, batch, features), such as :func:`scorer` gives.
        templates: the inputs there are.
        steps: T.
        chunk: words that are computed together.

    >>> on_words(lambda x: x[0, :, 0] - x[1, :, 0], torch.tensor([[1.0], [2.0]]), 2).tolist()
    [0.0, -1.0, 1.0, 0.0]
    """
    count, steps, chunk = wholes("grid_tensor", templates=len(templates), steps=steps, chunk=chunk)
    if exceeds(count, steps, MOST):
        raise ArgumentError(
            where="grid_tensor",
            got=f"{count}^{steps} words",
            wanted=f"at most {MOST}",
            remedy="Sample instead: empirical_profile(network, starts, ends) needs no table of all words.",
        )
    words = torch.cartesian_prod(*[torch.arange(count, device=templates.device)] * steps).reshape(-1, steps)
    with torch.no_grad():
        refuse_chance(score, templates[words[:2]].transpose(0, 1))
        return torch.cat([score(templates[part].transpose(0, 1)) for part in words.split(chunk)])


def matricize(tensor: Float[Tensor, "..."], rows: Sequence[int] | int) -> Float[Tensor, "rows columns"]:
    """A tensor as a matrix: some of its steps count the rows, the others the columns (Ziv 2019, section 2.2).

    Args:
        tensor: a grid tensor.
        rows: which steps, counted from 0, in any order; a number stands for so many of the first.

    >>> matricize(torch.arange(8.0).reshape(2, 2, 2), [1]).tolist()
    [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    """
    first = isinstance(rows, int)
    chosen = sorted(range(rows) if isinstance(rows, int) else rows)
    others = [step for step in range(tensor.dim()) if step not in chosen]
    twice = len(set(chosen)) != len(chosen) or len(chosen) + len(others) != tensor.dim()
    if twice or (first and len(chosen) != rows):
        raise ArgumentError(
            where="matricize.rows",
            got=rows,
            wanted=f"different steps from 0 to {tensor.dim() - 1}, or how many are first",
        )
    sizes = [tensor.shape[step] for step in chosen]
    height = int(torch.tensor(sizes).prod()) if sizes else 1
    return tensor.permute(*chosen, *others).reshape(height, -1)


def scorer(network: Network, *, readout: Any = None, output: int = 0) -> Callable[[Tensor], Tensor]:
    """A function from inputs (steps, batch, features) to one score each, (batch,), whatever kind of network it is.

    Args:
        network: as :func:`grid_tensor` takes it.
        readout: of a layer's last state.
        output: which of several scores.

    >>> scorer(lambda x: x.sum((0, 2)))(torch.ones(4, 3, 2)).tolist()
    [8.0, 8.0, 8.0]
    """
    batch_first = bool(getattr(network, "batch_first", False))

    def score(x: Tensor) -> Tensor:
        found = network(x.transpose(0, 1) if batch_first else x)
        if isinstance(found, tuple):
            found = found[0][:, -1] if batch_first else found[0][-1]
        if isinstance(readout, nn.Module):
            found = readout(found)
        elif readout is not None:
            if not isinstance(readout, Tensor):
                raise DtypeError(where="the readout", got=type(readout).__name__, wanted="a tensor, or a layer")
            if readout.dim() not in (1, 2) or readout.shape[-1] != found.shape[-1]:
                got, wanted = tuple(readout.shape), f"a number for each of {found.shape[-1]} channels"
                raise ShapeError(where="the readout", got=got, wanted=wanted)
            found = found @ readout.mT if readout.dim() == 2 else found @ readout
        if not isinstance(found, Tensor):
            raise DtypeError(where="the network", got=type(found).__name__, wanted="a tensor, or (output, state)")
        scores = found.unsqueeze(1) if found.dim() == 1 else found
        if scores.dim() != 2 or len(scores) != x.shape[1] or not 0 <= output < scores.shape[1]:
            wanted = f"({x.shape[1]},) or ({x.shape[1]}, more than {output}): a score for each sequence"
            raise ShapeError(where="the network's scores", got=tuple(found.shape), wanted=wanted)
        return scores[:, output]

    return score


def words_of(symbols: int, steps: int) -> list[tuple[int, ...]]:
    """All words in the order of a grid tensor's entries, the first step most significant.

    Args:
        symbols: M.
        steps: T.

    >>> words_of(2, 2)
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return list(itertools.product(range(symbols), repeat=steps))


def refuse_chance(score: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """Refuse a network that draws a start or drops units: the same words get other scores, and there is no table.

    Args:
        score: of :func:`scorer`.
        x: any inputs.
    """
    if not torch.equal(score(x), score(x)):
        raise ArgumentError(
            where="the network",
            got="other scores for the same inputs",
            wanted="a function of its inputs",
            remedy="Call eval(), and give orthogonal layers a fixed start: initial_state='zeros' or 'learned'.",
        )
