"""What can happen to the state between two steps, and to what enters and leaves a layer."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.transforms.base import (
        Place,
        SequenceTransform,
        Sizes,
        StateChange,
        StateTransform,
        Transform,
    )
    from statewise.transforms.centroids import Centroids
    from statewise.transforms.dropout import InputDropout, LockedDropout, LockedInputDropout, OutputDropout
    from statewise.transforms.embedding import embedding_dropout
    from statewise.transforms.mix import Pairing, ThroughTimeMix
    from statewise.transforms.noise import Noise
    from statewise.transforms.recurrent_dropout import RecurrentDropout
    from statewise.transforms.streams import Randomness, Stream
    from statewise.transforms.zoneout import Zoneout

__all__ = [
    "Centroids",
    "InputDropout",
    "LockedDropout",
    "LockedInputDropout",
    "Noise",
    "OutputDropout",
    "Pairing",
    "Place",
    "Randomness",
    "RecurrentDropout",
    "SequenceTransform",
    "Sizes",
    "StateChange",
    "StateTransform",
    "Stream",
    "ThroughTimeMix",
    "Transform",
    "Zoneout",
    "embedding_dropout",
]

lazy_imports(__name__)
