"""Prove how often a trained network errs at most, from the sequences that it was trained on."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import statewise
from statewise.bounds import certify


class Memory(nn.Module):
    """Says after ten steps which sign the first number had."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.layer = statewise.RNN(2, 4, bias=False, batch_first=True, generator=generator)
        self.head = nn.Linear(4, 2, bias=False)
        statewise.weights.identity_(self.layer.weight_hh_l0)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(inputs)[0][:, -1])
        return logits


def main() -> None:
    """Draw sequences, train on them, certify with the same ones, and count errors on fresh ones."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    inputs, labels = draw(20_000, generator)
    model = Memory(generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    for _ in range(300):
        rows = torch.randint(len(inputs), (512,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    # No entry of an input is above 0.9 and 0.3 by the way they are drawn: that is known before any is.
    found = certify(model.eval(), (inputs, labels), iid=True, input_bound=1.0, longest=10)
    print(found)
    fresh, truth = draw(100_000, generator)
    with torch.no_grad():
        wrong = int((model(fresh).argmax(1) != truth).sum())
    print(f"\nOn {len(fresh):,} fresh sequences it errs {wrong} times; proved are at most {found.value:.2%}.")


def draw(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of ten pairs, the first number of which is 0.9 or -0.9, and which of the two it was."""
    labels = torch.randint(2, (count,), generator=generator)
    inputs = 0.6 * torch.rand(count, 10, 2, generator=generator) - 0.3
    inputs[:, 0, 0] = 1.8 * labels - 0.9
    return inputs, labels


if __name__ == "__main__":
    main()
