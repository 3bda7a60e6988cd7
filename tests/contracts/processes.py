"""What every process of coefficients promises: chains from 0 to 1 with the moments it says, drawn in any segments."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples, seeds, some_examples
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.mixup import CoefficientProcess

PATHS = 20_000


class ProcessContract:
    """Inherit it, and say which settings there are."""

    kind: ClassVar[type[Any]]

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        """Any settings."""
        raise NotImplementedError

    def make(self, data: st.DataObject) -> CoefficientProcess:
        """A process with any settings."""
        process: CoefficientProcess = self.kind(**data.draw(self.settings()))
        return process

    @few_examples
    @given(data=st.data())
    def test_it_is_an_immutable_value(self, data: st.DataObject) -> None:
        process = self.make(data)
        for twin in (copy.deepcopy(process), pickle.loads(pickle.dumps(process)), dataclasses.replace(process)):
            assert twin == process
            assert hash(twin) == hash(process)
        with pytest.raises(dataclasses.FrozenInstanceError):
            process.alpha = 3.0  # type: ignore[attr-defined]

    @some_examples
    @given(data=st.data(), batch=st.integers(1, 5), steps=st.integers(1, 6), seed=seeds)
    def test_a_seed_repeats_coefficients_from_0_to_1(
        self, data: st.DataObject, batch: int, steps: int, seed: int
    ) -> None:
        process, before = self.make(data), torch.random.get_rng_state()
        found, again = (process.sample(batch, steps, generator=seeded(seed)) for _ in range(2))
        assert found.shape == (steps, batch)
        assert ((found >= 0) & (found <= 1)).all()
        assert torch.equal(found, again)
        assert not found.requires_grad
        assert torch.equal(torch.random.get_rng_state(), before)

    @some_examples
    @given(data=st.data(), steps=st.integers(1, 5), more=st.integers(1, 5), seed=seeds)
    def test_a_chain_in_two_segments_is_the_chain_in_one(
        self, data: st.DataObject, steps: int, more: int, seed: int
    ) -> None:
        process, source = self.make(data), seeded(seed)
        first = process.sample(4, steps, generator=source)
        second = process.sample(4, more, generator=source, previous=first[-1])
        assert torch.equal(torch.cat((first, second)), process.sample(4, steps + more, generator=seeded(seed)))

    @few_examples
    @given(data=st.data(), seed=seeds)
    def test_its_moments_are_what_it_says(self, data: st.DataObject, seed: int) -> None:
        """Within six standard errors; a deviation is below 1, so a square's variance is below its mean."""
        process, steps = self.make(data), 5
        found = process.sample(PATHS, steps, generator=seeded(seed)) - process.mean
        for step in range(1, steps + 1):
            variance = process.variance(step)
            error = 6 * math.sqrt(variance / PATHS) + 1e-12
            assert abs(found[step - 1].mean()) <= error
            assert found[step - 1].square().mean() == pytest.approx(variance, abs=error)
            together = (found[0] * found[step - 1]).mean()
            assert together == pytest.approx(process.covariance(1, step - 1), abs=error + 6 * spread(found, PATHS))
        mixing = (found + process.mean) * (1 - found - process.mean)
        assert mixing.mean() == pytest.approx(process.strength(steps), abs=12 * spread(found, PATHS) + 1e-12)

    @pytest.mark.parametrize("wrong", [{"batch": 0, "steps": 3}, {"batch": 2, "steps": 0}, {"batch": True, "steps": 1}])
    @given(data=st.data())
    @few_examples
    def test_a_batch_or_a_length_of_nothing_is_refused(self, wrong: dict[str, Any], data: st.DataObject) -> None:
        with pytest.raises(ArgumentError, match="a whole number of at least 1"):
            self.make(data).sample(**wrong)

    @few_examples
    @given(data=st.data())
    def test_coefficients_of_other_pairs_are_no_beginning(self, data: st.DataObject) -> None:
        with pytest.raises(ShapeError, match=r"previous: got \(2,\), wanted \(3,\)"):
            self.make(data).sample(3, 2, previous=torch.zeros(2, dtype=torch.float64))

    @pytest.mark.usefixtures("as_users_have_it")
    @few_examples
    @given(data=st.data())
    def test_a_seed_is_no_generator(self, data: st.DataObject) -> None:
        wrong: Any = 7
        with pytest.raises(DtypeError, match=r"generator: got int, wanted a torch\.Generator"):
            self.make(data).sample(3, 2, generator=wrong)


def seeded(seed: int) -> torch.Generator:
    """A generator of a seed."""
    return torch.Generator().manual_seed(seed)


def spread(found: Tensor, paths: int) -> float:
    """The largest standard error of means of products of deviations."""
    return float(found.square().mean(1).max().sqrt()) / math.sqrt(paths)
