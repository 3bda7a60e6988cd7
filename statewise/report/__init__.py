"""Tables and plots of what was measured."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.report.automata_png import draw_machine, save_drawing
    from statewise.report.comparison import compare_with_published
    from statewise.report.figures_mixup import (
        Boundary,
        plot_against_rho,
        plot_boundaries,
        plot_reliability,
        plot_singular_values,
    )
    from statewise.report.figures_states import (
        plot_centroids,
        plot_error_curves,
        plot_image_maps,
        plot_pixel_prototypes,
        plot_probabilities,
        plot_ranked,
        plot_states,
    )
    from statewise.report.plots import plot_curves
    from statewise.report.run_page import Reported, report_runs
    from statewise.report.tables import Table

__all__ = [
    "Boundary",
    "Reported",
    "Table",
    "compare_with_published",
    "draw_machine",
    "plot_against_rho",
    "plot_boundaries",
    "plot_centroids",
    "plot_curves",
    "plot_error_curves",
    "plot_image_maps",
    "plot_pixel_prototypes",
    "plot_probabilities",
    "plot_ranked",
    "plot_reliability",
    "plot_singular_values",
    "plot_states",
    "report_runs",
    "save_drawing",
]

lazy_imports(__name__)
