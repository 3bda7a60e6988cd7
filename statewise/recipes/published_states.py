"""The numbers that Wang & Niepert 2019 print in Tables 1 to 5, 7 and 11, and what they say of Tomita's grammars."""

from __future__ import annotations

from collections.abc import Mapping

from statewise.recipes.published import Published

#: The six test sets of balanced parentheses, as ``statewise.data.parentheses_sets`` names them.
PARENTHESES = ("d 1-10, l 100", "d 10-20, l 100", "d 10-20, l 200", "d 5, l 200", "d 10, l 200", "d 20, l 1000")

#: Table 1: error rates by (size, row), a number a test set. The paper has no row lstm-p.
TABLE1: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("large", "lstm"): (0.005, 0.334, 0.341, 0.002, 0.207, 0.543),
    ("large", "sr-lstm"): (0.038, 0.255, 0.313, 0.044, 0.227, 0.540),
    ("large", "sr-lstm-p"): (0.000, 0.001, 0.003, 0.000, 0.004, 0.020),
    ("small", "lstm"): (0.068, 0.472, 0.479, 0.042, 0.409, 0.519),
    ("small", "sr-lstm"): (0.037, 0.347, 0.352, 0.028, 0.279, 0.508),
    ("small", "sr-lstm-p"): (0.017, 0.189, 0.196, 0.015, 0.138, 0.380),
}

#: Table 2: error rates of SR-LSTM-P on the small set by the number of centroids.
TABLE2: Mapping[str, tuple[float, ...]] = {
    "k2": (0.019, 0.096, 0.097, 0.014, 0.038, 0.399),
    "k5": (0.017, 0.189, 0.196, 0.015, 0.138, 0.380),
    "k10": (0.021, 0.205, 0.213, 0.012, 0.154, 0.432),
    "k50": (0.034, 0.192, 0.191, 0.047, 0.128, 0.410),
}

#: Table 3: errors in per cent on palindromes, up to the lengths 100, 200 and 500.
TABLE3: Mapping[str, tuple[float, ...]] = {
    "lstm": (31.2, 42.0, 47.7),
    "lstm-p": (28.4, 36.2, 41.5),
    "sr-lstm": (28.0, 36.0, 44.6),
    "sr-lstm-p": (10.5, 16.7, 29.8),
}

#: Table 4: errors in per cent of networks trained on ten words of each review, at 100 and at 200 words.
TABLE4: Mapping[str, Mapping[str, float]] = {
    "lstm": {"train 100": 29.23, "train 200": 32.77, "test 100": 29.96, "test 200": 33.19},
    "sr-lstm": {"train 100": 27.17, "train 200": 31.72, "test 100": 28.82, "test 200": 32.88},
    "lstm-p": {"train 100": 25.50, "train 200": 29.05, "test 100": 28.02, "test 200": 30.12},
    "sr-lstm-p": {"train 100": 23.30, "train 200": 24.67, "test 100": 26.04, "test 200": 26.21},
}

#: Table 5: errors in per cent on whole reviews.
TABLE5: Mapping[str, float] = {
    "lstm": 10.1,
    "lstm-p": 10.3,
    "sr-lstm": 9.4,
    "sr-lstm-p": 9.2,
    "sr-lstm-p-50": 9.8,
}

#: Table 7: accuracies in per cent on MNIST read pixel by pixel; the paper prints none of permuted pixels.
TABLE7: Mapping[tuple[str, str], float] = {
    ("mnist", "lstm"): 97.7,
    ("mnist", "lstm-p"): 98.5,
    ("mnist", "sr-lstm-100"): 98.6,
    ("mnist", "sr-lstm-p-100"): 99.2,
    ("mnist", "sr-lstm-p-50"): 98.6,
    ("mnist", "sr-lstm-p-10"): 98.0,  # section 5.5: the networks whose prototypes are shown
    ("fashion", "sr-lstm-p-10"): 86.0,
}

#: Table 11: perplexities on 7,500 articles of Wikipedia.
TABLE11: Mapping[str, Published] = {
    "lstm": Published(83.2, 85.2),
    "lstm-p": Published(85.8, 86.9),
    "sr-lstm": Published(80.9, 82.7),
    "sr-lstm-p": Published(80.2, 81.3),
}

#: Section 5.1: whether the automaton that was read equals the minimal one.
TOMITA: Mapping[str, str] = {
    **dict.fromkeys(("1", "2", "3", "4"), "yes"),
    **dict.fromkeys(("5", "6"), "no"),
    "7": "yes",
    "random": "-",
}
