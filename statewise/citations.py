"""Which papers a model uses, as BibTeX."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from torch import nn

from statewise import cells, mixup, transforms, weights
from statewise.cells import Cell
from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer, SingleStep
from statewise.models import LanguageModel, Tagger
from statewise.models.loading import load_model
from statewise.models.parts import Parts
from statewise.train.best_model import is_run, load_run
from statewise.train.classify_settings import ClassifierSettings
from statewise.train.settings import TrainingSettings
from statewise.train.tag_settings import TaggerSettings
from statewise.transforms import Transform
from statewise.weights.filters import OrthogonalFilters

_ELMAN, _LSTM, _GRU = ("elman1990finding",), ("hochreiter1997long",), ("cho2014learning", "chung2014empirical")
_SCORNN = ("helfrich2018orthogonal", "ziv2019depth")
_DROPCONNECT = ("wan2013regularization", "merity2018regularizing")
_LOCKED = ("gal2016theoretically", "merity2018regularizing")

# A layer has no entry: it is cited through its cell, its transforms and its parametrizations. A helper of the room of
# weights that carries out an idea of one of these (skew_matrix, nearest_orthogonal, ...) needs none either.
_SOURCES: dict[Any, tuple[str, ...]] = {
    cells.RNNCell: _ELMAN,
    cells.MGUCell: ("zhou2016minimal",),
    cells.GRUCell: _GRU,
    cells.ResetBeforeGRUCell: ("cho2014learning",),
    cells.MultiplicativeRNNCell: ("sutskever2011generating",),
    cells.LSTMCell: _LSTM,
    cells.PeepholeLSTMCell: (*_LSTM, "gers2000recurrent"),
    cells.RACCell: ("levine2017benefits", "ziv2019depth", "wu2016multiplicative"),
    cells.modrelu: ("arjovsky2016unitary", "helfrich2018orthogonal"),
    transforms.Noise: ("dieng2018noisin",),
    transforms.Centroids: ("wang2019state",),
    transforms.ThroughTimeMix: ("karamzade2020regularizing",),
    transforms.Zoneout: ("krueger2017zoneout",),
    transforms.InputDropout: ("zaremba2014recurrent",),
    transforms.OutputDropout: ("zaremba2014recurrent",),
    transforms.LockedInputDropout: _LOCKED,
    transforms.LockedDropout: _LOCKED,
    transforms.RecurrentDropout: ("dieng2018noisin", "semeniuta2016recurrent"),
    transforms.embedding_dropout: _LOCKED,
    mixup.Mixup: ("karamzade2020regularizing",),
    mixup.MarkovBeta: ("karamzade2020regularizing",),
    weights.ScaledCayley: _SCORNN,
    weights.GatewiseOrthogonal: _SCORNN,
    weights.scaled_cayley: _SCORNN,
    weights.StiefelSGD: ("wisdom2016full", "ziv2019depth"),
    weights.GradientLimit: ("ziv2019depth",),
    weights.stiefel_step: ("wisdom2016full", "ziv2019depth"),
    OrthogonalFilters: ("chen2019generalization", *_SCORNN),
    weights.SpectralCap: ("chen2019generalization",),
    weights.spectral_cap: ("chen2019generalization",),
    weights.project_spectral_: ("chen2019generalization",),
    weights.WeightDrop: _DROPCONNECT,
    weights.weight_drop: _DROPCONNECT,
    weights.orthogonality_penalty: ("ziv2019depth",),
    weights.haar_orthogonal_: ("mezzadri2007generate", "ziv2019depth"),
    weights.identity_: ("le2015simple",),
    nn.RNN: _ELMAN,
    nn.RNNCell: _ELMAN,
    nn.GRU: _GRU,
    nn.GRUCell: _GRU,
    nn.LSTM: _LSTM,
    nn.LSTMCell: _LSTM,
}


def cite(*used: Any) -> str:
    """The BibTeX entries of every paper that a model, or a part of one, uses, sorted by their keys.

    A model is walked through: its recurrent layers and cells (torch.nn's too), their transforms and those outside the
    layers, and the parametrizations of its weights. What belongs to its training, such as mixup, the settings of that
    tell: ``cite(model, settings)``. A transform or cell of your own, of which nothing is known here, is named in a
    comment at the end, so that the list does not look complete when it is not.

    Args:
        *used: modules, transforms, cells, mixups, settings of a training, optimisers of ``statewise.weights``, or
            classes or functions of these; or folders of runs or of saved models, as texts or paths.

    >>> from statewise import LSTM, Noise
    >>> print(cite(LSTM(4, 8, transforms=Noise("gaussian", 0.5))))
    @inproceedings{dieng2018noisin,
      author    = {Dieng, Adji B. and Ranganath, Rajesh and Altosaar, Jaan and Blei, David M.},
      title     = {Noisin: Unbiased Regularization for Recurrent Neural Networks},
      ...
    @article{hochreiter1997long,
      ...
    """
    keys: set[str] = set()
    unknown: list[str] = []
    for part in (part for each in used for part in _parts(_loaded(each))):
        found = _keys(part)
        if found is not None:
            keys.update(found)
        elif isinstance(part, Cell | Transform):
            unknown.append(type(part).__name__)
    if not keys:
        built = "Build a layer to cite it: its papers depend on its arguments."
        raise ArgumentError(
            where="cite",
            got=f"{_named(used)}, for which no paper is known",
            wanted="a model with a recurrent layer in it, a transform, a cell or a parametrization",
            remedy=built if any(isinstance(each, type) for each in used) else "",
        )
    entries = [text for key, text in entries_by_key().items() if key in keys]
    comments = [f"% {name}: no paper is known here." for name in sorted(set(unknown))]
    return "\n\n".join([*entries, *comments])


def _loaded(used: Any) -> Any:
    """The model of a folder; all else as it is, a text too where there is no folder of the name."""
    if not (isinstance(used, Path) or (isinstance(used, str) and Path(used).is_dir())):
        return used
    return load_run(used) if is_run(Path(used)) else load_model(Path(used))


@functools.cache
def entries_by_key() -> dict[str, str]:
    """Every entry of the bibliography by its key, sorted.

    >>> list(entries_by_key())[:2]
    ['arjovsky2016unitary', 'chen2019generalization']
    """
    text = resources.files("statewise").joinpath("papers.bib").read_text(encoding="utf-8")
    # An entry ends at the first brace that stands alone on its line.
    found = re.finditer(r"^@\w+\{(?P<key>[^,\s]+),\n.*?^\}$", text, flags=re.MULTILINE | re.DOTALL)
    return dict(sorted((match["key"], match[0]) for match in found))


def _named(used: tuple[Any, ...]) -> str:
    names = [each.__name__ if hasattr(each, "__name__") else type(each).__name__ for each in used]
    return " and ".join(names) or "nothing"


def _parts(used: Any) -> Iterator[Any]:
    """Everything in an object that may have a paper."""
    if isinstance(used, ClassifierSettings | TaggerSettings | TrainingSettings):
        yield from filter(None, (used.mixer(),))
        return
    if not isinstance(used, nn.Module):
        yield used
        return
    for module in used.modules():
        yield module
        if isinstance(module, LanguageModel | Parts | Tagger):
            yield from module.outside
        if isinstance(module, RecurrentLayer | SingleStep):
            yield module.cell
        if isinstance(module, RecurrentLayer):
            yield from module.transforms
            if module.dropout and module.num_layers > 1:
                yield transforms.OutputDropout


def _keys(part: Any) -> tuple[str, ...] | None:
    """The keys of one part, or None if nothing is known of it; a subclass inherits those of its base."""
    if isinstance(part, type):
        lineage: tuple[Any, ...] = part.__mro__
    elif callable(part) and hasattr(part, "__name__"):
        lineage = (part,)
    else:
        lineage = type(part).__mro__
    known = next((_SOURCES[kind] for kind in lineage if kind in _SOURCES), None)
    return None if known is None else known + _by_settings(part)


def _by_settings(part: Any) -> tuple[str, ...]:
    """What only some settings of a part use."""
    if isinstance(part, cells.RNNCell) and part.nonlinearity == "modrelu":
        return _SOURCES[cells.modrelu]
    if isinstance(part, transforms.RecurrentDropout) and part.locked:
        return ("gal2016theoretically",)
    return ()
