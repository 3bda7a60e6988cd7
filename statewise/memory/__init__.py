"""How much a recurrent network can remember: separation ranks, exactly.

The start-end separation rank of a function of a sequence is the least number of products (a function of the first half)
x (a function of the second half) that add up to it (Ziv 2019). Rank 1 means that the halves do not interact.

=============================================  ===============================================================
you want                                       use
=============================================  ===============================================================
the rank of an architecture, with a proof      :func:`generic_rank`, :func:`shallow_rank`, :func:`sampled_rank`
the rank of this circuit                       :func:`network_rank`
what any network keeps, in singular values     :func:`separation_spectrum`, :func:`empirical_profile`
where a network forgets                        :func:`generic_profile`, :func:`network_profile`
bounds                                         :func:`theorem1`, :func:`state_bound`, :func:`end_cap`
a table of many ranks                          :func:`rank_table`
depth and width for a budget                   :func:`advise`
the tensor networks of a circuit               :func:`circuit_network`, :func:`network_svg`, :func:`figure_svg`
=============================================  ===============================================================
"""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.memory.advise import advise, rank_text
    from statewise.memory.assignments import motivating_weights, proof_matrix, proof_weights
    from statewise.memory.budget import orthogonal_parameters, width_within
    from statewise.memory.certificate import GenericRank
    from statewise.memory.circuit import Circuit, SingularStartWarning, drawn_circuit
    from statewise.memory.counts import (
        conjecture,
        end_cap,
        interactions,
        multiset,
        repaired_conjecture,
        start_cap,
        state_bound,
        theorem1,
        upper_bound,
    )
    from statewise.memory.drawing_figures import figure_svg
    from statewise.memory.drawing_svg import network_svg
    from statewise.memory.field import Field
    from statewise.memory.generic import generic_rank
    from statewise.memory.grid_tensor import grid_tensor, matricize
    from statewise.memory.profile import (
        MemoryProfile,
        empirical_profile,
        generic_profile,
        network_profile,
        spectral_profile,
    )
    from statewise.memory.rank_table import rank_table, read_rank_table
    from statewise.memory.rank_table_cases import shapes_of
    from statewise.memory.rank_table_rows import RankRow, RankTable
    from statewise.memory.row_space import shallow_rank
    from statewise.memory.sampled import sampled_rank
    from statewise.memory.scaled import Scaled, scaled_scores
    from statewise.memory.separation import NetworkRank, equivalent_shallow_width, exact_table, network_rank
    from statewise.memory.shallow_spectrum import shallow_spectrum
    from statewise.memory.sharper_bound import proved_bound, sharper_state_bound
    from statewise.memory.spectrum import RoundedRankWarning, SeparationSpectrum, separation_spectrum
    from statewise.memory.tensor_network import TensorNetwork
    from statewise.memory.tensor_network_build import circuit_network, product_network, state_network
    from statewise.memory.tensor_network_contract import circuit_tensors, contract, einsum_text, not_cloned, operands
    from statewise.memory.tensor_network_counts import network_counts, product_form
    from statewise.memory.tensor_network_dot import network_dot
    from statewise.memory.tensor_train import TensorTrain, tensor_train

__all__ = [
    "Circuit",
    "Field",
    "GenericRank",
    "MemoryProfile",
    "NetworkRank",
    "RankRow",
    "RankTable",
    "RoundedRankWarning",
    "Scaled",
    "SeparationSpectrum",
    "SingularStartWarning",
    "TensorNetwork",
    "TensorTrain",
    "advise",
    "circuit_network",
    "circuit_tensors",
    "conjecture",
    "contract",
    "drawn_circuit",
    "einsum_text",
    "empirical_profile",
    "end_cap",
    "equivalent_shallow_width",
    "exact_table",
    "figure_svg",
    "generic_profile",
    "generic_rank",
    "grid_tensor",
    "interactions",
    "matricize",
    "motivating_weights",
    "multiset",
    "network_counts",
    "network_dot",
    "network_profile",
    "network_rank",
    "network_svg",
    "not_cloned",
    "operands",
    "orthogonal_parameters",
    "product_form",
    "product_network",
    "proof_matrix",
    "proof_weights",
    "proved_bound",
    "rank_table",
    "rank_text",
    "read_rank_table",
    "repaired_conjecture",
    "sampled_rank",
    "scaled_scores",
    "separation_spectrum",
    "shallow_rank",
    "shallow_spectrum",
    "shapes_of",
    "sharper_state_bound",
    "spectral_profile",
    "start_cap",
    "state_bound",
    "state_network",
    "tensor_train",
    "theorem1",
    "upper_bound",
    "width_within",
]

lazy_imports(__name__)
