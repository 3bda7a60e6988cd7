"""Numbers to hold ours against, of experiments for which Karamzade et al. 2020 print pictures only.

They are means over seeds of an earlier implementation with the same settings, written for these checks alone.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Figure 1, half moons: by (data, training). The last: the share of the plane where 0.1 < p < 0.9.
HALFMOONS: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("clean", "standard"): {"accuracy": 1.0, "nll": 0.0, "confidence": 1.0, "band": 0.043},
    ("clean", "input"): {"accuracy": 0.9906, "nll": 0.0929, "confidence": 0.921, "band": 0.278},
    ("clean", "pre-output"): {"accuracy": 1.0, "nll": 0.0290, "confidence": 0.9714, "band": 0.110},
    ("clean", "through-time"): {"accuracy": 1.0, "nll": 0.0324, "confidence": 0.969, "band": 0.157},
    ("noisy", "standard"): {"accuracy": 0.8829, "nll": 0.567, "confidence": 0.960, "band": 0.072},
    ("noisy", "input"): {"accuracy": 0.8933, "nll": 0.272, "confidence": 0.848, "band": 0.320},
    ("noisy", "pre-output"): {"accuracy": 0.9079, "nll": 0.250, "confidence": 0.896, "band": 0.217},
    ("noisy", "through-time"): {"accuracy": 0.9125, "nll": 0.233, "confidence": 0.887, "band": 0.317},
}

_SURROGATE = ("accuracy", "nll", "sigma_1", "sigma_5", "sigma_20", "variance", "leakage", "effective_rank")
#: A stand-in for Figure 5 and Table 1 without licensed text, by training: centred sigma_k / sqrt(n), mean over classes.
SURROGATE: Mapping[str, Mapping[str, float]] = {
    row: dict(zip(_SURROGATE, numbers, strict=True))
    for row, numbers in {
        "standard": (0.704, 1.634, 0.891, 0.603, 0.260, 5.42, 0.242, 19.7),
        "pre-output": (0.733, 0.872, 0.839, 0.471, 0.199, 3.61, 0.038, 17.8),
        "through-time": (0.752, 0.745, 0.743, 0.480, 0.224, 3.72, 0.087, 20.6),
        "input": (0.751, 0.700, 0.725, 0.512, 0.220, 3.85, 0.144, 20.2),
    }.items()
}
