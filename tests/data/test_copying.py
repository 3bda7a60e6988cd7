"""The copying memory task."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from statewise.data import copying, copying_baseline
from statewise.errors import ArgumentError


class TestCopying:
    def test_symbols_then_blanks_with_the_cue_last_then_the_answer(self) -> None:
        task = copying(100, count=500, seed=0)
        inputs, targets = task.inputs, task.targets
        assert inputs.shape == targets.shape == (500, 120)
        assert inputs.dtype == targets.dtype == torch.int64
        assert set(inputs[:, :10].unique().tolist()) == set(range(1, 9))
        assert (inputs[:, 10:109] == 0).all()
        assert (inputs[:, 109] == 9).all()
        assert (inputs[:, 110:] == 0).all()
        assert (targets[:, :110] == 0).all()
        assert (targets[:, 110:] == inputs[:, :10]).all()

    def test_a_batch_is_rows_of_the_whole(self) -> None:
        task = copying(5, n=3, count=20, seed=1)
        inputs, lengths, targets = task.padded([4, 2])
        assert (inputs == task.inputs[[4, 2]]).all()
        assert (targets == task.targets[[4, 2]]).all()
        assert lengths is None
        assert (task.select([4]).inputs == inputs[:1]).all()

    def test_symbols_are_uniform_and_drawn_by_the_seed(self) -> None:
        shown = copying(1, count=4000, seed=2).shown
        counts = np.bincount(shown.ravel(), minlength=10)[1:9]
        assert ((counts - 5000) ** 2 / 5000).sum() < 30
        assert (copying(1, count=4000, seed=2).shown == shown).all()
        assert not (copying(1, count=4000, seed=3).shown == shown).all()

    def test_the_baseline_is_the_loss_of_the_best_guess_without_memory(self) -> None:
        assert copying_baseline(100) == pytest.approx(0.173287, abs=5e-7)
        assert copying_baseline(500) == pytest.approx(0.039989, abs=5e-7)
        task = copying(7, n=3, count=50, seed=0)
        chances = torch.full((50, task.steps, 10), -math.inf)
        chances[:, :-3, 0] = 0.0
        chances[:, -3:, 1:9] = math.log(1 / 8)
        loss = -chances.gather(-1, task.targets.unsqueeze(-1)).mean()
        assert float(loss) == pytest.approx(task.baseline)

    @pytest.mark.parametrize("wrong", [{"delay": 0}, {"delay": 5, "n": 0}, {"delay": 5, "count": -1}])
    def test_a_demand_without_sense_is_refused(self, wrong: dict[str, int]) -> None:
        with pytest.raises(ArgumentError, match="copying"):
            copying(**wrong)
