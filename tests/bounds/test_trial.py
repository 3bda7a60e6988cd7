"""Models that are not what they look like are found out, and get no certificate of what they look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from networks import LastState
from statewise.bounds import certify, describe
from statewise.bounds.hidden import named_tensors, why_hidden
from statewise.bounds.reading import read_model
from statewise.errors import AssumptionError


class Memoriser(nn.Module):
    """Knows its training sequences by heart, with numbers that are where somebody puts them."""

    def __init__(self, inputs: Tensor, labels: Tensor, keep: str) -> None:
        super().__init__()
        self.layer, self.head = nn.RNN(2, 2, batch_first=True), nn.Linear(2, 2)
        if keep == "attribute":
            self.keys, self.values = inputs, labels
        elif keep == "list":
            self.kept: Any = [inputs, labels]
        elif keep == "array":
            self.kept = {"keys": inputs.numpy(), "values": labels.numpy()}
        elif keep == "buffer":
            self.register_buffer("keys", inputs, persistent=False)
            self.register_buffer("values", labels, persistent=False)
        self.keep = keep

    def forward(self, inputs: Tensor) -> Tensor:
        if self.keep in ("list", "array"):
            pair = self.kept if self.keep == "list" else [torch.from_numpy(each) for each in self.kept.values()]
            keys, values = pair
        else:
            keys, values = self.keys, self.values
        nearest = torch.cdist(inputs.flatten(1), keys.flatten(1)).argmin(1)
        return F.one_hot(values[nearest], 2).float()


@pytest.fixture
def random_labels() -> tuple[Tensor, Tensor]:
    return torch.rand(200, 3, 2), torch.randint(2, (200,))


@pytest.mark.parametrize("keep", ["attribute", "list", "array"])
def test_numbers_that_cannot_be_described_give_no_certificate(keep: str, random_labels: tuple[Tensor, Tensor]) -> None:
    model = Memoriser(*random_labels, keep).eval()
    assert "neither parameter nor buffer" in why_hidden(model)
    with pytest.raises(AssumptionError, match="no bound that applies"):
        certify(model, random_labels, iid=True)
    with pytest.raises(AssumptionError, match="Register it as a buffer"):
        describe(model)


def test_buffers_are_paid_for_also_those_that_no_file_holds(random_labels: tuple[Tensor, Tensor]) -> None:
    model = Memoriser(*random_labels, "buffer").eval()
    found = certify(model, random_labels, iid=True)
    assert found.error == 0
    assert found.value > 0.5
    assert {name for name, _ in named_tensors(model)} >= {"keys", "values"}


def test_modules_in_plain_lists_extra_states_and_hooks_are_found() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 2)]

    class Extra(nn.Linear):
        def get_extra_state(self) -> Any:
            return 7

    hooked = nn.Linear(2, 2)
    hooked.register_forward_hook(lambda module, given, answer: answer + 1)
    assert "layers holds a module" in why_hidden(Plain())
    assert "extra state" in why_hidden(Extra(2, 2))
    assert "a hook" in why_hidden(hooked)
    assert why_hidden(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))) == ""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda logits: logits + 0.01 * torch.randn_like(logits), "one deterministic function"),
        (lambda logits: F.dropout(logits, 0.5), "one deterministic function"),
        (lambda logits: logits - logits.mean(0), "one deterministic function"),
        (lambda logits: logits / logits.abs().amax(0), "one deterministic function"),
        (lambda logits: logits / (len(logits) - 1), "one deterministic function"),
    ],
    ids=["noise", "functional dropout", "centred by the batch", "scaled by the batch", "no number alone"],
)
def test_what_draws_or_sees_its_batch_is_refused(change: Any, told: str) -> None:
    model = LastState(nn.RNN(2, 3, batch_first=True)).eval()
    data = torch.rand(50, 4, 2), torch.randint(2, (50,))
    with pytest.raises(AssumptionError, match=told):
        certify(model, data, iid=True, input_bound=2.0, forward=lambda inputs: change(model(inputs)))


def test_what_reads_its_padding_is_refused() -> None:
    model = LastState(nn.RNN(2, 3, batch_first=True)).eval()
    data = torch.rand(50, 6, 2), torch.randint(1, 6, (50,)), torch.randint(2, (50,))
    with pytest.raises(AssumptionError, match="padding"):
        certify(model, data, iid=True, input_bound=2.0, forward=lambda inputs, lengths: model(inputs))


@pytest.mark.parametrize(
    "change",
    [
        lambda logits: logits.tanh(),
        lambda logits: 1.001 * logits,
        lambda logits: logits + torch.tensor([1e-3, 0.0]),
        lambda logits: 1e-5 * logits.flip(1),
    ],
    ids=["squashed", "scaled", "shifted", "another, and small"],
)
def test_other_logits_than_those_of_the_matrices_are_found_whatever_their_size(change: Any) -> None:
    model = LastState(nn.RNN(2, 3, batch_first=True)).eval()
    data = torch.rand(50, 4, 2), torch.randint(2, (50,))
    found = certify(model, data, iid=True, input_bound=2.0, forward=lambda inputs: change(model(inputs)))
    assert "no linear head on the last state" in found.inapplicable["kl"]


def test_what_is_added_to_all_classes_alike_does_not_matter() -> None:
    model = LastState(nn.RNN(2, 3, batch_first=True)).eval()
    data = torch.rand(50, 4, 2), torch.randint(2, (50,))
    found = certify(model, data, iid=True, input_bound=2.0, forward=lambda inputs: model(inputs).log_softmax(1))
    assert "kl" in {claim.name for claim in found.claims}


def test_weights_beside_the_parts_and_subclasses_are_not_covered() -> None:
    class Started(LastState):
        def __init__(self) -> None:
            super().__init__(nn.RNN(2, 3, batch_first=True))
            self.start = nn.Parameter(torch.zeros(3))

    class Other(nn.LSTM):
        pass

    assert "start belongs neither" in read_model(Started().eval()).why_not
    assert "subclass" in read_model(LastState(Other(2, 3)).eval()).why_not
    capped = nn.utils.parametrizations.spectral_norm(nn.RNN(2, 3, batch_first=True), "weight_hh_l0")
    assert read_model(LastState(capped).eval()).matrices is not None


def test_margins_are_less_by_what_the_matrices_leave_open() -> None:
    from statewise.bounds.observed import observe
    from statewise.bounds.trial import tried

    model = LastState(nn.RNN(2, 3, batch_first=True)).eval()
    data = torch.rand(50, 4, 2), torch.randint(2, (50,))
    seen = observe(model, data, forward=lambda inputs: model(inputs) + torch.tensor([2e-6, 0.0]))
    reading, lower = tried(read_model(model), seen)
    assert reading.matrices is not None
    gap = np.unique(np.round(seen.margins - lower.margins, 12))
    assert len(gap) == 1
    assert 4e-6 * (1 - 0.2) <= gap[0] <= 1e-5
