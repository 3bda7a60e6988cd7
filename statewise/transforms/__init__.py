"""What can happen to the state between two steps, and to what enters and leaves a layer."""

from statewise.transforms.base import (
    Place,
    SequenceTransform,
    Sizes,
    StateChange,
    StateGrads,
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
    "StateGrads",
    "StateTransform",
    "Stream",
    "ThroughTimeMix",
    "Transform",
    "Zoneout",
    "embedding_dropout",
]
