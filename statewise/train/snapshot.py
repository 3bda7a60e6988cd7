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
from statewise.train.mixed_language import kept_pairs, pairs_from
from statewise.train.weights import check_weights, restore_weights


def snapshot(training: LanguageTraining) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All that the rest of a run depends on: tensors, and what JSON can hold.

    Args:
        training: between two updates. All processes that train together must call this.
    """
    tensors = {f"model.{name}": parameter.detach() for name, parameter in training.model.named_parameters()}
    tensors |= {f"best.{name}": weight for name, weight in training.best.weights.items()}
    tensors |= {f"average.{name}": mean for name, mean in training.averaging.state().items()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in moments(training.optimizer)}
    for name, own in _own(training).items():
        parts = training.world.gathered(own)
        tensors |= {f"rank{rank}.{name}": part for rank, part in enumerate(parts)}
    document = {
        "position": vars(training.position),
        "best": {"nll": training.best.nll, "epoch": training.best.epoch},
        "lr": training.lr,
        "processes": training.world.size,
        "device": training.device.type,
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
    check_device(document["device"], training.device)
    restore_weights(training.model, part(tensors, "model"))
    weights = {name: tensor.to(training.device) for name, tensor in part(tensors, "best").items()}
    if weights:
        check_weights(training.model, weights, where="resume, the best model")
    training.best = Best(float(document["best"]["nll"]), document["best"]["epoch"], weights)
    training.position = Position(**document["position"])
    training.lr = float(document["lr"])
    training.averaging.load_state(part(tensors, "average"))
    load_moments(training.optimizer, part(tensors, "optimizer"))
    for name, rule in _rules(training).items():
        if rule is not None:
            rule.load_state(document[name])
    _load_own(training, part(tensors, f"rank{training.world.rank}"), carried=document["carried"])


def _rules(training: LanguageTraining) -> dict[str, Any]:
    names = ("non_monotone", "divide", "stopping", "watch")
    return {name: getattr(training, name) for name in names}


def _own(training: LanguageTraining) -> dict[str, Tensor]:
    """What each process has of its own: sums, generators, and the carried state."""
    own = {"nll": training.summed_nll, **generators(training.device)}
    leaves = [] if training.carried is None else pytree.tree_leaves(training.carried)
    own |= kept_pairs(training.pairs if leaves else None)
    return own | {f"state.{number}": leaf for number, leaf in enumerate(leaves)}


def _load_own(training: LanguageTraining, own: Mapping[str, Tensor], *, carried: bool) -> None:
    training.summed_nll.copy_(own["nll"])
    load_generators(own, training.device)
    found = part(own, "state")
    leaves = iter([found[str(number)].to(training.device) for number in range(len(found))])
    states: list[Any] = []
    for layer in training.model.layers if carried else ():
        assert isinstance(layer, RecurrentLayer)
        states.append((next(leaves), next(leaves)) if layer.cell.has_memory else next(leaves))
    training.carried = tuple(states) if carried else None
    training.pairs = pairs_from(part(own, "pairs"), training.mixer)


def check_device(began: str, device: torch.device) -> None:
    """Refuse to go on with a run on a device where its noise would be another.

    Args:
        began: the type of the device where the run began.
        device: where it shall go on.
    """
    if began != device.type:
        raise RunFolderError(
            where="resume",
            got=f"device {device.type}",
            wanted=f"{began}, where the run began and its noise is drawn",
            remedy="Go on there, or begin another run with its weights.",
        )


def generators(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's global generators, of the CPU and of a device."""
    found = {"generator.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        found["generator.cuda"] = torch.cuda.get_rng_state(device)
    return found


def load_generators(tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Go on from what :func:`generators` gave."""
    torch.set_rng_state(tensors["generator.cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(tensors["generator.cuda"], device)


def moments(optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
    """What the optimiser remembers of each parameter, by the parameter's number."""
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in enumerate(moved):
        for name, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                yield f"{number}.{name}", value


def load_moments(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Go on from what :func:`moments` gave."""
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        moments.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those tensors whose names begin with a prefix and a dot, without it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
