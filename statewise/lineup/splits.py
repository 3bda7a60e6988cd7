"""Examples to train on, to choose by and to report, drawn once for all candidates; what belongs together stays so."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from statewise.errors import ArgumentError, DataError

#: How much of a file without companions is trained on, chosen by and reported.
SHARES = {"train": 0.7, "valid": 0.15, "test": 0.15}
LEAST = 5  # examples of a part; statistics of fewer say nothing

Places = npt.NDArray[np.int64]


def enough_groups(parts: Sequence[str]) -> int:
    """How many groups must be there to be divided.

    Args:
        parts: into which.

    >>> enough_groups(("train", "valid", "test"))
    34
    """
    return math.ceil(LEAST * sum(SHARES[part] for part in parts) / min(SHARES[part] for part in parts))


def grouped_split(
    groups: Sequence[Hashable],
    strata: Sequence[Hashable],
    needs: Sequence[frozenset[str]],
    *,
    parts: Sequence[str],
    seed: int,
    where: str,
) -> dict[str, Places]:
    """Divide examples at random into parts, such that no group is in two of them.

    Groups are shuffled within each stratum, and dealt out in the shares of the parts, so that each has about its share
    of every class. A group with something that no example to train on has, such as a tag or a letter, is trained on:
    nothing could be said of it otherwise.

    Args:
        groups: to which each example belongs: a document, a person, or the example itself, so that two of the same text
            never end on both sides.
        strata: the class of each example; that of a group is its first one's.
        needs: what of each example must have been seen in training.
        parts: some of "train", "valid" and "test", "train" among them.
        seed: what the draw depends on.
        where: the name of the data, for errors.

    >>> people = [place // 2 for place in range(100)]
    >>> split = grouped_split(people, "ab" * 50, [frozenset()] * 100, parts=tuple(SHARES), seed=0, where="people")
    >>> {part: len(places) for part, places in split.items()}
    {'train': 70, 'valid': 16, 'test': 14}
    """
    if "train" not in parts or not set(parts) <= set(SHARES):
        raise ArgumentError(where="grouped_split.parts", got=tuple(parts), wanted="train, and valid or test or both")
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    shares = {part: SHARES[part] / sum(SHARES[each] for each in parts) for part in parts}
    enough = enough_groups(parts)
    if len(members) < enough:
        shared = "" if len(members) == len(groups) else f" in {len(members)} groups that must not be divided"
        raise DataError(
            where=where,
            got=f"{len(groups)} examples{shared}",
            wanted=f"at least {enough} to be split into {', '.join(parts)}",
            remedy="Get more data, or name files of your own: --valid and --test.",
        )
    dealt = _dealt(members, strata, shares, np.random.Generator(np.random.PCG64(seed)))
    _move_unseen(dealt, members, needs)
    found = {part: np.array(sorted(p for group in dealt[part] for p in members[group]), np.int64) for part in parts}
    for part, places in found.items():
        if len(places) < LEAST:
            raise DataError(
                where=where,
                got=f"{len(places)} examples for {part}, since all others have something that no other example has",
                wanted=f"at least {LEAST}",
                remedy=f"Get more data, or name a file: --{part}." if part != "train" else "Get more data.",
            )
    return found


def _dealt(
    members: dict[Hashable, list[int]],
    strata: Sequence[Hashable],
    shares: Mapping[str, float],
    draw: np.random.Generator,
) -> dict[str, list[Hashable]]:
    """Groups by part: each goes where most is missing, in a random order within each stratum."""
    by_stratum: dict[Hashable, list[Hashable]] = {}
    for group, places in members.items():
        by_stratum.setdefault(strata[places[0]], []).append(group)
    parts, wanted = list(shares), np.array(list(shares.values()))
    filled, total = np.zeros(len(parts)), 0
    dealt: dict[str, list[Hashable]] = {part: [] for part in parts}
    for own in by_stratum.values():
        for at in draw.permutation(len(own)).tolist():
            size = len(members[own[at]])
            total += size
            to = int(np.argmax(wanted * total - filled))
            filled[to] += size
            dealt[parts[to]].append(own[at])
    return dealt


def _move_unseen(
    dealt: dict[str, list[Hashable]], members: dict[Hashable, list[int]], needs: Sequence[frozenset[str]]
) -> None:
    seen = {one for group in dealt["train"] for place in members[group] for one in needs[place]}
    for part in dealt:
        strange = [group for group in dealt[part] if not all(needs[place] <= seen for place in members[group])]
        if part != "train" and strange:
            dealt[part] = [group for group in dealt[part] if group not in set(strange)]
            dealt["train"] += strange
            seen |= {one for group in strange for place in members[group] for one in needs[place]}
