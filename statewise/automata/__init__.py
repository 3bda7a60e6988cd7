"""Moore machines and their languages, and the machine that a network computes."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.automata.black_box import Agreement, CounterExample, agreement
    from statewise.automata.card import FaithfulnessCard
    from statewise.automata.compare import equivalent, witness
    from statewise.automata.compile import compile_machine
    from statewise.automata.converters import from_aalpy, from_automata_lib, to_aalpy, to_automata_lib
    from statewise.automata.counter_machine import CounterMachine, Move, counter_machine
    from statewise.automata.counters import Counters, depth, find_counters
    from statewise.automata.counting import ApproximateExtractionWarning, Counting, count
    from statewise.automata.counts import count_words, words_of
    from statewise.automata.dot import from_dot, to_dot
    from statewise.automata.drawing.draw import describe, to_svg
    from statewise.automata.extract import Extraction, extract
    from statewise.automata.faithfulness import Faithfulness, UnfaithfulMachineWarning
    from statewise.automata.formats import from_json, load_machine, save_machine, to_json
    from statewise.automata.lstar import Learned, learn_by_lstar
    from statewise.automata.merge import Merged, merge_centroids, repair_set
    from statewise.automata.moore import MooreMachine
    from statewise.automata.operations import (
        complement,
        difference,
        intersection,
        over,
        product,
        symmetric_difference,
        union,
    )
    from statewise.automata.probabilistic import NearestMachine, ProbabilisticMachine
    from statewise.automata.proof.certificate import Assumption, Certificate, left_side
    from statewise.automata.proof.certify import certified_temperature, certify
    from statewise.automata.prototypes import (
        PixelPrototypes,
        WordPrototypes,
        image_maps,
        pixel_prototypes,
        word_prototypes,
    )
    from statewise.automata.questions import cardinality, is_empty, is_finite, is_subset, shortest_word
    from statewise.automata.rational import (
        concatenation,
        left_quotient,
        prefixes,
        reversal,
        right_quotient,
        star,
        suffixes,
    )
    from statewise.automata.reading import Reading, read
    from statewise.automata.regex import from_regex
    from statewise.automata.rows import from_table
    from statewise.automata.text_table import to_table
    from statewise.automata.usage import Drift, Usage, drift, usage
    from statewise.automata.verify import Proof, Verification, verify
    from statewise.automata.words import all_words, random_words

__all__ = [
    "Agreement",
    "ApproximateExtractionWarning",
    "Assumption",
    "Certificate",
    "CounterExample",
    "CounterMachine",
    "Counters",
    "Counting",
    "Drift",
    "Extraction",
    "Faithfulness",
    "FaithfulnessCard",
    "Learned",
    "Merged",
    "MooreMachine",
    "Move",
    "NearestMachine",
    "PixelPrototypes",
    "ProbabilisticMachine",
    "Proof",
    "Reading",
    "UnfaithfulMachineWarning",
    "Usage",
    "Verification",
    "WordPrototypes",
    "agreement",
    "all_words",
    "cardinality",
    "certified_temperature",
    "certify",
    "compile_machine",
    "complement",
    "concatenation",
    "count",
    "count_words",
    "counter_machine",
    "depth",
    "describe",
    "difference",
    "drift",
    "equivalent",
    "extract",
    "find_counters",
    "from_aalpy",
    "from_automata_lib",
    "from_dot",
    "from_json",
    "from_regex",
    "from_table",
    "image_maps",
    "intersection",
    "is_empty",
    "is_finite",
    "is_subset",
    "learn_by_lstar",
    "left_quotient",
    "left_side",
    "load_machine",
    "merge_centroids",
    "over",
    "pixel_prototypes",
    "prefixes",
    "product",
    "random_words",
    "read",
    "repair_set",
    "reversal",
    "right_quotient",
    "save_machine",
    "shortest_word",
    "star",
    "suffixes",
    "symmetric_difference",
    "to_aalpy",
    "to_automata_lib",
    "to_dot",
    "to_json",
    "to_svg",
    "to_table",
    "union",
    "usage",
    "verify",
    "witness",
    "word_prototypes",
    "words_of",
]

lazy_imports(__name__)
