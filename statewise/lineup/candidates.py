"""Who takes part: what can be done against overfitting, each in two or three strengths, for each kind of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from statewise.errors import ArgumentError, StatewiseError
from statewise.lineup.halving import NONE, check_line_up
from statewise.transforms import Noise

Settings = Mapping[str, Any]
_MIXUPS = ("input", "pre-output", "through-time")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A way to train: what it changes in the plain model and in the plain training.

    Args:
        name: family and strength, such as "dropout-0.3"; also the name of its folders.
        family: what it is a strength of.
        model: fields of the model's config.
        training: fields of the training's settings.

    >>> Candidate(name="dropout-0.3", family="dropout", model={"dropout": 0.3}).model["dropout"]
    0.3
    """

    name: str
    family: str
    model: Settings = field(default_factory=dict)
    training: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("model", "training"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        parts = {"model": self.model, "training": self.training}
        lists = {
            name: {key: list(value) if isinstance(value, tuple) else value for key, value in part.items()}
            for name, part in parts.items()
        }
        return {"name": self.name, "family": self.family, **lists}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Candidate:
        """What :meth:`document` gave.

        Args:
            document: of a file.
        """
        parts = {
            name: {key: tuple(value) if isinstance(value, list) else value for key, value in document[name].items()}
            for name in ("model", "training")
        }
        return cls(name=document["name"], family=document["family"], **parts)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view of a dictionary cannot cross process borders.
        return Candidate.of, (self.document(),)


@dataclass(frozen=True)
class LineUp:
    """The candidates of a comparison.

    Attributes:
        candidates: the plain network first.
        unavailable: families that were not asked in vain, but cannot take part, and why.
    """

    candidates: tuple[Candidate, ...]
    unavailable: Mapping[str, str]

    @property
    def families(self) -> dict[str, str]:
        """Of each candidate by name."""
        return {each.name: each.family for each in self.candidates}


Strengths = dict[str, tuple[Settings, Settings]]
Registry = dict[str, Strengths]


def _models(name: str, values: Sequence[float]) -> Strengths:
    return {f"{value:g}": ({name: value}, {}) for value in values}


def _spread(std: float, law: str = "noise") -> Settings:
    return {law: "gaussian", "gamma": Noise.from_std("gaussian", std).gamma}


def _mixups(named: str = "alpha") -> Registry:
    alphas = (0.1, 0.5)
    return {
        f"mixup-{site}": {f"{alpha:g}": ({}, {"mixup": site, named: alpha}) for alpha in alphas} for site in _MIXUPS
    }


def _lm() -> Registry:
    def drop(rate: float) -> Settings:
        return {"input_dropout": rate, "output_dropout": rate}

    def variational(rate: float) -> Settings:
        return {**drop(rate), "recurrent_dropout": rate / 2, "locked": True}

    return {
        NONE: {"": ({}, {})},
        "dropout": {f"{rate:g}": (drop(rate), {}) for rate in (0.2, 0.4, 0.6)},
        "variational": {f"{rate:g}": (variational(rate), {}) for rate in (0.2, 0.4)},
        "zoneout": _models("zoneout", (0.05, 0.15)),
        "weight-drop": _models("weight_drop", (0.2, 0.5)),
        "noise": {f"{std:g}": (_spread(std), {}) for std in (0.3, 0.6, 1.0)},
        **_mixups("mixup_alpha"),
        "centroids": {"20": ({"centroids": 20}, {}), "100": ({"centroids": 100}, {})},
    }


def _tag() -> Registry:
    return {
        NONE: {"": ({}, {})},
        "dropout": {f"{rate:g}": ({"dropout": rate, "locked": False}, {}) for rate in (0.2, 0.4, 0.6)},
        "variational": _models(
            "dropout", (0.2, 0.4, 0.6)
        ),  # of a tagger, dropout is locked unless it is told otherwise
        "zoneout": _models("zoneout", (0.05, 0.15)),
        "weight-drop": _models("weight_drop", (0.2, 0.5)),
        "noise": {f"{std:g}": (_spread(std), {}) for std in (0.3, 0.6)},
        **_mixups(),
        "centroids": {"10": ({"centroids": 10}, {}), "50": ({"centroids": 50}, {})},
    }


def _classify() -> Registry:
    def variational(rate: float) -> Settings:
        return {"dropout": rate, "recurrent_dropout": rate / 2, "locked": True}

    return {
        NONE: {"": ({}, {})},
        "dropout": _models("dropout", (0.2, 0.4)),
        "variational": {f"{rate:g}": (variational(rate), {}) for rate in (0.2, 0.4)},
        "zoneout": _models("zoneout", (0.05, 0.15)),
        "weight-drop": _models("weight_drop", (0.2, 0.5)),
        "noise": {f"{std:g}": (_spread(std, "state_noise"), {}) for std in (0.3, 0.6)},
        **_mixups(),
        "centroids": {"10": ({"centroids": (10,)}, {}), "50": ({"centroids": (50,)}, {})},
    }


#: What is put together, each from the strengths that are named.
_TOGETHER = (
    {"dropout": "0.2", "noise": "0.3"},
    {"dropout": "0.4", "noise": "0.3"},
    {"dropout": "0.2", "mixup-input": "0.1"},
    {"dropout": "0.4", "mixup-input": "0.1"},
    {"variational": "0.2", "weight-drop": "0.2", "zoneout": "0.05"},
    {"variational": "0.4", "weight-drop": "0.2", "zoneout": "0.05"},
)
_REGISTRIES = {"lm": _lm, "tag": _tag, "classify": _classify, "series": _classify, "forecast": _classify}


def registry(kind: str) -> Registry:
    """All families of a kind of data, and of each its strengths: what they change in model and training.

    Args:
        kind: of the data.

    >>> list(registry("tag"))[:3], list(registry("lm")["noise"])
    (['none', 'dropout', 'variational'], ['0.3', '0.6', '1'])
    """
    found = _REGISTRIES[kind]()
    for parts in _TOGETHER:
        some = [found[family][strength] for family, strength in parts.items()]
        model, training = ({key: value for each in some for key, value in each[at].items()} for at in (0, 1))
        found.setdefault("+".join(parts), {})["-".join(parts.values())] = (model, training)
    return found


#: What would be accepted and then do nothing, or be refused after the first step.
_NEVER = {"forecast": ("mixup", "a forecaster has no labels that could be mixed")}


def line_up(kind: str, wanted: Sequence[str], config: Any, settings: Any) -> LineUp:
    """The candidates that take part.

    A family whose settings the model or its training does not have is unavailable, with the reason; likewise one whose
    settings contradict each other.

    Args:
        kind: of the data.
        wanted: names of families; nothing for all.
        config: of the plain model.
        settings: of its training.

    >>> from statewise.models import LanguageModelConfig
    >>> from statewise.train import TrainingSettings
    >>> found = line_up("lm", ("none", "weight-drop"), LanguageModelConfig(hidden=(8,)), TrainingSettings())
    >>> [each.name for each in found.candidates]
    ['none', 'weight-drop-0.2', 'weight-drop-0.5']
    """
    known = registry(kind)
    chosen = list(dict.fromkeys(wanted)) or list(known)
    if strange := [name for name in chosen if name not in known]:
        raise ArgumentError(where="--lineup", got=", ".join(strange), wanted=f"some of {', '.join(known)}")
    check_line_up(chosen)
    chosen.sort(key=lambda name: name != NONE)
    candidates, unavailable = [], {}
    for family in chosen:
        some = [
            Candidate(
                name=f"{family}-{strength}" if strength else family, family=family, model=model, training=training
            )
            for strength, (model, training) in known[family].items()
        ]
        never, because = _NEVER.get(kind, ("", ""))
        if never and never in family:
            unavailable[family] = because
            continue
        reasons = {each.name: why for each in some if (why := _why_not(each, config, settings))}
        candidates += [each for each in some if each.name not in reasons]
        if len(reasons) == len(some):
            unavailable[family] = next(iter(reasons.values()))
    if len(candidates) < 2:
        why = "; ".join(f"{name}: {reason}" for name, reason in unavailable.items())
        raise ArgumentError(where="--lineup", got=why, wanted="something to compare with none")
    return LineUp(tuple(candidates), unavailable)


def with_changes(given: Any, changes: Settings) -> Any:
    """A config or settings with some fields changed.

    Args:
        given: a dataclass.
        changes: by the name of the field.
    """
    return type(given)(**{**{each.name: getattr(given, each.name) for each in fields(given)}, **changes})


def _why_not(candidate: Candidate, config: Any, settings: Any) -> str | None:
    for given, changes in ((config, candidate.model), (settings, candidate.training)):
        known = {each.name for each in fields(given)}
        if missing := [name for name in changes if name not in known]:
            return f"{type(given).__name__} has no {' and no '.join(missing)}"
        try:
            with_changes(given, changes)
        except StatewiseError as error:
            return str(error)
    return None
