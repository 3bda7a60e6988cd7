"""Does mixing sequences help a tagger that has few data? Four trainings side by side.

Tags follow a lazy chain, and each is seen through noise, so that a tagger must weigh what it sees against what came
before. A hundred short sequences are soon learnt by heart: the plain tagger becomes sure of itself and wrong. Mixup
trains on pairs of sequences and of their tags instead (Karamzade et al. 2020); two lines of the loop change.

Run it with ``python examples/mix_sequences.py``; it takes seconds on a CPU.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import statewise
from statewise.mixup import InputMixup, Mixup, Pairs, PreOutputMixup, ThroughTimeMixup

TAGS, WIDTH, STEPS = 5, 8, 12
Sample = tuple[Tensor, Tensor, Tensor]  # inputs (steps, batch, width), tags (steps, batch), lengths (batch,)


class Tagger(nn.Module):
    """Scores the tags of every step of sequences, or of pairs of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = statewise.LSTM(WIDTH, 32)
        self.head = nn.Linear(32, TAGS)

    def forward(self, inputs: Tensor, lengths: Tensor, mix: Mixup, generator: torch.Generator) -> tuple[Tensor, Pairs]:
        """Scores, and the pairs that know their loss; in eval mode every sequence is its own pair."""
        output, pairs = mix(self.layer, inputs, lengths=lengths, generator=generator)
        return self.head(output), pairs


def make_sample(count: int, means: Tensor, *, generator: torch.Generator) -> Sample:
    """Tags that stay as they are four times out of five, seen through noise; lengths from 6 to 12."""
    tags = torch.randint(TAGS, (STEPS, count), generator=generator)
    for step in range(1, STEPS):
        stays = torch.rand(count, generator=generator) < 0.8
        tags[step] = torch.where(stays, tags[step - 1], tags[step])
    inputs = means[tags] + 1.5 * torch.randn(STEPS, count, WIDTH, generator=generator)
    return inputs, tags, torch.randint(STEPS // 2, STEPS + 1, (count,), generator=generator)


def train(tagger: Tagger, sample: Sample, mix: Mixup | None, *, generator: torch.Generator) -> float:
    """Train on the whole sample at once; the last loss per tag, above what the mixed tags make unavoidable."""
    inputs, tags, lengths = sample
    optimizer, excess = torch.optim.Adam(tagger.parameters(), lr=0.01), 0.0
    for _ in range(150):
        if mix is None:
            output, _ = tagger.layer(inputs)
            scores, pairs = tagger.head(output), Pairs.alone(lengths)
        else:
            scores, pairs = tagger(inputs, lengths, mix, generator)
        loss = pairs.cross_entropy(scores, tags, reduction="token")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        excess = float(loss.detach() - pairs.irreducible(tags, reduction="token"))
    return excess


@torch.no_grad()
def judge(tagger: Tagger, sample: Sample, *, generator: torch.Generator) -> tuple[float, float, float]:
    """On fresh sequences: the share of right tags, the loss per tag, and the mean confidence."""
    inputs, tags, lengths = sample
    scores, pairs = tagger.eval()(inputs, lengths, InputMixup(), generator)
    inside = torch.arange(STEPS).unsqueeze(1) < lengths
    right = (scores.argmax(2) == tags)[inside].double().mean()
    confidence = scores.softmax(2).amax(2)[inside].mean()
    return float(right), float(pairs.cross_entropy(scores, tags, reduction="token")), float(confidence)


def main() -> None:
    """Train four taggers from the same start and print what they are worth."""
    torch.set_num_threads(1)  # for matrices this small more threads only wait for each other
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(TAGS, WIDTH, generator=generator)
    seen, fresh = (make_sample(count, means, generator=generator) for count in (100, 1000))
    choices: dict[str, Mixup | None] = {
        "plain": None,
        "input": InputMixup(alpha=1.0),
        "before the output": PreOutputMixup(alpha=1.0),
        "through time": ThroughTimeMixup(alpha=1.0),
    }
    print(f"{'mixed':<18} {'training excess':>15} {'right':>7} {'loss':>7} {'confidence':>11}")
    for name, mix in choices.items():
        torch.manual_seed(0)
        tagger = Tagger()
        excess = train(tagger, seen, mix, generator=generator)
        right, loss, confidence = judge(tagger, fresh, generator=generator)
        print(f"{name:<18} {excess:>15.3f} {right:>7.1%} {loss:>7.3f} {confidence:>11.1%}")


if __name__ == "__main__":
    main()
