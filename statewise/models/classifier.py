"""A classifier of sequences whose state may move among centroids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.mixup import Pairs
from statewise.models.mixed import mixed_logits
from statewise.models.parts import Parts, check_inputs, make_embedding, make_head
from statewise.models.sequences import Laid, lay_out
from statewise.models.traces import Trace
from statewise.models.views import resting_view, view_of
from statewise.models.words import Ids, Word, Words

if TYPE_CHECKING:
    from statewise.models.classifier_config import ClassifierConfig

READOUTS = ("u_end", "h", "c", "hc")


class SequenceClassifier(Parts):
    """A recurrent classifier: a start token, the sequence, an end token, a linear head.

    ``h_t = centroids(cell(x_t, h_{t-1}))`` over START and the sequence, ``u = cell(END, h_T)`` past the centroids of
    all layers, ``logits = head(u)`` (Wang & Niepert 2019, section 3; eqs. 1-6).

    Made by :meth:`ClassifierConfig.build <statewise.models.ClassifierConfig.build>`. Tokens are numbered from 0;
    ``start_id`` and ``end_id`` are the last two rows of the embedding.

    Args:
        config: everything but what follows.
        tokens: how many tokens there are, for sequences of tokens.
        features: how many numbers a step has, for sequences of numbers.
        classes: how many there are.
        symbols: the text of each token.
        generator: source of all weights; None means torch's global one.

    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(cell="lstm", hidden=8, centroids=(4,)).build(tokens=3, classes=2)
    >>> model(torch.tensor([[0, 1, 2], [1, 0, 0]]), torch.tensor([3, 0])).shape
    torch.Size([2, 2])
    """

    config: ClassifierConfig

    def __init__(
        self,
        config: ClassifierConfig,
        *,
        tokens: int | None = None,
        features: int | None = None,
        classes: int,
        symbols: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.symbols = check_inputs("SequenceClassifier", tokens, features, classes, symbols)
        config.refuse_inputs(tokens=tokens is not None)
        self.config, self.tokens, self.features, self.classes = config, tokens, features, classes
        width = config.embedding or config.hidden
        # START and END have rows of their own, also where they are not used, so that ids mean the same in all models.
        self.embedding = None if tokens is None else make_embedding(tokens + 2, width, generator)
        self.layer = config.build_layer(width if features is None else features, generator=generator)
        self._check_readout()
        self.head = make_head(config.hidden * (2 if config.readout == "hc" else 1), classes, generator)

    @property
    def start_id(self) -> int:
        """The row of the embedding that belongs to the start token."""
        return self._known_tokens

    @property
    def end_id(self) -> int:
        """The row of the embedding that belongs to the end token."""
        return self._known_tokens + 1

    def forward(
        self,
        inputs: Tensor,
        lengths: Tensor | None = None,
        *,
        pairs: Pairs | None = None,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "rows classes"]:
        """The logits of the classes, of the sequences or, if they are mixed, of the pairs.

        Args:
            inputs: token ids (batch, steps), or numbers (batch, steps, features); what stands beyond a sequence's end
                is never looked at.
            lengths: of each sequence; None where all are full. Keep them on the CPU: from another device the host must
                wait for them. Sequences of one length run as a dense batch.
            pairs: which of them are mixed, where and how strongly, drawn for :meth:`walked`; None for none.
            generator: source of everything drawn; None means torch's global one.
        """
        laid = self._lay_out(inputs, lengths)
        if pairs is not None:
            return mixed_logits(self, laid, pairs, generator)
        if laid.batch == 0:
            return self._logits(self.head.weight.new_zeros(0, self.head.in_features))
        _, state = self.layer(self._entering(laid, generator), generator=generator)
        return self._logits(self._read_out(state, laid.batch), generator)

    def walked(self, inputs: Tensor, lengths: Tensor | None = None) -> Int[Tensor, " batch"]:
        """How many steps the layers walk through for each sequence, a start token included; what pairs are drawn for.

        Args:
            inputs: as in :meth:`forward`.
            lengths: as in :meth:`forward`.

        >>> from statewise.mixup import InputMixup
        >>> from statewise.models import ClassifierConfig
        >>> model = ClassifierConfig(hidden=4).build(tokens=2, classes=2)
        >>> words, labels = torch.tensor([[0, 1], [1, 1]]), torch.tensor([0, 1])
        >>> pairs = InputMixup(alpha=0.5).draw(model.walked(words))
        >>> pairs.classification(model(words, pairs=pairs), labels).shape
        torch.Size([])
        """
        own = torch.full(inputs.shape[:1], inputs.shape[1]) if lengths is None else lengths.long().cpu()
        return own if self._start is None else own + 1

    def states(
        self,
        inputs: Tensor,
        lengths: Tensor | None = None,
        *,
        collect: Iterable[str] = ("states", "probabilities"),
        generator: torch.Generator | None = None,
    ) -> Trace:
        """What happens inside at every step, in eval mode and without gradients; the start token is step 0.

        Args:
            inputs: as in :meth:`forward`, at least one sequence.
            lengths: as in :meth:`forward`.
            collect: some of "states", "cells", "gates", "probabilities".
            generator: source of what transition "sample" draws.
        """
        laid = self._lay_out(inputs, lengths)
        resting = resting_view(self)
        with torch.no_grad():
            _, _, seen = resting.layer(resting._entering(laid), collect=collect, generator=generator)
        return Trace.of(seen, lengths=laid.all_lengths(inputs.device), has_start=self._start is not None)

    def prefix_logits(self, trace: Trace) -> Float[Tensor, "batch steps classes"]:
        """The logits of the classes after every step of a trace, as if each sequence ended there, in eval mode.

        Args:
            trace: of :meth:`states`, with "states" and, for a cell that has one, "cells". Beyond a sequence's end the
                logits mean nothing.

        >>> from statewise.models import ClassifierConfig
        >>> model = ClassifierConfig(cell="lstm", hidden=8).build(tokens=2, classes=3)
        >>> model.prefix_logits(model.states(torch.tensor([[0, 1]]), collect=("states", "cells"))).shape
        torch.Size([1, 3, 3])
        """
        wanted = {"states": trace.states, **({"cells": trace.cells} if self.layer.cell.has_memory else {})}
        if missing := [kind for kind, found in wanted.items() if not found]:
            got = f"a trace without {' and '.join(missing)}"
            raise ArgumentError(where="SequenceClassifier.prefix_logits", got=got, wanted=f"collect={tuple(wanted)}")
        batch, steps = trace.states[0].shape[:2]
        stacked = [torch.stack(parts).flatten(1, 2) for parts in wanted.values()]
        resting = resting_view(self)
        with torch.no_grad():
            state = stacked[0] if len(stacked) == 1 else (stacked[0], stacked[1])
            logits = resting._logits(resting._read_out(state, batch * steps))
        return logits.view(batch, steps, -1)

    def probabilities(
        self,
        words: Sequence[Word],
        *,
        batch: int = 1024,
        samples: int = 1,
        generator: torch.Generator | None = None,
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The probability of each class for each word, shape (words, classes), in eval mode.

        Args:
            words: texts, sequences of symbols, or sequences of token ids.
            batch: how many run at once.
            samples: how many passes are averaged, for transition "sample".
            generator: source of what transition "sample" draws.
        """
        self._check_samples(samples)
        encoded = Words.of(words, tokens=self._known_tokens, symbols=self.symbols, where="SequenceClassifier")
        found = np.zeros((len(encoded), self.classes))
        resting, device = resting_view(self), self.head.weight.device
        with torch.no_grad():
            for rows, ids, lengths in encoded.batches(batch):
                for copies in _portions(samples, max(1, batch // len(rows))):
                    inputs = torch.from_numpy(ids).to(device).repeat(copies, 1)
                    logits = resting(inputs, torch.from_numpy(lengths).repeat(copies), generator=generator)
                    passes = logits.double().softmax(1).unflatten(0, (copies, -1))
                    found[rows] += passes.sum(0).cpu().numpy()
        return found / samples

    def classify(
        self,
        words: Sequence[Word],
        *,
        batch: int = 1024,
        samples: int = 1,
        generator: torch.Generator | None = None,
    ) -> Ids:
        """The likeliest class of each word, in eval mode; arguments as for :meth:`probabilities`."""
        found = self.probabilities(words, batch=batch, samples=samples, generator=generator)
        likeliest: Ids = found.argmax(1)
        return likeliest

    def with_transition(self, transition: str, **settings: Any) -> SequenceClassifier:
        """A view on this model with other settings of its centroids: the same parameters, the model left as it is.

        ``with_transition("argmax")`` is the automaton that a soft model stands for.

        Args:
            transition: of the view.
            **settings: others of "temperature", "similarity", "noise".
        """
        view = view_of(self)
        view.retune(transition=transition, **settings)
        return view

    def retune(self, **settings: Any) -> None:
        """Change settings of the centroids of all layers, such as ``temperature=0.5``; ``config`` changes with them.

        Args:
            **settings: some of "temperature", "similarity", "transition", "noise".
        """
        self._retune_layer(settings)
        self.config = replace(self.config, **settings)

    @property
    def _start(self) -> int | None:
        return self.start_id if self.tokens is not None and self.config.start_token else None

    def _lay_out(self, inputs: Tensor, lengths: Tensor | None) -> Laid:
        sizes = {"tokens": self.tokens, "features": self.features}
        return lay_out(inputs, lengths, where="SequenceClassifier", start=self._start, **sizes)

    def _read_out(self, state: Tensor | tuple[Tensor, Tensor], batch: int) -> Tensor:
        readout = self.config.readout
        if readout == "u_end":
            assert self.embedding is not None
            output, _ = self.layer.plain_step(self.embedding.weight[self.end_id].expand(batch, -1), state)
            return output
        state, memory = state if isinstance(state, tuple) else (state, None)
        parts = {"h": (state,), "c": (memory,), "hc": (state, memory)}[readout]
        return torch.cat([part[-1] for part in parts if part is not None], dim=1)

    def _check_readout(self) -> None:
        config = self.config
        if config.readout == "u_end" and self.features is not None:
            raise ArgumentError(
                where="ClassifierConfig.readout",
                got='"u_end" for features',
                wanted="a readout that needs no end token",
                remedy=f'Give readout="{"hc" if self.layer.cell.has_memory else "h"}".',
            )
        if "c" in config.readout and not self.layer.cell.has_memory:
            raise ArgumentError(
                where="ClassifierConfig.readout",
                got=f'"{config.readout}" with cell="{config.cell}"',
                wanted="a cell with a memory c",
                remedy='Give readout="h", or cell="lstm".',
            )

    def _check_samples(self, samples: int) -> None:
        if type(samples) is not int or samples < 1:
            raise ArgumentError(where="SequenceClassifier samples", got=samples, wanted="a whole number of at least 1")
        if samples > 1 and self.config.transition != "sample":
            raise ArgumentError(
                where="SequenceClassifier samples",
                got=f'{samples} with transition="{self.config.transition}"',
                wanted='1: only transition "sample" draws in eval mode',
                remedy='model.with_transition("sample") gives a view that does.',
            )


def _portions(total: int, most: int) -> list[int]:
    """A number cut into parts of at most some size.

    >>> _portions(7, 3)
    [3, 3, 1]
    """
    return [min(most, total - begin) for begin in range(0, total, most)]
