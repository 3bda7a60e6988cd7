"""Numbers to hold ours against, of separation ranks.

Ziv 2019 proves and conjectures bounds and computes no ranks. The ranks here are of an earlier implementation, written
for these checks alone; the bounds beside them are the thesis'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Known(NamedTuple):
    """A rank, and what the thesis bounds it by from below."""

    rank: int
    bound: int


Triple = tuple[int, int, int]


def _cells(inputs: int, widths: Iterable[int], text: str) -> dict[Triple, Known]:
    """Cells such as ``4: 6/4``: a number of steps, a rank, and a bound."""
    found: dict[Triple, Known] = {}
    for cell in text.split(","):
        steps, _, pair = cell.partition(":")
        rank, _, bound = pair.partition("/")
        found |= {(inputs, width, int(steps)): Known(int(rank), int(bound)) for width in widths}
    return found


#: Two layers, by (M, R, T): the rank and Theorem 1.
THEOREM1: Mapping[Triple, Known] = {
    **_cells(2, [2], "2: 2/2, 4: 4/3, 6: 8/4, 8: 10/5, 10: 12/6"),
    **_cells(2, [3, 4, 5], "4: 4/3, 6: 8/4, 8: 16/5, 10: 32/6"),
    **_cells(3, [2], "2: 2/2, 4: 6/3, 6: 8/4, 8: 10/5, 10: 12/6"),
    **_cells(3, [3], "2: 3/3, 4: 9/6, 6: 27/10, 8: 45/15, 10: 63/21"),
    **_cells(3, [4], "8: 81/15, 10: 220/21"),
    **_cells(3, [5], "8: 81/15, 10: 243/21"),
    **_cells(4, [2], "4: 6/3, 6: 8/4, 8: 10/5"),
    **_cells(4, [3], "4: 12/6, 6: 30/10, 8: 45/15"),
    **_cells(4, [4], "4: 16/10, 6: 64/20, 8: 140/35"),
    **_cells(4, [5], "6: 64/20, 8: 256/35"),
    **_cells(5, [2], "4: 6/3, 6: 8/4"),
    **_cells(5, [3], "4: 15/6, 6: 30/10"),
    **_cells(5, [4], "4: 20/10, 6: 80/20"),
    **_cells(5, [5], "4: 25/15, 6: 125/35"),
}

#: Three layers, by (M, R, T): the rank and the conjecture as printed.
CONJECTURE: Mapping[Triple, Known] = {
    **_cells(2, range(2, 7), "4: 4/4, 6: 8/7, 8: 16/11, 10: 32/16, 12: 64/22, 16: 256/37, 20: 1024/56"),
    **_cells(2, [2], "22: 1604/67, 24: 2050/79"),
    **_cells(2, [6], "22: 2048/67"),
    **_cells(3, [2], "4: 6/4, 6: 18/7, 8: 54/11, 10: 162/16, 12: 304/22, 14: 460/29"),
    **_cells(3, range(3, 7), "4: 9/9, 6: 27/27, 8: 81/66, 10: 243/136, 12: 729/253"),
    **_cells(3, [3, 6], "14: 2187/435"),
    **_cells(4, [2], "4: 8/4, 6: 32/7, 8: 106/11, 10: 188/16"),
    **_cells(4, [3], "4: 12/10, 6: 48/28, 8: 192/66, 10: 768/136, 12: 3072/253"),
    **_cells(4, range(4, 7), "4: 16/16, 6: 64/64, 8: 256/256, 10: 1024/816"),
    **_cells(4, [4], "12: 4096/2024"),
    **_cells(5, [2], "4: 8/4, 6: 40/7, 8: 106/11"),
    **_cells(5, [3], "4: 15/10, 6: 75/28, 8: 375/66"),
    **_cells(5, [4], "4: 20/20, 6: 100/84, 8: 500/286, 10: 2500/816"),
    **_cells(5, [5], "4: 25/25, 6: 125/125, 8: 625/625, 10: 3125/3125"),
    **_cells(6, [3], "4: 18/10, 6: 108/28"),
    **_cells(6, [4], "4: 24/20, 6: 144/84"),
    **_cells(6, [5], "4: 30/35, 6: 180/210, 8: 1080/1001"),
    **_cells(6, [6], "4: 36/36, 6: 216/216, 8: 1296/1296"),
    **_cells(7, [6], "4: 42/49, 6: 294/343, 8: 2058/2401"),
    **_cells(7, [7], "6: 343/343, 8: 2401/2401"),
}

#: Three layers: all shapes that violate the printed conjecture, with the rank and what it asks for.
VIOLATIONS: Mapping[Triple, Known] = {
    (6, 5, 4): Known(30, 35),
    (6, 5, 6): Known(180, 210),
    (7, 6, 4): Known(42, 49),
    (7, 6, 6): Known(294, 343),
    (7, 6, 8): Known(2058, 2401),
    (8, 6, 4): Known(48, 56),
    (8, 6, 6): Known(384, 462),
    (8, 7, 6): Known(448, 512),
    (9, 6, 4): Known(54, 56),
    (9, 8, 6): Known(648, 729),
    (10, 9, 6): Known(900, 1000),
    (11, 10, 6): Known(1210, 1331),
    (20, 12, 4): Known(240, 364),
    (20, 19, 4): Known(380, 400),
}

#: How many shapes meet, exceed and violate the bound, by depth and batch.
VERDICTS: Mapping[tuple[int, str], tuple[int, int, int]] = {
    (1, "shallow"): (132, 0, 0),
    (2, "shallow"): (67, 65, 0),
    (3, "small"): (85, 85, 5),
    (3, "medium"): (2, 41, 2),
    (3, "large"): (10, 11, 7),
}

#: Two layers: the only shape whose rank is below both upper bounds, with the rank and the lesser of these.
SHORT2: Mapping[Triple, tuple[int, int]] = {(3, 4, 10): (220, 224)}
#: Three layers: how many shapes have the rank min{U1, U2}, and by how much all others fall short.
REACHED, DEFICIT = 237, 4
#: Three layers: shapes with M <= R, which all satisfy the printed conjecture.
NARROW_ALPHABETS = 116
#: Four layers: how many shapes were known, and a small one that violates the printed conjecture.
FOUR_LAYERS, FOUR_LAYERS_VIOLATION = 133, ((4, 3, 4), Known(12, 15))
