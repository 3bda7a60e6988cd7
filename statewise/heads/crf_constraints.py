"""Which tags may follow one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, ShapeError

SCHEMES = ("iob2", "iob1", "bioes")

# Of each scheme: its prefixes, those that may begin and end a sequence, and for each prefix those that may follow it,
# within a span of the same type and elsewhere. "O" is a prefix without a type.
_PREFIXES = {"iob2": "OBI", "iob1": "OBI", "bioes": "OBIES"}
_FIRST = {"iob2": "OB", "iob1": "OI", "bioes": "OBS"}
_LAST = {"iob2": "OBI", "iob1": "OBI", "bioes": "OES"}
_INSIDE = {
    "iob2": {"B": "BI", "I": "BI"},
    "iob1": {"B": "BI", "I": "BI"},
    "bioes": {"B": "IE", "I": "IE", "E": "BS", "S": "BS"},
}
_OUTSIDE = {
    "iob2": dict.fromkeys("OBI", "OB"),
    "iob1": dict.fromkeys("OBI", "OI"),
    "bioes": {"O": "OBS", "B": "", "I": "", "E": "OBS", "S": "OBS"},
}


@dataclass(frozen=True, eq=False)
class Constraints:
    """The sequences of tags that are possible at all.

    Args:
        allowed: whether a tag (row) may be followed by another (column).
        start: whether a sequence may begin with a tag; None means every one.
        end: whether a sequence may end with a tag; None means every one.

    >>> never_back = Constraints(torch.ones(3, 3, dtype=torch.bool).triu())
    >>> bool(never_back.allowed[2, 0])
    False
    """

    allowed: Bool[Tensor, "tags tags"]
    start: Bool[Tensor, " tags"] | None = None
    end: Bool[Tensor, " tags"] | None = None

    def __post_init__(self) -> None:
        size = len(self.allowed) if isinstance(self.allowed, Tensor) and self.allowed.ndim else 0
        for name, shape in (("allowed", (size, size)), ("start", (size,)), ("end", (size,))):
            value = getattr(self, name)
            if value is None and name != "allowed":
                value = torch.ones(size, dtype=torch.bool, device=self.allowed.device)
            if not isinstance(value, Tensor) or value.dtype != torch.bool:
                got = str(value.dtype) if isinstance(value, Tensor) else type(value).__name__
                raise DtypeError(where=f"Constraints.{name}", got=got, wanted="a tensor of truth values")
            if value.shape != shape or not size:
                raise ShapeError(
                    where=f"Constraints.{name}", got=tuple(value.shape), wanted="(tags, tags), and (tags,)"
                )
            object.__setattr__(self, name, value.detach().clone())  # nobody else can change it

    @property
    def tags(self) -> int:
        """How many tags there are."""
        return len(self.allowed)

    @classmethod
    def of_tags(cls, names: Sequence[str], scheme: str = "iob2") -> Constraints:
        """What a scheme of tags for spans allows.

        ``iob2``: a span begins with B and goes on with I. ``iob1``: it begins with I, or with B right after another
        span of its type. ``bioes``: it is one S, or B, any number of I, and E. Outside of spans is O.

        Args:
            names: of all tags, in the order of their numbers: "O", or a prefix, "-" and a type, such as "B-PER".
            scheme: one of those above.

        >>> rules = Constraints.of_tags(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
        >>> rules.allowed[1].tolist(), rules.start.tolist()
        ([True, True, True, True, False], [True, True, False, True, False])
        """
        if scheme not in SCHEMES:
            raise ArgumentError(where="Constraints.of_tags.scheme", got=scheme, wanted=f"one of {', '.join(SCHEMES)}")
        tags = [_parsed(name, scheme) for name in names]
        if not tags or len(set(tags)) != len(tags):
            raise ArgumentError(where="Constraints.of_tags.names", got=list(names), wanted="names, each of them once")
        return cls(
            torch.tensor([[_may_follow(one, other, scheme) for other in tags] for one in tags]),
            torch.tensor([prefix in _FIRST[scheme] for prefix, _ in tags]),
            torch.tensor([prefix in _LAST[scheme] for prefix, _ in tags]),
        )


def _parsed(name: str, scheme: str) -> tuple[str, str]:
    prefix, dash, kind = name.partition("-")
    spanning = prefix != "O" and bool(dash) and bool(kind)
    if not (name == "O" or spanning) or len(prefix) != 1 or prefix not in _PREFIXES[scheme]:
        raise ArgumentError(
            where="Constraints.of_tags.names",
            got=repr(name),
            wanted=f'"O", or one of {", ".join(_PREFIXES[scheme][1:])} with "-" and a type: the scheme is {scheme}',
        )
    return prefix, kind


def _may_follow(one: tuple[str, str], other: tuple[str, str], scheme: str) -> bool:
    if one[0] != "O" and one[1] == other[1]:
        return other[0] in _INSIDE[scheme][one[0]]
    return other[0] in _OUTSIDE[scheme][one[0]]
