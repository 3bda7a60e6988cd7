"""Classes of Elman layers."""

from __future__ import annotations

from typing import ClassVar

from contracts.network_classes import NetworkClassContract
from statewise.bounds.elman import ElmanClass


class TestElmanClass(NetworkClassContract):
    kind, layer = "rnn", ElmanClass
    first_step: ClassVar = {"embedding": 0.5, "start": 0.5}
