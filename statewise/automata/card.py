"""The faithfulness card: in one object, how far an extracted machine may be trusted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from statewise.automata.faithfulness import Faithfulness, share
from statewise.automata.words import all_words, number_of_words, random_words

if TYPE_CHECKING:
    from statewise.automata.extract import Extraction

SHORT_WORDS = 1000
RANDOM_WORDS = 200
LONGEST = 50


@dataclass(frozen=True, kw_only=True)
class FaithfulnessCard:
    """What goes with every extracted machine.

    Attributes:
        words: on how many words the agreements were measured.
        soft_agreement: the share of them to which the network as it is gives the machine's class.
        hard_agreement: the same for the network at argmax, in the network's own precision.
        ambiguity: the share of reachable steps, and of read-outs, whose result rounding could change.
        min_margin: the smallest lead of a step's target over the second best, before the temperature.
        used_states: how many states (centroids, or tuples of them) words reach.
        minimal_states: how many are left after minimisation.
        temperature: the network's own.
        certified_temperature: up to which the soft network provably equals the machine on all words; None if no proof
            is known for such a network.
    """

    words: int
    soft_agreement: float
    hard_agreement: float
    ambiguity: float
    min_margin: float
    used_states: int
    minimal_states: int
    temperature: float
    certified_temperature: float | None

    @property
    def certified(self) -> bool:
        """Whether the network as it is provably equals the machine, on words of every length."""
        return self.certified_temperature is not None and self.temperature <= self.certified_temperature

    def to_dict(self) -> dict[str, Any]:
        """All entries by name, for JSON."""
        return {**asdict(self), "certified": self.certified}

    def __str__(self) -> str:
        proven = "unknown" if self.certified_temperature is None else f"{self.certified_temperature:.4g}"
        verdict = "the network as it is, at every length" if self.certified else "not the network as it is"
        rows = {
            "soft agreement": f"{self.soft_agreement:.2%} of {self.words} words",
            "hard agreement": f"{self.hard_agreement:.2%} of {self.words} words",
            "ambiguous steps": f"{self.ambiguity:.2%}",
            "smallest margin": f"{self.min_margin:.4g}",
            "states": f"{self.used_states} used, {self.minimal_states} minimal",
            "temperature": f"{self.temperature:g}",
            "certified up to": f"{proven} ({verdict})",
        }
        return "\n".join(f"{name:16} {value}" for name, value in rows.items())


def faithfulness_card(extraction: Extraction) -> FaithfulnessCard:
    """The card of an extraction, from its own copy of the weights; a model that is trained on does not change it.

    Args:
        extraction: of a memory-less network. Where it was given words, the agreements are on them; else on all short
            words and some long random ones.
    """
    from statewise.automata.certify import certified_temperature, why_not_certifiable

    agreement = extraction.agreement or _agreement(extraction)
    pairs = len(extraction.reachable) * (len(extraction.network.symbols) + 1) + (extraction.network.start is not None)
    return FaithfulnessCard(
        words=agreement.words,
        soft_agreement=agreement.soft,
        hard_agreement=agreement.hard,
        ambiguity=len(extraction.ambiguous) / pairs,
        min_margin=extraction.min_margin,
        used_states=len(extraction.reachable),
        minimal_states=len(extraction.machine),
        temperature=max(layer.rule.temperature for layer in extraction.network.layers),
        certified_temperature=None if why_not_certifiable(extraction) else certified_temperature(extraction),
    )


def _agreement(extraction: Extraction) -> Faithfulness:
    network, machine = extraction.network.to(extraction.network.dtype), extraction.machine
    symbols, shortest = network.symbols, 0 if network.start is not None else 1
    longest = shortest
    while longest < LONGEST and number_of_words(len(symbols), longest + 1) <= SHORT_WORDS:
        longest += 1
    words = list(all_words(symbols, longest, min_length=shortest))
    words += random_words(symbols, RANDOM_WORDS, min_length=longest, max_length=LONGEST, seed=0)
    coded, expected = [machine.encode(word) for word in words], machine.classify(words)
    soft, hard = (network.classify(coded, hard=hard).numpy() for hard in (False, True))
    return Faithfulness(len(words), share(soft, expected), share(hard, expected))
