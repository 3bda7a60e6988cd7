"""What a search for the capacity of networks has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statewise.sweep.capacity_table import COLUMNS, capacity_notes, capacity_row
from statewise.sweep.network_capacity import NetworkCapacity


@dataclass(frozen=True, kw_only=True)
class CapacityResult:
    """The capacities of all networks of a search, and what they were found by.

    Args:
        search: the search, as it describes itself: task, values, rates, seeds, and all budgets.
        networks: one each.
    """

    search: Mapping[str, Any]
    networks: tuple[NetworkCapacity, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """The table under ``statewise.sweep.capacity_table.COLUMNS``: a row of texts for each network."""
        return [capacity_row(each) for each in self.networks]

    def notes(self) -> list[str]:
        """What must be said beside the table: budgets, and results that are no clear answer."""
        return capacity_notes(self.search, self.networks)

    def text(self) -> str:
        """The table and its notes, for a terminal."""
        table = [COLUMNS, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([*lines, *self.notes()])

    def points(self, axis: str) -> dict[int, list[tuple[int, int | None, str]]]:
        """By depth, sorted: where a network is on an axis, its capacity, and how that is censored.

        Args:
            axis: "parameters", "thesis_parameters" or "width".
        """
        found: dict[int, list[tuple[int, int | None, str]]] = {}
        for each in self.networks:
            found.setdefault(each.depth, []).append((getattr(each, axis), each.capacity, each.censored))
        return {depth: sorted(points, key=lambda point: point[0]) for depth, points in sorted(found.items())}

    def describe(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {"search": dict(self.search), "networks": [each.describe() for each in self.networks]}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> CapacityResult:
        """The result that was described.

        Args:
            document: what :meth:`describe` gave.
        """
        above = document["search"]["above"]
        return cls(
            search=document["search"], networks=tuple(NetworkCapacity.of(each, above) for each in document["networks"])
        )
