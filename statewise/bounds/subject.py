"""What a bound may need to know of a class of networks and of the network in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.profile import Profile


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A class of networks with all that bounds make numbers of; what is None makes the bounds that need it refuse.

    Constants of the class must have been fixed beforehand, or rounded to a grid and paid for.

    Args:
        profile: with the tight Lipschitz constants.
        paper: with those of the paper, for Theorem 2.
        elman: the class itself, if it is one of Elman networks.
        entry_sums: of each block the bound on the sum of its entries' sizes, by name. A constant of the class.
        cell_rows: the bound on the sum of the lengths of the rows of ``[U, W]``. A constant of the class.
        head_rows: that of V. A constant of the class.
        squared_norm: ``‖w‖²_F`` of the network itself, to which nothing need be rounded.
        singular_values: of the network's blocks, by name; nothing need be rounded.
        balls: names of blocks whose class is the whole ball of the spectral norm.
        all_inputs: whether the bound on inputs holds for all that may come; otherwise for the training inputs alone.
    """

    profile: Profile
    paper: Profile | None = None
    elman: ElmanConstants | None = None
    entry_sums: Mapping[str, float] | None = None
    cell_rows: float | None = None
    head_rows: float | None = None
    squared_norm: float | None = None
    singular_values: Mapping[str, Sequence[float]] | None = None
    balls: frozenset[str] = frozenset()
    all_inputs: bool = True

    @classmethod
    def of_elman(
        cls,
        elman: ElmanConstants,
        *,
        entry_sums: Mapping[str, float] | None = None,
        cell_rows: float | None = None,
        head_rows: float | None = None,
        squared_norm: float | None = None,
        singular_values: Mapping[str, Sequence[float]] | None = None,
        all_inputs: bool = True,
    ) -> Subject:
        """All that follows from the constants of Elman networks.

        Args:
            elman: the class.
            entry_sums: as above, as are the others.
            cell_rows: as above.
            head_rows: as above.
            squared_norm: as above.
            singular_values: as above.
            all_inputs: as above.
        """
        return cls(
            profile=elman.tight(),
            paper=elman.paper(),
            elman=elman,
            entry_sums=entry_sums,
            cell_rows=cell_rows,
            head_rows=head_rows,
            squared_norm=squared_norm,
            singular_values=singular_values,
            balls=frozenset(elman.shapes),
            all_inputs=all_inputs,
        )
