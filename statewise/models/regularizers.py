"""What the settings of all models have in common: regularizers of the recurrence, as numbers and words."""

from __future__ import annotations

from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer
from statewise.transforms import Noise, Zoneout
from statewise.transforms.base import probability
from statewise.weights import weight_drop

#: The cells that carry a memory c beside their state.
WITH_MEMORY = ("lstm", "peephole")


def zoneout_of(p: float, *, cell: str, memory: float | None = None, where: str) -> list[Zoneout]:
    """Zoneout of the states of a cell by its name, and of its memory if it has one; nothing where both are 0.

    Args:
        p: the probability with which a unit of the state keeps its value.
        cell: as settings name it.
        memory: the same for the memory; None for as much, where there is a memory.
        where: the class of the settings, for errors.

    >>> zoneout_of(0.1, cell="lstm", where="TaggerConfig")
    [Zoneout(0.1, memory=0.1)]
    >>> zoneout_of(0.1, cell="gru", where="TaggerConfig")
    [Zoneout(0.1)]
    """
    probability(f"{where}.zoneout", p)
    if memory is not None:
        probability(f"{where}.zoneout_memory", memory)
        if cell not in WITH_MEMORY:
            raise ArgumentError(
                where=f"{where}.zoneout_memory",
                got=f'{memory} with cell="{cell}"',
                wanted=f"a cell with a memory: {' or '.join(WITH_MEMORY)}",
                remedy="zoneout is for the state of every cell.",
            )
    kept = (p if memory is None else memory) if cell in WITH_MEMORY else 0.0
    return [Zoneout(p, memory=kept)] if p > 0.0 or kept > 0.0 else []


def check_law(law: str | None, gamma: float | None, *, where: str, name: str = "noise") -> None:
    """Refuse a law of noise without its spread, or a spread without a law.

    Args:
        law: of the noise, or None.
        gamma: its spread, or None.
        where: the class of the settings.
        name: what the law is called there.

    >>> check_law(None, None, where="TaggerConfig")
    """
    if (law is None) != (gamma is None):
        raise ArgumentError(
            where=f"{where}.gamma",
            got=f"{gamma} with {name}={law!r}",
            wanted="a law and its spread, or neither",
            remedy=f'Give both, such as {name}="gaussian", gamma=0.5.',
        )
    if law is not None and gamma is not None:
        Noise(law, gamma)


def refuse_idle(where: str, got: object, *, needs: str, remedy: str = "") -> None:
    """Refuse a setting that does nothing without another one.

    Args:
        where: the setting.
        got: what it was given.
        needs: the other.
        remedy: what to do; nothing where ``needs`` says it.
    """
    raise ArgumentError(where=where, got=f"{got} without {needs}", wanted=f"{needs} with it", remedy=remedy)


def check_temperature(centroids: int | None, temperature: float, *, where: str) -> None:
    """Refuse a temperature where there are no centroids.

    Args:
        centroids: how many there are, or None.
        temperature: of the centroids.
        where: the class of the settings.
    """
    if centroids is None and temperature != 1.0:
        remedy = "Give centroids, such as centroids=1000."
        refuse_idle(f"{where}.temperature", temperature, needs="centroids", remedy=remedy)


def drop_recurrent_weights(layer: RecurrentLayer, p: float) -> None:
    """Weight drop on the recurrent matrices of all layers and directions, once they have their first values.

    Args:
        layer: the stack.
        p: the probability with which an entry is dropped; 0 leaves the layer as it is.
    """
    if p > 0.0:
        sides = ("", "_reverse")[: layer.num_directions]
        names = [f"weight_hh_l{index}{side}" for index in range(layer.num_layers) for side in sides]
        weight_drop(layer, names, p=p)
