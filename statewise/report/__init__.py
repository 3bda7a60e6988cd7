"""Tables and plots of what was measured."""

from statewise.report.comparison import compare_with_published
from statewise.report.plots import plot_curves
from statewise.report.tables import Table

__all__ = ["Table", "compare_with_published", "plot_curves"]
