"""The chains of transforms on which every engine is compared with the reference."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, product

from statewise import (
    Centroids,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OutputDropout,
    RecurrentDropout,
    ThroughTimeMix,
    Transform,
    Zoneout,
)
from statewise.transforms.centroids import SIMILARITIES, TRANSITIONS
from statewise.transforms.laws import LAWS
from statewise.transforms.noise import MODES


@dataclass(frozen=True)
class Chain:
    """Transforms of a layer, whether it trains, and whether the native form must be able to run them."""

    transforms: tuple[Transform, ...] = ()
    training: bool = True
    native: bool = True

    @property
    def mixes(self) -> bool:
        """Whether a call needs a pairing."""
        return any(isinstance(transform, ThroughTimeMix) for transform in self.transforms)


def _noises() -> dict[str, Chain]:
    # To an engine a law is numbers: each is asked for once, in one of the two modes.
    modes = zip(LAWS, cycle(MODES), strict=False)
    made = {f"noise {law} {mode}": Noise(law, 0.4, mode=mode, placement="recurrent") for law, mode in modes}
    made |= {f"noise at {place}": Noise("gaussian", 0.4, placement=place) for place in ("outputs", "last")}
    made["noise added at outputs"] = Noise("gamma", 0.4, mode="additive", placement="outputs")
    made["noise above"] = Noise("gaussian", 0.4, placement="recurrent", layers=(1,))
    return {name: Chain((noise,)) for name, noise in made.items()}


def _centroids() -> dict[str, Chain]:
    found = {}
    for transition, similarity in product(TRANSITIONS, SIMILARITIES):
        # Numbers unlike 1, so that a factor which is forgotten somewhere shows.
        made = Centroids(4, temperature=0.7, similarity=similarity, transition=transition, noise=0.8, relaxation=1.3)
        found[f"{transition} {similarity}"] = Chain((made,))
        if similarity == "dot" and transition in ("sample", "gumbel_hard", "noisy"):
            found[f"{transition} eval"] = Chain((made,), training=False)
    return found


def _recurrent_dropouts() -> dict[str, Chain]:
    found = {}
    for mask_on, share_gates, locked, (p, input_p) in product(
        ("input", "projection"), (True, False), (True, False), ((0.3, 0.0), (0.3, 0.2), (0.0, 0.2))
    ):
        if p == 0 and locked:
            continue  # masks of the input alone never reach an engine
        made = RecurrentDropout(p, input_p=input_p, mask_on=mask_on, share_gates=share_gates, locked=locked)
        words = [f"dropout {p} {input_p} on {mask_on}", *["shared"] * share_gates, *["locked"] * locked]
        found[" ".join(words)] = Chain((made,), native=p == 0 or (mask_on == "input" and share_gates))
    return found


_noise, _added = (
    Noise("gaussian", 0.4, placement="recurrent"),
    Noise("gumbel", 0.2, mode="additive", placement="recurrent"),
)
_near, _zoned = Centroids(4, similarity="euclidean"), Zoneout(0.3, memory=0.2)
_general = RecurrentDropout(0.3, input_p=0.2, mask_on="projection", share_gates=False)

CHAINS: dict[str, Chain] = {
    "plain": Chain(),
    **_noises(),
    **_centroids(),
    **_recurrent_dropouts(),
    "zoneout": Chain((Zoneout(0.3),)),
    "zoneout with memory": Chain((_zoned,)),
    "zoneout of the memory alone": Chain((Zoneout(0.0, memory=0.4),)),
    "zoneout eval": Chain((_zoned,), training=False),
    "input dropout": Chain((InputDropout(0.3),)),
    "locked input dropout": Chain((LockedInputDropout(0.3),)),
    "output dropout": Chain((OutputDropout(0.3),)),
    "locked dropout": Chain((LockedDropout(0.3),)),
    "mix": Chain((ThroughTimeMix(),)),
    "mix above": Chain((ThroughTimeMix(layers=(1,)),)),
    "noise, centroids": Chain((_noise, Centroids(3))),
    "centroids, noise": Chain((Centroids(3), _noise)),
    "noise, centroids, zoneout": Chain((_noise, _near, _zoned)),
    "zoneout, centroids, noise": Chain((_zoned, _near, _added)),
    "centroids, zoneout, noise": Chain((_near, _zoned, _noise, _added)),
    "two kinds of centroids": Chain((Centroids(3), Centroids(5, transition="st_argmax", layers=(1,)))),
    "zoneout, zoneout": Chain((Zoneout(0.3), Zoneout(0.1, memory=0.5))),
    "centroids eval": Chain((_zoned, Centroids(3, transition="sample"), _noise), training=False),
    "masks and states": Chain((RecurrentDropout(0.3, input_p=0.2), _zoned, _noise, Centroids(3))),
    "locked masks and states": Chain((RecurrentDropout(0.3, locked=True), Centroids(3), _zoned)),
    "general masks and states": Chain((_noise, _general, Centroids(3, transition="gumbel_hard")), native=False),
    "mix, noise, centroids, zoneout": Chain((ThroughTimeMix(), _noise, Centroids(3), _zoned)),
    "masks of inputs and states, mix": Chain((RecurrentDropout(0.3, input_p=0.2), ThroughTimeMix(), InputDropout(0.2))),
    "mix with masks": Chain((_general, ThroughTimeMix(), _added), native=False),
    "every place": Chain(
        (
            OutputDropout(0.2),
            Noise("beta", 0.1, placement="outputs"),
            _noise,
            LockedInputDropout(0.2),
            RecurrentDropout(0.2),
            _near,
            _zoned,
            LockedDropout(0.1, layers=(0,)),
        )
    ),
}
