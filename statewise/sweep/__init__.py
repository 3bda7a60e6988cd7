"""Many runs: replicas side by side on one device, processes, or a Ray cluster; and the search for capacities on top.

=======================================  =====================================================================
you want                                 use
=======================================  =====================================================================
networks of one shape side by side       :func:`train_replicas`
many trials, somewhere                   :class:`ReplicaExecutor`, :class:`ProcessExecutor`, :class:`RayExecutor`
the hardest task that a network solves   :func:`search_capacity` with a :class:`CapacitySearch`
good learning rates                      :func:`tune_rate`
=======================================  =====================================================================
"""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.sweep.bisection import Strategy
    from statewise.sweep.capacity import read_search, search_capacity
    from statewise.sweep.capacity_result import CapacityResult
    from statewise.sweep.capacity_search import CapacitySearch, Network, Tuning, networks_within
    from statewise.sweep.executors import Executor, ReplicaExecutor
    from statewise.sweep.folders import folder_name
    from statewise.sweep.network_capacity import NetworkCapacity
    from statewise.sweep.networks import network_of
    from statewise.sweep.pixels import PixelTask
    from statewise.sweep.processes import ProcessExecutor
    from statewise.sweep.ray_cluster import RayExecutor
    from statewise.sweep.replicas import train_replicas
    from statewise.sweep.trial import Failure, Outcome, Shape, Trial
    from statewise.sweep.tries import Try, wilson
    from statewise.sweep.tuning import RateSpace, Tuned, tune_rate

__all__ = [
    "CapacityResult",
    "CapacitySearch",
    "Executor",
    "Failure",
    "Network",
    "NetworkCapacity",
    "Outcome",
    "PixelTask",
    "ProcessExecutor",
    "RateSpace",
    "RayExecutor",
    "ReplicaExecutor",
    "Shape",
    "Strategy",
    "Trial",
    "Try",
    "Tuned",
    "Tuning",
    "folder_name",
    "network_of",
    "networks_within",
    "read_search",
    "search_capacity",
    "train_replicas",
    "tune_rate",
    "wilson",
]

lazy_imports(__name__)
