"""The numbers that Dieng et al. 2018 print in Tables 3, 4 and 5: word-level perplexities, of one run each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from statewise.errors import ArgumentError

SIZES = ("medium", "large")
DROPOUT = "dropout"
PLAIN = "none"


class Published(NamedTuple):
    """What a paper prints of a model.

    Attributes:
        valid: its validation perplexity; None where the paper has none.
        test: its test perplexity.
        gamma: the spread of its noise, in the law's own meaning; None without noise.
        doubtful: why the number is no target, if it is none.
    """

    valid: float | None
    test: float | None
    gamma: float | None = None
    doubtful: str = ""


# Each line: medium gamma, dev, test; large gamma, dev, test; then the same for the network with dropout.
_Line = tuple[float | None, ...]
_TABLE3: Mapping[str, _Line] = {
    "": (None, 115, 109, None, 123, 123, None, 80.2, 77.0, None, 78.6, 75.3),
    "gaussian": (1.10, 76.2, 71.8, 1.37, 73.2, 69.1, 0.53, 73.4, 70.4, 0.92, 70.0, 66.1),
    "logistic": (1.06, 76.4, 72.3, 1.39, 73.6, 69.3, 0.53, 73.0, 69.9, 0.84, 69.8, 66.4),
    "laplace": (1.06, 76.6, 72.4, 1.39, 73.7, 69.4, 0.53, 73.1, 70.0, 0.92, 69.9, 66.6),
    "gamma": (1.06, 78.2, 74.5, 1.39, 73.6, 69.5, 0.38, 73.5, 70.3, 0.92, 71.1, 68.2),
    "bernoulli": (0.41, 75.7, 71.4, 0.33, 72.8, 68.3, 0.80, 73.3, 70.1, 0.50, 70.0, 66.1),
    "gumbel": (1.06, 76.2, 72.7, 1.39, 73.5, 69.5, 0.46, 74.5, 71.2, 0.92, 70.2, 67.1),
    "beta": (1.07, 76.0, 71.4, 1.50, 74.4, 70.2, 0.20, 73.0, 69.2, 0.70, 70.0, 66.2),
    "chi-square": (1.50, 84.5, 80.7, 1.20, 79.2, 75.5, 0.29, 76.1, 72.8, 0.82, 73.0, 70.0),
}
_TABLE4: Mapping[str, _Line] = {
    "": (None, 141, 136, None, 176, 140, None, 88.7, 84.8, None, 95.0, 91.0),
    "gaussian": (1.00, 92.7, 87.8, 1.37, 87.7, 83.4, 0.50, 86.3, 82.3, 0.69, 81.4, 77.7),
    "logistic": (1.00, 93.2, 88.4, 1.28, 88.1, 83.5, 0.40, 86.4, 82.5, 0.77, 81.6, 78.1),
    "laplace": (1.00, 95.3, 89.8, 1.28, 88.0, 83.4, 0.40, 85.6, 82.1, 0.61, 83.2, 79.1),
    "gamma": (0.72, 97.6, 92.9, 1.39, 89.2, 84.5, 0.30, 86.5, 82.4, 0.61, 85.5, 81.3),
    "bernoulli": (0.54, 91.2, 86.6, 0.41, 86.9, 83.0, 0.50, 100.6, 94.4, 0.64, 80.8, 76.8),
    "gumbel": (1.00, 95.4, 90.9, 1.28, 88.7, 84.0, 0.30, 86.4, 82.4, 0.53, 83.7, 80.1),
    "beta": (0.80, 91.1, 87.2, 1.50, 86.9, 82.9, 0.10, 86.2, 82.3, 0.60, 81.5, 77.9),
    "chi-square": (0.20, 111, 105, 1.50, 99.0, 92.9, 0.20, 92.0, 87.4, 0.29, 87.1, 82.8),
}
_DOUBTFUL = {
    ("ptb", "large", PLAIN): "validation and test agree, which they do in no other row",
    ("wikitext-2", "large", PLAIN): "36 lie between validation and test, elsewhere 3 to 6",
}

#: Perplexities by (size, row), a row being a law, "none", "dropout", or "dropout+" and a law.
Tables = Mapping[tuple[str, str], Published]


def _spread(data: str, lines: Mapping[str, _Line]) -> Tables:
    found: dict[tuple[str, str], Published] = {}
    for name, numbers in lines.items():
        for place, base in enumerate((PLAIN, PLAIN, DROPOUT, DROPOUT)):
            row = f"{DROPOUT}+{name}" if name and base == DROPOUT else name or base
            gamma, valid, test = numbers[3 * place : 3 * place + 3]
            size = SIZES[place % 2]
            found[size, row] = Published(valid, test, gamma, _DOUBTFUL.get((data, size, row), ""))
    return found


TABLE3 = _spread("ptb", _TABLE3)
TABLE4 = _spread("wikitext-2", _TABLE4)

#: Table 5, Penn Treebank, by what the paper calls the model; parameters in millions come first.
TABLE5: Mapping[str, tuple[int | None, Published]] = {
    "Zaremba 2014, LSTM": (20, Published(86.2, 82.7)),
    "Gal & Ghahramani 2016, variational LSTM (MC)": (20, Published(None, 78.6)),
    "Merity 2016, pointer sentinel-LSTM": (21, Published(72.4, 70.9)),
    "Grave 2016, LSTM + continuous cache": (None, Published(None, 72.1)),
    "Inan 2016, tied variational LSTM + augmented loss": (24, Published(75.7, 73.2)),
    "Zilly 2016, variational RHN": (23, Published(67.9, 65.4)),
    "Melis 2017, 2-layer skip LSTM": (24, Published(60.9, 58.3)),
    "Merity 2017, AWD-LSTM + cache": (24, Published(53.9, 52.8)),
    "Krause 2017, AWD-LSTM + dynamic evaluation": (24, Published(51.6, 51.1)),
    "Yang 2017, AWD-LSTM-MoS + dynamic evaluation": (22, Published(48.3, 47.7)),
    "this paper, + Noisin": (22, Published(48.4, 47.6, 0.4)),
}

#: AWD-LSTM-MoS without Noisin, as its own code base reports it in a later framework; by stage.
MOS_STAGES: Mapping[str, Published] = {
    "trained": Published(58.34, 56.18),
    "fine-tuned": Published(56.83, 54.64),
    "dynamic evaluation": Published(49.03, 48.43),
}


def published(table: Tables, size: str, row: str) -> Published:
    """The numbers of a row, at a size.

    >>> published(TABLE3, "medium", "dropout+beta").test
    69.2
    """
    if (size, row) in table:
        return table[size, row]
    if size not in SIZES:
        raise ArgumentError(where="--size", got=size, wanted=f"one of {', '.join(SIZES)}")
    raise ArgumentError(where="--rows", got=row, wanted=f"some of {', '.join(rows(table))}")


def rows(table: Tables) -> tuple[str, ...]:
    """All rows of a table, in its order.

    >>> rows(TABLE3)[:3]
    ('none', 'dropout', 'gaussian')
    """
    return tuple(dict.fromkeys(row for _, row in table))
