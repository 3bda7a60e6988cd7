"""Trials on a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from statewise.errors import ArgumentError, MissingExtraError
from statewise.sweep.executors import Executor
from statewise.sweep.heap import keep_freed_memory
from statewise.sweep.replicas import train_replicas
from statewise.sweep.work import Report, Trainer, Unit, in_words, perform

#: Seconds that tasks get to leave their runs before they are ended by force.
_GRACE = 30.0


class RayExecutor(Executor):
    """Tasks on a Ray cluster, each of which trains one group of trials.

    An accelerator can be shared: with ``gpus=0.25`` four groups are trained on each at a time. The folder of the runs
    must be one that all machines of the cluster share, or what a machine has begun cannot go on on another.

    If this process is connected to a cluster already, that one is used, and stays connected.

    Args:
        folder: where the runs go.
        address: "auto" for the cluster that this machine belongs to, an address such as "ray://head:10001" or
            "10.0.0.1:6379", or "local" to start one here.
        device: where a task computes; "cuda" is the accelerator that Ray gives it.
        gpus: accelerators of a task; None for 0 on a CPU, 1 on an accelerator.
        cpus: cores of a task.
        replicas: how many trials a task trains side by side at most.
        train: what trains them, a function of a module that the machines have.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        address: str = "auto",
        device: torch.device | str = "cpu",
        gpus: float | None = None,
        cpus: float = 1.0,
        replicas: int = 16,
        train: Trainer = train_replicas,
    ) -> None:
        super().__init__(folder, device=device, replicas=replicas, train=train)
        accelerated = self.device.type != "cpu"
        gpus = float(accelerated) if gpus is None else gpus
        if gpus < 0 or (accelerated and gpus == 0):
            wanted = "a number above 0, such as 0.25" if accelerated else "a number >= 0"
            raise ArgumentError(where="RayExecutor.gpus", got=gpus, wanted=wanted)
        if gpus > 1 and gpus != int(gpus):
            raise ArgumentError(where="RayExecutor.gpus", got=gpus, wanted="at most 1, or a whole number")
        if cpus < 0:
            raise ArgumentError(where="RayExecutor.cpus", got=cpus, wanted="a number >= 0")
        self._ray = _import_ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address)
        self._warn_if_too_small({"GPU": gpus, "CPU": cpus})
        # Ray would repeat a task whose worker dies; here that is counted, and done trial by trial.
        asked = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": 0}
        self._remote = self._ray.remote(**asked)(_perform)
        self._running: dict[Any, Unit] = {}

    def close(self) -> None:
        """End the tasks, whose runs go on from what they wrote last, and leave the cluster if this joined it."""
        super().close()
        running, self._running = list(self._running), {}
        if not self._ray.is_initialized():
            return
        for task in running:
            with contextlib.suppress(Exception):  # a task that has just ended, or whose machine is gone
                self._ray.cancel(task)  # raises KeyboardInterrupt there
        if running:
            _, stubborn = self._ray.wait(running, num_returns=len(running), timeout=_GRACE)
            for task in stubborn:
                with contextlib.suppress(Exception):
                    self._ray.cancel(task, force=True)
        if self._ours:
            self._ray.shutdown()

    def _step(self, waiting: deque[Unit]) -> Sequence[tuple[Unit, Report]]:
        # All at once: the cluster has a queue of its own, and may grow if it sees a long one.
        while waiting:
            task = self._remote.remote(waiting[0], self.train, str(self.device), self.replicas)
            self._running[task] = waiting.popleft()
        ready, _ = self._ray.wait(list(self._running), num_returns=1)
        return [(self._running.pop(task), self._heard(task)) for task in ready]

    def _heard(self, task: Any) -> Report:
        """What a task says of its unit; if it died instead, that."""
        from ray.exceptions import RayError

        try:
            report: Report = self._ray.get(task)
        except RayError as error:
            return Report(None, _said(error), 0.0)
        return report

    def _connect(self, address: str) -> None:
        try:
            dashboard = False if address == "local" else None
            self._ray.init(
                address=address, include_dashboard=dashboard, log_to_driver=False, logging_level=logging.ERROR
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ArgumentError(
                where="--ray",
                got=f"{address} ({in_words(error)})",
                wanted="the address of a Ray cluster that runs",
                remedy="Start one (ray start --head), or use 'local'.",
            ) from error

    def _warn_if_too_small(self, asked: Mapping[str, float]) -> None:
        # No error: a cluster may grow when it sees what is asked for.
        there = self._ray.cluster_resources()
        short = [f"{there.get(name, 0):g} {name}" for name, count in asked.items() if there.get(name, 0.0) < count]
        if short:
            wanted = ", ".join(f"{count:g} {name}" for name, count in asked.items())
            text = (
                f"The Ray cluster has {' and '.join(short)}, and a task wants {wanted}: it waits until there is more."
            )
            warnings.warn(text, stacklevel=3)

    def _cut(self, trials: int) -> int:
        return self.replicas


def _perform(unit: Unit, train: Trainer, device: str, replicas: int) -> Report:
    keep_freed_memory()
    return perform(unit, train=train, device=torch.device(device), replicas=replicas)


def _said(error: Exception) -> str:
    r"""What Ray says of a task that came to nothing, without colours and without the traceback of its own machinery.

    >>> _said(
    ...     RuntimeError(
    ...         "\x1b[36mray::_perform()\x1b[39m (pid=7)\n  File ...\nModuleNotFoundError: No module named 'a'"
    ...     )
    ... )
    "RuntimeError: ModuleNotFoundError: No module named 'a'"
    """
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
    traced = any(line.startswith("File ") for line in lines)
    said = lines[-1:] if traced else lines
    return " ".join([f"{type(error).__name__}:", *said]) if said else type(error).__name__


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError.of("RayExecutor", package="ray", extra="sweep") from error
    return ray
