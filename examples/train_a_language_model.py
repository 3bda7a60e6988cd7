"""Train a small language model three ways, see which predicts unseen text best, and let it write.

    python examples/train_a_language_model.py

The text is made by the package: sentences whose verbs agree with subjects some words back. Without regularization the
network soon knows its 6,000 words by heart; noise on the state keeps it from that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from statewise.data import sample_corpus
from statewise.models import LanguageModelConfig, generate
from statewise.train import TrainingSettings, load_language_model, train_language_model

SETTINGS = TrainingSettings(epochs=30, batch=10, bptt=20, optimizer="adam", lr=0.01, divide=None, averaging="never")
PLAIN = LanguageModelConfig(hidden=(48,), tied=True)
MODELS = {
    "no regularization": PLAIN,
    "dropout 0.3": LanguageModelConfig(hidden=(48,), input_dropout=0.3, output_dropout=0.3),
    "Gaussian noise 0.5, fed back": LanguageModelConfig(hidden=(48,), noise="gaussian", gamma=0.5),
}


def main() -> None:
    """Train the models, compare them, and print a few sentences of the best."""
    torch.set_num_threads(1)  # a network this small gains nothing from more
    corpus, results = sample_corpus(), {}
    with tempfile.TemporaryDirectory() as place:
        for number, (name, config) in enumerate(MODELS.items()):
            last: dict[str, float] = {}
            result = train_language_model(config, SETTINGS, corpus, Path(place) / str(number), on_epoch=last.update)
            results[name] = result
            gap = last["valid_perplexity"] / result.valid_perplexity - 1
            print(f"{name:30} {result}; at the end {100 * gap:.0f} % above its best")
        best = min(results, key=lambda name: results[name].valid_perplexity)
        model, vocabulary, _ = load_language_model(results[best].folder)
    start = torch.tensor([[vocabulary.end_id]])
    words = generate(model, start, length=60, temperature=0.8, generator=torch.Generator().manual_seed(0))
    text = " ".join(vocabulary.decode(words[:, 0].tolist())).replace(vocabulary.end, "\n")
    print(f"\nThe best on the validation text is the model with {best}. It writes:\n")
    print("\n".join(line.strip() for line in text.splitlines()[:-1]))


if __name__ == "__main__":
    main()
