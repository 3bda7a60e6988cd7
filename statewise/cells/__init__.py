"""The transition functions, one file each."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.cells.base import Cell, Product, Transition
    from statewise.cells.gru import GRUCell, ResetBeforeGRUCell
    from statewise.cells.lstm import LSTMCell
    from statewise.cells.mgu import MGUCell
    from statewise.cells.multiplicative import MultiplicativeRNNCell
    from statewise.cells.peephole import PeepholeLSTMCell
    from statewise.cells.rac import RACCell
    from statewise.cells.rnn import NONLINEARITIES, RNNCell, modrelu

__all__ = [
    "NONLINEARITIES",
    "Cell",
    "GRUCell",
    "LSTMCell",
    "MGUCell",
    "MultiplicativeRNNCell",
    "PeepholeLSTMCell",
    "Product",
    "RACCell",
    "RNNCell",
    "ResetBeforeGRUCell",
    "Transition",
    "modrelu",
]

lazy_imports(__name__)
