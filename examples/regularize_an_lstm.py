"""Which regularizer helps on few data? A plain LSTM tagger against the same one with noise, and with zoneout.

The task is made on the fly. A sentence is a row of random words; some words open a mode, some close it, and the tag of
each word depends on the word and on the mode. Part of the training tags are wrong, so a tagger that fits the training
set perfectly has learnt mistakes. The test tags are right.

Training runs long on purpose: the question is what a regularizer does for someone who does not know when to stop. The
best epoch is shown too. It is picked by the test sentences, so it is what perfect early stopping would give at most.

Run it with ``python examples/regularize_an_lstm.py``; it takes seconds on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import statewise
from statewise import Noise, Transform, Zoneout

WORDS, TAGS, LENGTH = 20, 4, 12
OPENING, CLOSING = (0, 1), (2, 3)  # words that switch the mode on and off
WRONG = 0.15  # share of wrong tags in the training set
TRAINING, TESTING = 60, 400
EPOCHS, SEEDS = 80, (0, 1, 2)


@dataclass(frozen=True)
class Sentences:
    """Words and their tags, both of shape (length, sentences)."""

    words: Tensor
    tags: Tensor


def make_sentences(count: int, *, wrong: float, generator: torch.Generator) -> Sentences:
    """Draw sentences; a tag is twice the mode plus the parity of the word."""
    words = torch.randint(WORDS, (LENGTH, count), generator=generator)
    mode, tags = torch.zeros(count, dtype=torch.long), []
    for word in words:
        mode = torch.where(torch.isin(word, torch.tensor(OPENING)), 1, mode)
        mode = torch.where(torch.isin(word, torch.tensor(CLOSING)), 0, mode)
        tags.append(2 * mode + word % 2)
    right = torch.stack(tags)
    spoilt = torch.rand(words.shape, generator=generator) < wrong
    return Sentences(words, torch.where(spoilt, torch.randint(TAGS, words.shape, generator=generator), right))


class Tagger(nn.Module):
    """An embedding, a recurrent layer, and a linear layer that reads its states."""

    def __init__(self, transforms: tuple[Transform, ...]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16)
        self.recurrent = statewise.LSTM(16, 64, transforms=transforms)
        self.head = nn.Linear(64, TAGS)

    def forward(self, words: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Scores of the tags, shape (length, sentences, tags)."""
        states, _ = self.recurrent(self.embedding(words), generator=generator)
        scores: Tensor = self.head(states)
        return scores


def train(tagger: Tagger, data: Sentences, testing: Sentences, *, generator: torch.Generator) -> list[float]:
    """Full-batch training; the generator is the source of all noise. Returns the test accuracy after each epoch."""
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.02)
    curve = []
    for _ in range(EPOCHS):
        tagger.train()
        scores = tagger(data.words, generator)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), data.tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(accuracy(tagger, testing))
    return curve


@torch.no_grad()
def accuracy(tagger: Tagger, data: Sentences) -> float:
    """Share of tags that are right, in per cent; noise is off in eval mode."""
    tagger.eval()
    return 100 * float((tagger(data.words).argmax(2) == data.tags).float().mean())


def main() -> None:
    """Train each tagger on a few seeds and print the table of means."""
    torch.set_num_threads(1)  # for matrices this small more threads only wait for each other
    candidates: dict[str, tuple[Transform, ...]] = {
        "plain": (),
        "Noise, std 0.5": (Noise.from_std("gaussian", 0.5),),
        "Noise, std 1.0": (Noise.from_std("gaussian", 1.0),),
        "Zoneout 0.3": (Zoneout(0.3, memory=0.3),),
    }
    print(f"{TRAINING} training sentences, {WRONG:.0%} of their tags wrong; mean of {len(SEEDS)} seeds")
    print(f"Trained for {EPOCHS} epochs, longer than is good on purpose; accuracy after the last and in the best epoch")
    print(f"{'tagger':<16}{'training':>10}{'test':>10}{'test, best':>12}{'(epoch)':>9}")
    for name, transforms in candidates.items():
        rows = []
        for seed in SEEDS:
            generator = torch.Generator().manual_seed(seed)
            training = make_sentences(TRAINING, wrong=WRONG, generator=generator)
            testing = make_sentences(TESTING, wrong=0.0, generator=generator)
            torch.manual_seed(seed)
            tagger = Tagger(transforms)
            curve = train(tagger, training, testing, generator=generator)
            rows.append((accuracy(tagger, training), curve[-1], max(curve), 1.0 + curve.index(max(curve))))
        on_training, at_the_end, best, epoch = (sum(column) / len(column) for column in zip(*rows, strict=True))
        print(f"{name:<16}{on_training:>9.1f}%{at_the_end:>9.1f}%{best:>11.1f}%{epoch:>9.0f}")


if __name__ == "__main__":
    main()
