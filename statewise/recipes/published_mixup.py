"""The numbers that Karamzade et al. 2020 print in Tables 1 and 2: taggers on CoNLL-2003, F1 in per cent."""

from __future__ import annotations

from collections.abc import Mapping

SITES = ("input", "pre-output", "through-time")

#: Table 1: the F1 of training without mixing, by cell.
TABLE1_STANDARD: Mapping[str, float] = {"rnn": 70.72, "gru": 72.17, "lstm": 73.23}

#: Table 1: the F1 by cell and alpha, a number for each of the sites.
TABLE1: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "rnn": {
        "0.1": (72.25, 71.51, 72.14),
        "0.2": (72.40, 71.75, 72.30),
        "0.5": (71.53, 72.32, 72.57),
        "1": (72.58, 71.54, 72.15),
        "2": (72.48, 70.68, 71.96),
    },
    "gru": {
        "0.1": (73.55, 73.48, 73.37),
        "0.2": (73.78, 73.36, 73.86),
        "0.5": (73.85, 73.05, 73.74),
        "1": (74.00, 72.90, 73.33),
        "2": (73.32, 72.93, 73.33),
    },
    "lstm": {
        "0.1": (74.35, 73.67, 73.84),
        "0.2": (74.35, 73.78, 74.34),
        "0.5": (74.73, 73.80, 74.33),
        "1": (74.34, 73.94, 73.96),
        "2": (74.28, 73.77, 73.39),
    },
}

#: Table 2: F1 and negative log-likelihood of a biLSTM-CRF, by training.
TABLE2: Mapping[str, tuple[float, float]] = {
    "standard": (93.22, 1.07),
    "input": (93.29, 0.59),
    "pre-output": (93.30, 0.72),
    "through-time": (93.17, 0.67),
}
TABLE2_ALPHAS: Mapping[str, float] = {"input": 0.1, "pre-output": 0.7, "through-time": 0.1}


def table1(cell: str, row: str) -> float | None:
    """The F1 of a row of Table 1; None if the paper has no such row.

    Args:
        cell: "rnn", "gru" or "lstm".
        row: "standard", or a site and an alpha.

    >>> table1("lstm", "pre-output-0.5"), table1("gru", "standard")
    (73.8, 72.17)
    """
    if row == "standard":
        return TABLE1_STANDARD.get(cell)
    site, _, alpha = row.rpartition("-")
    numbers = TABLE1.get(cell, {}).get(alpha)
    return None if numbers is None or site not in SITES else numbers[SITES.index(site)]
