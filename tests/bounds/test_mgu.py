"""Classes of MGU layers."""

from __future__ import annotations

from typing import ClassVar

from contracts.network_classes import NetworkClassContract
from statewise.bounds.mgu import MGUClass


class TestMGUClass(NetworkClassContract):
    kind, layer = "mgu", MGUClass
    # a = (2 + 1/2) / 4: a/2 + 1/2 of the input; 1 + 1/2 + a/2 of the state.
    first_step: ClassVar = {"embedding": 0.625 / 2 + 0.5, "start": 1.5 + 0.625 / 2}
