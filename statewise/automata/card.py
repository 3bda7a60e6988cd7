"""The faithfulness card: in one object, how far an extracted machine may be trusted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from statewise.automata.faithfulness import Faithfulness, as_it_is, share
from statewise.automata.words import all_words, longest_within, random_words

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
        soft_agreement: the share of them to which the network as it is gives the machine's class; None for a network
            that draws its states, of which a word has no one class.
        hard_agreement: the same for the network at argmax, in the network's own precision.
        ambiguity: the share of reachable steps, and of read-outs, whose result rounding could change.
        min_margin: the smallest lead of a step's target over the second best, before the temperature.
        used_states: how many states (centroids, or tuples of them) words reach.
        minimal_states: how many are left after minimisation.
        temperature: the network's own.
        certified_temperature: up to which the soft network provably equals the machine on all words; None if no proof
            is known for such a network.
        certified: whether the network as it is provably equals the machine, on words of every length.
        transition: how the network moves, the transition of its centroids.
    """

    words: int
    soft_agreement: float | None
    hard_agreement: float
    ambiguity: float
    min_margin: float
    used_states: int
    minimal_states: int
    temperature: float
    certified_temperature: float | None
    certified: bool
    transition: str

    def to_dict(self) -> dict[str, Any]:
        """All entries by name, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        proven = "unknown" if self.certified_temperature is None else f"{self.certified_temperature:.4g}"
        soft = "none, since states are drawn"
        if self.soft_agreement is not None:
            soft = f"{self.soft_agreement:.2%} of {self.words} words"
        rows = {
            "soft agreement": soft,
            "hard agreement": f"{self.hard_agreement:.2%} of {self.words} words",
            "ambiguous steps": f"{self.ambiguity:.2%}",
            "smallest margin": f"{self.min_margin:.4g}",
            "states": f"{self.used_states} used, {self.minimal_states} minimal",
            "temperature": f"{self.temperature:g}",
            "certified up to": f"{proven} ({self._verdict})",
        }
        return "\n".join(f"{name:16} {value}" for name, value in rows.items())

    @property
    def _verdict(self) -> str:
        if not self.certified:
            return "not the network as it is"
        mixture = self.certified_temperature is not None and self.temperature <= self.certified_temperature
        by = "" if mixture else ", which moves by argmax"
        return f"the network as it is{by}, at every length"


def faithfulness_card(extraction: Extraction) -> FaithfulnessCard:
    """The card of an extraction, from its own copy of the weights; a model that is trained on does not change it.

    Args:
        extraction: of a memory-less network. Where it was given words, the agreements are on them; else on all short
            words and some long random ones.
    """
    from statewise.automata.proof.certify import HOTTEST, certified_temperature, why_not_certifiable

    agreement = extraction.agreement or _agreement(extraction)
    network = extraction.network
    temperature, bound = max(layer.rule.temperature for layer in network.layers), None
    if not why_not_certifiable(extraction):
        bound = certified_temperature(extraction, hottest=max(HOTTEST, temperature))
    pairs = len(extraction.reachable) * (len(network.symbols) + 1) + (network.start is not None)
    return FaithfulnessCard(
        words=agreement.words,
        soft_agreement=None if network.samples else agreement.soft,
        hard_agreement=agreement.hard,
        ambiguity=len(extraction.ambiguous) / pairs,
        min_margin=extraction.min_margin,
        used_states=len(extraction.reachable),
        minimal_states=len(extraction.machine),
        temperature=temperature,
        certified_temperature=bound,
        certified=as_it_is(extraction, bound is not None and temperature <= bound),
        transition=network.layers[0].rule.transition,
    )


def _agreement(extraction: Extraction) -> Faithfulness:
    network, machine = extraction.network.to(extraction.network.dtype), extraction.machine
    symbols, shortest = network.symbols, 0 if network.start is not None else 1
    longest = max(shortest, longest_within(len(symbols), SHORT_WORDS, at_most=LONGEST))
    words = list(all_words(symbols, longest, min_length=shortest))
    words += random_words(symbols, RANDOM_WORDS, min_length=longest, max_length=LONGEST, seed=0)
    coded, expected = [machine.encode(word) for word in words], machine.classify(words)
    hard = share(network.classify(coded, hard=True).numpy(), expected)
    soft = None if network.samples else share(network.classify(coded).numpy(), expected)
    return Faithfulness(len(words), soft, hard)
