"""What goes into a training step, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from statewise.errors import DtypeError, ShapeError


@dataclass(frozen=True)
class Batch:
    """The arguments of a step: tensors in tuples, lists and dicts; None is a place without a tensor.

    >>> import torch
    >>> batch = Batch.read((torch.zeros(3), (torch.ones(2), None)))
    >>> [None if leaf is None else len(leaf) for leaf in batch.leaves]
    [3, 2, None]
    """

    leaves: tuple[Tensor | None, ...]
    structure: pytree.TreeSpec

    @classmethod
    def read(cls, arguments: tuple[Any, ...]) -> Batch:
        """Take arguments apart, and refuse what is no tensor."""
        leaves, structure = pytree.tree_flatten(arguments)
        if not _tensors(leaves):
            path, leaf = _first_other(arguments)
            raise DtypeError(
                where=f"TrainingStep argument {path}",
                got=type(leaf).__name__,
                wanted="a tensor, None, or a tuple, list or dict of those",
                remedy="Close over it in the loss, or make it a tensor: a graph cannot see another number.",
            )
        return cls(tuple(leaves), structure)

    def arguments(self, leaves: Sequence[Tensor | None] | None = None) -> tuple[Any, ...]:
        """Put the arguments together again, with other tensors in their places if given."""
        arguments: tuple[Any, ...] = pytree.tree_unflatten(self.leaves if leaves is None else leaves, self.structure)
        return arguments

    def signature(self) -> Hashable:
        """What a graph depends on: structure, shapes, dtypes and devices."""
        kinds = (None if leaf is None else (leaf.shape, leaf.dtype, leaf.device) for leaf in self.leaves)
        return self.structure, tuple(kinds)


@dataclass(frozen=True)
class Outcome:
    """The value of the loss and what else it returned, all detached.

    >>> import torch
    >>> Outcome.read((torch.ones(()), {"norm": torch.zeros(2)})).result()
    (tensor(1.), {'norm': tensor([0., 0.])})
    """

    value: Tensor
    extra: Any = None
    has_extra: bool = False

    @classmethod
    def read(cls, returned: object) -> Outcome:
        """Take what the loss returned, and refuse what is no scalar with tensors."""
        pair = isinstance(returned, tuple) and len(returned) == 2
        value, extra = returned if isinstance(returned, tuple) and pair else (returned, None)
        if not isinstance(value, Tensor):
            raise DtypeError(
                where="TrainingStep.loss",
                got=f"{type(returned).__name__} from the loss",
                wanted="a scalar tensor, or a pair of that and tensors",
            )
        if value.numel() != 1:
            raise ShapeError(
                where="TrainingStep.loss",
                got=f"a tensor of shape {tuple(value.shape)} from the loss",
                wanted="a scalar",
                remedy="Take its mean or its sum.",
            )
        if not _tensors(pytree.tree_leaves(extra)):
            path, leaf = _first_other(extra)
            raise DtypeError(
                where=f"TrainingStep.loss, second result{path}",
                got=type(leaf).__name__,
                wanted="a tensor, None, or a tuple, list or dict of those",
                remedy="Return it as a tensor: a graph gives the same Python number for ever.",
            )
        return cls(value, extra, pair)

    def map(self, change: Callable[[Tensor], Tensor]) -> Outcome:
        """The same with all tensors changed."""
        extra = pytree.tree_map_only(Tensor, change, self.extra)
        return Outcome(change(self.value), extra, self.has_extra)

    def leaves(self) -> list[Tensor]:
        """All tensors."""
        return [leaf for leaf in pytree.tree_leaves((self.value, self.extra)) if isinstance(leaf, Tensor)]

    def result(self) -> Any:
        """What the caller gets."""
        return (self.value, self.extra) if self.has_extra else self.value


def _tensors(leaves: Sequence[object]) -> bool:
    return all(leaf is None or isinstance(leaf, Tensor) for leaf in leaves)


def _first_other(tree: object) -> tuple[str, object]:
    """Path and value of the first leaf that is neither tensor nor None."""
    found, _ = pytree.tree_flatten_with_path(tree)
    return next((pytree.keystr(path), leaf) for path, leaf in found if not _tensors([leaf]))
