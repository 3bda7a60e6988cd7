"""Which states does a trained network move through? Centroids make them countable, ``collect=`` shows them.

A GRU with a few centroids learns to say after each bit whether the number of ones so far is odd. With centroids its
state is at each step a mixture of k learnt vectors (Wang & Niepert 2019), and ``collect=("probabilities",)`` returns
the weights of the mixture. Here they are printed for one word, then counted over many words: from which state does
which bit lead to which state? At last the layer is retuned to take the most probable centroid only: an automaton.

Run it with ``python examples/watch_the_state.py``; it takes seconds on a CPU.
"""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

import statewise
from statewise import Centroids


class ParityTagger(nn.Module):
    """Reads bits of shape (length, words) and scores "even" and "odd" after each of them."""

    def __init__(self, *, centroids: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2, 4)
        self.recurrent = statewise.GRU(4, 16, transforms=Centroids(centroids))
        self.head = nn.Linear(16, 2)

    def forward(self, bits: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (length, words, 2) and the probabilities of the centroids (length, words, centroids)."""
        states, _, seen = self.recurrent(self.embedding(bits), collect=("probabilities",))
        return self.head(states), seen.probabilities[0]


def make_words(length: int, count: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random bits and the parity of the ones so far."""
    bits = torch.randint(2, (length, count), generator=generator)
    return bits, bits.cumsum(0) % 2


def train(tagger: ParityTagger, *, generator: torch.Generator) -> None:
    """Two hundred steps on fresh words of length 12."""
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.02)
    for _ in range(200):
        bits, parity = make_words(12, 64, generator=generator)
        scores, _ = tagger(bits)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), parity.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def show_path(tagger: ParityTagger, word: str) -> None:
    """Print, bit by bit, the centroid with the largest probability and what the network says."""
    bits = torch.tensor([int(bit) for bit in word]).unsqueeze(1)
    scores, probabilities = tagger(bits)
    print("bit  state  probability  answer")
    for bit, weights, score in zip(word, probabilities[:, 0], scores[:, 0], strict=True):
        answer = ("even", "odd")[int(score.argmax())]
        print(f"{bit:>3}  {int(weights.argmax()):>5}  {float(weights.max()):>11.3f}  {answer}")


def show_transitions(tagger: ParityTagger, bits: Tensor) -> None:
    """Count over many words which state follows which, for each bit."""
    path = tagger(bits)[1].argmax(2)
    moves = zip(path[:-1].flatten().tolist(), bits[1:].flatten().tolist(), path[1:].flatten().tolist(), strict=True)
    print("state  bit  next state  times")
    for (state, bit, following), times in sorted(Counter(moves).items()):
        print(f"{state:>5}  {bit:>3}  {following:>10}  {times:>5}")


def accuracy(tagger: ParityTagger, bits: Tensor, parity: Tensor) -> float:
    """Share of right answers, in per cent."""
    return 100 * float((tagger(bits)[0].argmax(2) == parity).float().mean())


@torch.no_grad()
def look_inside(tagger: ParityTagger, *, generator: torch.Generator) -> None:
    """Print a path, the transitions, and the accuracy with the mixture and with the best centroid alone."""
    bits, parity = make_words(60, 200, generator=generator)
    show_path(tagger, "0110100011")
    print()
    show_transitions(tagger, bits)
    print()
    print(f"words of length 60, mixture of centroids: {accuracy(tagger, bits, parity):.1f}% right")
    tagger.recurrent.retune(Centroids, transition="argmax")
    print(f"words of length 60, best centroid alone:   {accuracy(tagger, bits, parity):.1f}% right")


def main() -> None:
    """Train a tagger and look inside."""
    torch.set_num_threads(1)  # for matrices this small more threads only wait for each other
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    tagger = ParityTagger(centroids=4)
    train(tagger, generator=generator)
    look_inside(tagger.eval(), generator=generator)


if __name__ == "__main__":
    main()
