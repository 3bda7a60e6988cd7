"""Everything that a run depends on, as tensors and a document, to go on from exactly there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from statewise.errors import RunFolderError
from statewise.layers import RecurrentLayer
from statewise.train.language import Best, LanguageTraining, Position


def snapshot(training: LanguageTraining) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All that the rest of a run depends on: tensors, and what JSON can hold.

    Args:
        training: between two updates. All processes that train together must call this.
    """
    tensors = {f"model.{name}": parameter.detach() for name, parameter in training.model.named_parameters()}
    tensors |= {f"best.{name}": weight for name, weight in training.best.weights.items()}
    tensors |= {f"average.{name}": mean for name, mean in training.averaging.state().items()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in _moments(training.optimizer)}
    for number, own in enumerate(_own(training)):
        parts = training.world.gathered(own)
        tensors |= {f"rank{rank}.{number}": part for rank, part in enumerate(parts)}
    document = {
        "position": vars(training.position),
        "best": {"nll": training.best.nll, "epoch": training.best.epoch},
        "lr": training.lr,
        "processes": training.world.size,
        "carried": training.carried is not None,
        **{name: None if rule is None else rule.state() for name, rule in _rules(training).items()},
    }
    return tensors, document


def restore(training: LanguageTraining, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
    """Go on from what :func:`snapshot` gave.

    Args:
        training: fresh, of the same model, settings and data.
        tensors: on the CPU.
        document: the rest.
    """
    if document["processes"] != training.world.size:
        raise RunFolderError(
            where="resume",
            got=f"{training.world.size} process(es)",
            wanted=f"{document['processes']}, with which the run began",
            remedy=f"Start it with torchrun --nproc-per-node {document['processes']}.",
        )
    with torch.no_grad():
        for name, parameter in training.model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
    weights = {name: tensor.to(training.device) for name, tensor in _part(tensors, "best").items()}
    training.best = Best(float(document["best"]["nll"]), document["best"]["epoch"], weights)
    training.position = Position(**document["position"])
    training.lr = float(document["lr"])
    training.averaging.load_state(_part(tensors, "average"))
    _load_moments(training.optimizer, _part(tensors, "optimizer"))
    for name, rule in _rules(training).items():
        if rule is not None:
            rule.load_state(document[name])
    own = _part(tensors, f"rank{training.world.rank}")
    _load_own(training, [own[str(number)] for number in range(len(own))], carried=document["carried"])


def _rules(training: LanguageTraining) -> dict[str, Any]:
    names = ("non_monotone", "divide", "stopping", "watch")
    return {name: getattr(training, name) for name in names}


def _own(training: LanguageTraining) -> list[Tensor]:
    """What each process has of its own: sums, generators, and the carried state."""
    generators = [torch.get_rng_state()]
    if training.device.type == "cuda":
        generators.append(torch.cuda.get_rng_state(training.device))
    return [
        training.summed_nll,
        *generators,
        *([] if training.carried is None else pytree.tree_leaves(training.carried)),
    ]


def _load_own(training: LanguageTraining, own: list[Tensor], *, carried: bool) -> None:
    training.summed_nll.copy_(own.pop(0))
    torch.set_rng_state(own.pop(0))
    if training.device.type == "cuda":
        torch.cuda.set_rng_state(own.pop(0), training.device)
    leaves = iter([tensor.to(training.device) for tensor in own])
    states: list[Any] = []
    for layer in training.model.layers if carried else ():
        assert isinstance(layer, RecurrentLayer)
        states.append((next(leaves), next(leaves)) if layer.cell.has_memory else next(leaves))
    training.carried = tuple(states) if carried else None


def _moments(optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
    """What the optimiser remembers of each parameter, by the parameter's number."""
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in enumerate(moved):
        for name, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                yield f"{number}.{name}", value


def _load_moments(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        moments.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
