"""Numbers to hold ours against, of bounds on recurrent networks.

Chen, Li & Zhao 2019 print one table, of orders, and no experiment. The other numbers here are of an earlier
implementation of the same formulas and settings, written for these checks alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Growth:
    """How a bound of Table 1 grows: as ``d^dimension t^steps e^(nats t)``, logarithms left out.

    Args:
        printed: the order in words.
        steps: the power of t.
        dimension: the power of d, with the norms of the bound fixed.
        grows: whether there is a factor β^t.
    """

    printed: str
    steps: float
    dimension: float
    grows: bool = False


#: Table 1, by range of β and bound; all are divided by √m γ.
TABLE1: Mapping[str, Mapping[str, Growth]] = {
    "below": {
        "thm2": Growth("d", 0, 1),
        "bound3": Growth("t ΣM", 1, 0),
        "bound4": Growth("√(d ΣF²)", 0, 0.5),
    },
    "equal": {
        "thm2": Growth("d t", 1, 1),
        "bound3": Growth("t² ΣM", 2, 0),
        "bound4": Growth("d t √ΣF²", 1, 1),
    },
    "above": {
        "thm2": Growth("√(d³ t)", 0.5, 1.5),
        "bound3": Growth("t β^t ΣM", 1, 0, grows=True),
        "bound4": Growth("d β^t √ΣF²", 0, 1, grows=True),
    },
}

#: The power of t in Theorem 2 between 1,000 and 10,000 steps, by activation and β.
SLOPES: Mapping[tuple[str, str], float] = {
    ("tanh", "0.9"): 0.017,
    ("tanh", "1"): 0.028,
    ("tanh", "1.5"): 0.487,
    ("identity", "1"): 1.028,
}
#: The penalty of Theorem 2 at β = 1 after so many steps, with tanh.
PENALTIES: Mapping[int, float] = {2: 40.9992, 4: 84.7059, 8: 174.6591, 16: 179.7532}
#: What each step adds to ln of bounds (3) and (4) at β = 1.5.
NATS_PER_STEP = math.log(1.5)

_BOUNDS = ("thm2", "dudley", "thm3_l1", "bartlett_unrolled", "pac_bayes", "zhang_order")
_COLUMNS = ("parameters", *_BOUNDS, "nats_per_parameter", "kl_0", "kl_5")
#: How vacuous: penalties, nats of the cover for each parameter, and the certificate at a margin risk of 0 and 0.05.
VACUOUS: Mapping[str, Mapping[str, float]] = {
    row: dict(zip(_COLUMNS, numbers, strict=True))
    for row, numbers in {
        "toy-0.9": (28, 61.3, 1.08, 323, 460, 156, 107, 6.9, 0.0020, 0.0649),
        "toy-1": (28, 62.4, 1.13, 720, 1.1e3, 346, 107, 7.6, 0.0021, 0.0656),
        "toy-1.5": (28, 70.2, 1.39, 2.3e5, 2.4e5, 9.6e4, 3.6e5, 11.7, 0.0033, 0.0698),
        "row-mnist16-0.9": (864, 348, 8.17, 1.9e4, 9.7e3, 1.2e3, 847, 7.7, 0.106, 0.218),
        "row-mnist16-1": (864, 355, 8.62, 5.6e4, 3.2e4, 3.5e3, 847, 8.7, 0.117, 0.231),
        "row-mnist16-1.5": (864, 412, 11.5, 10**8.5, 10**8.0, 10**7.3, 10**7.9, 15.8, 0.203, 0.322),
        "row-mnist128-0.9": (21248, 4.95e3, 41.2, 3.1e5, 1.0e5, 7.7e3, 4.2e3, 8.0, 0.941, 0.959),
        "row-mnist128-1.5": (21248, 5.84e3, 59.9, 10**9.8, 10**9.0, 10**8.1, 10**8.6, 17.3, 0.998, 0.999),
        "pixel-mnist-1": (17792, 5.03e3, 45.3, 10**7.2, 10**7.4, 3.2e5, 10**6.5, 11.7, 0.969, 0.979),
        "pixel-mnist-1.5": (17792, 1.65e4, 227, 10**142.4, 10**141.7, 10**140.7, 10**144.5, 300.9, 1, 1),
        "speech-1": (78848, 1.23e4, 76.3, 10**7.0, 10**6.7, 1.6e5, 8.7e4, 10.6, 1, 1),
    }.items()
}
#: Gated networks: θ is the decay of the state, β the growth of a difference.
GATED: Mapping[str, Mapping[str, float]] = {
    "mgu16-normalised": {"parameters": 1568, "theta": 0.852, "beta": 0.916, "nats": 8693, "kl_0": 0.135},
    "lstm16-normalised": {"parameters": 2976, "beta": 1.180, "nats": 11742, "kl_0": 0.178},
    "mgu128-normalised": {"nats": 238488, "kl_0": 0.981},
    "lstm128-normalised": {"nats": 320489, "kl_0": 0.995},
    "mgu16-typical": {"beta": 2.75, "nats": 45766, "kl_0": 0.534},
    "lstm16-typical": {"beta": 9.49, "nats": 143400, "kl_0": 0.908},
}

#: Certificates of trained networks; with what each had to be at most.
TRAINED: Mapping[str, Mapping[str, float]] = {
    "dh4-m100000": {
        "certificate": 0.0045,
        "error": 0.0,
        "test_error": 0.0,
        "norm_u": 2.18,
        "norm_v": 3.36,
        "norm_w": 0.39,
        "gamma": 8.0,
        "class_nats": 428.5,
        "choice_nats": 20.9,
        "thm2": 1.06,
        "dudley": 1.04,
    },
    "dh8-m100000": {"certificate": 0.0132, "error": 0.0, "test_error": 0.0},
    "dh4-m10000": {"certificate": 0.0450, "error": 0.0, "test_error": 0.0},
}
#: Random labels: the least and the most of eight seeds.
RANDOM_LABELS: Mapping[str, tuple[float, float]] = {"certificate": (0.964, 0.988), "error": (0.33, 0.41)}
#: What the certificates must not exceed.
AT_MOST: Mapping[str, float] = {"dh4-m100000": 0.006, "dh8-m100000": 0.02}

#: Wang & Niepert 2019, Table 9: how many words the networks of Tomita's grammars were trained on.
TOMITA_WORDS: Mapping[str, int] = {"1": 265, "2": 257, "3": 2141, "4": 2571, "5": 1651, "6": 2523, "7": 1561}
#: The bound that the true machine has with no error on so many words, at δ = 0.05.
TOMITA_BOUNDS: Mapping[str, float] = {
    "1": 0.03215,
    "2": 0.04909,
    "3": 0.01015,
    "4": 0.00672,
    "5": 0.01044,
    "6": 0.00511,
    "7": 0.01390,
}
#: What is asked of a certificate on MNIST by rows, and of the test error of such a network.
ROWS_AT_MOST, ROWS_ERROR = 0.30, 0.08
