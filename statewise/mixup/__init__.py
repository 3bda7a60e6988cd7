"""Sequence mixup: training on pairs of sequences, mixed at their inputs, before the output or through time."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.mixup.crf_loss import InconsistentMixtureWarning, mixed_crf_loss
    from statewise.mixup.language import Carried, run_segment
    from statewise.mixup.lengths import Treated, treat
    from statewise.mixup.mixture import Mixture
    from statewise.mixup.pairing import Couples, LonelyBatchWarning, pair
    from statewise.mixup.pairs import Pairs
    from statewise.mixup.processes import (
        BetaChain,
        BinomialBeta,
        CoefficientProcess,
        Constant,
        MarkovBeta,
        StationaryBeta,
        start_variance,
    )
    from statewise.mixup.sites import InputMixup, Mixed, Mixup, PreOutputMixup, ThroughTimeMixup
    from statewise.mixup.states import mix_state
    from statewise.mixup.theory import (
        MixupFloor,
        NarrowStateWarning,
        WidthCheck,
        affine_floor,
        affine_residual,
        check_width,
        class_frequencies,
        expected_minority,
        irreducible_ce,
        mixup_floor,
        unlike_share,
    )

__all__ = [
    "BetaChain",
    "BinomialBeta",
    "Carried",
    "CoefficientProcess",
    "Constant",
    "Couples",
    "InconsistentMixtureWarning",
    "InputMixup",
    "LonelyBatchWarning",
    "MarkovBeta",
    "Mixed",
    "Mixture",
    "Mixup",
    "MixupFloor",
    "NarrowStateWarning",
    "Pairs",
    "PreOutputMixup",
    "StationaryBeta",
    "ThroughTimeMixup",
    "Treated",
    "WidthCheck",
    "affine_floor",
    "affine_residual",
    "check_width",
    "class_frequencies",
    "expected_minority",
    "irreducible_ce",
    "mix_state",
    "mixed_crf_loss",
    "mixup_floor",
    "pair",
    "run_segment",
    "start_variance",
    "treat",
    "unlike_share",
]

lazy_imports(__name__)
