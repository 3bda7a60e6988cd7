"""Which regularizer helps on a person's own data, and by how much: a line-up of candidates, halved rung by rung.

======================================  ============================================================
you want                                use
======================================  ============================================================
to know what a file is                  :func:`recognise`
a whole comparison                      :func:`compare_on` with an :class:`Asked`
to go on with one                       :func:`go_on`
to know who can take part               :func:`registry`, :func:`line_up`
only the statistics                     :func:`score_interval`, :func:`difference_interval`,
                                        :func:`exchange_test`, :func:`holm`
======================================  ============================================================
"""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.lineup.adaptor import Adaptor, Metric, Tested, Told, Trained
    from statewise.lineup.candidates import Candidate, LineUp, line_up, registry
    from statewise.lineup.comparison import Comparison, compare_on, go_on
    from statewise.lineup.exchange import exchange_test, holm
    from statewise.lineup.halving import Standing, rungs, survivors
    from statewise.lineup.intervals import Interval, difference_interval, score_interval, sequences_needed
    from statewise.lineup.recognise import Recognised, recognise
    from statewise.lineup.state import Asked
    from statewise.lineup.verdict import Line

__all__ = [
    "Adaptor",
    "Asked",
    "Candidate",
    "Comparison",
    "Interval",
    "Line",
    "LineUp",
    "Metric",
    "Recognised",
    "Standing",
    "Tested",
    "Told",
    "Trained",
    "compare_on",
    "difference_interval",
    "exchange_test",
    "go_on",
    "holm",
    "line_up",
    "recognise",
    "registry",
    "rungs",
    "score_interval",
    "sequences_needed",
    "survivors",
]

lazy_imports(__name__)
