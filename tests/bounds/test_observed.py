"""One pass over the data sees what certificates need, and refuses data they cannot speak of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from statewise.bounds.margins import margins
from statewise.bounds.observed import BATCH, observe
from statewise.data import Sequences
from statewise.errors import ArgumentError, AssumptionError, DeviceError, DtypeError, LengthError, ShapeError
from statewise.models import ClassifierConfig


class Sums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 3))

    def forward(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        return inputs.sum(1) @ self.weight


def examples(count: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(count, 4, 2), torch.randint(3, (count,))


def test_every_form_of_data_gives_the_same() -> None:
    model, (x, z) = Sums(), examples(BATCH + 7)
    lengths = torch.full((len(x),), 4)
    forms = ((x, z), [x, z], (x, lengths, z), DataLoader(TensorDataset(x, z), batch_size=100))
    seen = [observe(model, form) for form in forms]
    wanted = margins(model(x).double(), z).detach().numpy()
    for one in seen:
        np.testing.assert_allclose(one.margins, wanted, atol=1e-3)
        assert np.all(one.margins <= wanted)
        assert one.wrong == int((wanted <= 0).sum())
        assert (one.sequences, one.longest, one.classes) == (len(x), 4, 3)
        assert one.largest == pytest.approx(float(x.norm(dim=2).max()))
        assert one.words is None


def test_padding_is_never_looked_at() -> None:
    x, z = examples(4)
    x[1, 2:] = math.inf
    seen = observe(Sums(), (x, torch.tensor([4, 2, 3, 1]), z), forward=lambda x, n: x[:, 0] @ torch.ones(2, 3))
    assert math.isfinite(seen.largest)
    assert seen.lengths.tolist() == [4, 2, 3, 1]


def test_examples_of_the_package_are_read_with_their_words() -> None:
    words = ["", "0110", "1", "00"]
    data = Sequences.from_words(words, [1, 0, 0, 1])
    model = ClassifierConfig(hidden=4).build(tokens=2, classes=2, symbols="01").eval()
    seen = observe(model, data)
    assert seen.words is not None
    assert ["".join(map(str, word)) for word in seen.words] == words
    assert seen.labels.tolist() == [1, 0, 0, 1]


def test_ties_are_wrong() -> None:
    x, _ = examples(3)
    seen = observe(Sums(), (x, torch.tensor([0, 1, 2])), forward=lambda x: torch.zeros(3, 3))
    assert seen.wrong == 3
    assert seen.error == 1


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_sequences_are_refused(count: int) -> None:
    x, z = examples(count)
    with pytest.raises(ArgumentError, match=f"got {count} sequences, wanted at least 2"):
        observe(Sums(), (x, z))


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize("data", [torch.zeros(3), 7, [(1,)], [{"inputs": 1}]])
def test_other_data_is_refused(data: Any) -> None:
    with pytest.raises(DtypeError, match="inputs, labels"):
        observe(Sums(), data)


def test_data_that_no_bound_can_speak_of_is_refused() -> None:
    x, z = examples()
    model = Sums()
    with pytest.raises(ShapeError, match="a label each"):
        observe(model, (x, z[:-1]))
    with pytest.raises(ArgumentError, match="labels 0 to 3"):
        observe(model, (x, torch.arange(len(x)).clamp(max=3)))
    with pytest.raises(LengthError, match="sequence 2"):
        observe(model, (x[:3], torch.tensor([1, 2, 0]), z[:3]))
    unbounded = x.clone()
    unbounded[5, 1] = math.inf
    with pytest.raises(AssumptionError, match="sequence 5"):
        observe(model, (unbounded, z))
    with pytest.raises(AssumptionError, match="finite logits"):
        observe(model, (x, z), forward=lambda x: torch.full((len(x), 3), math.nan))
    for shape in ((50,), (50, 1), (50, 2, 2)):
        with pytest.raises(AssumptionError, match="logits"):
            observe(model, (x, z), forward=lambda x, shape=shape: torch.zeros(shape))
    with pytest.raises(DeviceError, match="meta"):
        observe(model, (x.to("meta"), z))
