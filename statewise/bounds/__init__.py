"""Generalization bounds and certificates, which say how far a network can be trusted.

=============================  ==================================================================================
you want                       use
=============================  ==================================================================================
a proof about a trained net    :func:`certify`, which tries all that follows and keeps the best
a proof about an automaton     :func:`certify_extraction`, :func:`certify_automaton`
weights that are cheap to say  :func:`quantise_`, :func:`describe`; :class:`~statewise.train.RoundedWeights`
inputs that have a bound       :class:`BoundedInputs`
a network with random weights  :class:`RandomisedNetwork`, :func:`certify_gibbs`
to compare bounds on paper     :class:`ElmanConstants`, :class:`NetworkClass`, :data:`BOUNDS`
=============================  ==================================================================================

Only formulas that are proved are called guarantees: where the proof of Chen, Li & Zhao 2019 has a gap, the formula here
is the repaired one, and says so.
"""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.bounds.automaton import (
        AutomatonCertificate,
        bound_automaton,
        certify_automaton,
        certify_extraction,
        disagreement,
    )
    from statewise.bounds.bounded_inputs import BoundedInputs
    from statewise.bounds.catalogue import BOUNDS, bound_named
    from statewise.bounds.certificate import Certificate, Claim, MatrixReport, WhatIf
    from statewise.bounds.certify import certify
    from statewise.bounds.conv import ConvClass
    from statewise.bounds.description import Description, describe
    from statewise.bounds.elman import ElmanClass
    from statewise.bounds.elman_constants import ElmanConstants
    from statewise.bounds.family import Bound
    from statewise.bounds.gates import GateRows
    from statewise.bounds.grid import Ledger, round_up
    from statewise.bounds.gru import GRUClass
    from statewise.bounds.kl import binary_kl, kl_inverse
    from statewise.bounds.layer_class import Start
    from statewise.bounds.levels import Quantised
    from statewise.bounds.logs import log_geometric, log_geometric_derivative
    from statewise.bounds.lstm import LSTMClass
    from statewise.bounds.machine_count import (
        MachineDescription,
        count_machines,
        count_structures,
        describe_machine,
        machine_nats,
    )
    from statewise.bounds.margins import margin_risk, margins, ramp, ramp_risk
    from statewise.bounds.measured_class import network_class
    from statewise.bounds.measured_gates import MeasuredGates, gate_levels, measured_gates
    from statewise.bounds.methods import METHODS
    from statewise.bounds.mgu import MGUClass
    from statewise.bounds.network_class import EmbeddingClass, NetworkClass
    from statewise.bounds.norms import spectral_norm
    from statewise.bounds.occam import low_rank_nats, occam_hoeffding, occam_kl
    from statewise.bounds.pac_bayes_kl import GibbsCertificate, certify_gibbs, quadratic_objective
    from statewise.bounds.penalties import Penalty
    from statewise.bounds.penalty import smooth_cover_nats
    from statewise.bounds.profile import Block, Profile
    from statewise.bounds.quantised import occam_certificate, quantise, quantise_, rounded
    from statewise.bounds.randomised import RandomisedNetwork
    from statewise.bounds.search import BestMargin, SortedMargins, best_over_margins
    from statewise.bounds.subject import Subject
    from statewise.bounds.table1 import Order, printed_complexity, table_1

__all__ = [
    "BOUNDS",
    "METHODS",
    "AutomatonCertificate",
    "BestMargin",
    "Block",
    "Bound",
    "BoundedInputs",
    "Certificate",
    "Claim",
    "ConvClass",
    "Description",
    "ElmanClass",
    "ElmanConstants",
    "EmbeddingClass",
    "GRUClass",
    "GateRows",
    "GibbsCertificate",
    "LSTMClass",
    "Ledger",
    "MGUClass",
    "MachineDescription",
    "MatrixReport",
    "MeasuredGates",
    "NetworkClass",
    "Order",
    "Penalty",
    "Profile",
    "Quantised",
    "RandomisedNetwork",
    "SortedMargins",
    "Start",
    "Subject",
    "WhatIf",
    "best_over_margins",
    "binary_kl",
    "bound_automaton",
    "bound_named",
    "certify",
    "certify_automaton",
    "certify_extraction",
    "certify_gibbs",
    "count_machines",
    "count_structures",
    "describe",
    "describe_machine",
    "disagreement",
    "gate_levels",
    "kl_inverse",
    "log_geometric",
    "log_geometric_derivative",
    "low_rank_nats",
    "machine_nats",
    "margin_risk",
    "margins",
    "measured_gates",
    "network_class",
    "occam_certificate",
    "occam_hoeffding",
    "occam_kl",
    "printed_complexity",
    "quadratic_objective",
    "quantise",
    "quantise_",
    "ramp",
    "ramp_risk",
    "round_up",
    "rounded",
    "smooth_cover_nats",
    "spectral_norm",
    "table_1",
]

lazy_imports(__name__)
