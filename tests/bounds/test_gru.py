"""Classes of GRU layers."""

from __future__ import annotations

from typing import ClassVar

from contracts.network_classes import NetworkClassContract
from statewise.bounds.gru import GRUClass


class TestGRUClass(NetworkClassContract):
    kind, layer = "gru", GRUClass
    # Update 1/2 · 1/2, candidate 1/2, reset 1/4 · M · 1/2 with M = 1/2 · 1; of the state 1 more is kept.
    first_step: ClassVar = {"embedding": 0.25 + 0.5 + 0.0625, "start": 1 + 0.25 + 0.5 + 0.0625}
