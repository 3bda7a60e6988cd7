"""The full-capacity update: gradient descent that multiplies an orthogonal weight by an orthogonal matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.weights.gates import split_gates
from statewise.weights.orthogonality import nearest_orthogonal, require_orthogonal
from statewise.weights.skew import identity_plus_inverse


def stiefel_step(
    weight: Float[Tensor, "*gates rows columns"],
    gradient: Float[Tensor, "*gates rows columns"],
    *,
    lr: float | Float[Tensor, "*#gates 1 1"],
) -> Float[Tensor, "*gates rows columns"]:
    """One multiplicative step along the Stiefel manifold, in float64.

    ``W' = (I + lr/2 A)^-1 (I - lr/2 A) W``, ``A = G W^T - W G^T`` (Wisdom et al. 2016, real case). The slope of the
    loss at ``lr = 0`` is ``-||A||_F^2 / 2``. Ziv 2019 prints ``A = G^T W - W^T G`` for the same product, which does
    not descend.

    Args:
        weight: columns orthonormal, ``rows >= columns``.
        gradient: of the loss, entry by entry.
        lr: step size; a tensor has one for each gate.

    >>> turned = stiefel_step(torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 0.0]]), lr=0.1)
    >>> bool(turned[0, 1] < 0) and torch.allclose(turned @ turned.T, torch.eye(2))
    True
    """
    point, slope = weight.double(), gradient.double()
    generator_matrix = slope @ point.mT - point @ slope.mT
    half = lr / 2 * generator_matrix
    eye = torch.eye(half.shape[-1], dtype=half.dtype, device=half.device)
    if half.is_cuda:  # in a form that a CUDA graph can hold
        return ((2 * identity_plus_inverse(half) - eye) @ point).to(weight.dtype)
    # The matrix is never singular: its eigenvalues have the real part 1. So nothing waits to hear whether it was.
    moved: Tensor = torch.linalg.solve_ex(eye + half, point - half @ point)[0]
    return moved.to(weight.dtype)


class StiefelSGD(Optimizer):
    """Optimiser for orthogonal weights: every step is a multiplication by an orthogonal matrix.

    ``W <- (I + lr/2 A)^-1 (I - lr/2 A) W``, ``A = G W^T - W G^T``, and with ``rms``
    ``G = g / sqrt(v + eps)``, ``v <- decay v + (1 - decay) g^2``.

    Wisdom et al. 2016 (full-capacity unitary RNN, here real); Ziv 2019. It reaches all of W's connected component, but
    rounding adds up step after step: at size 116, ``||W W^T - I||_F`` is near 1e-3 after 2000 steps in float32
    arithmetic; here, with float64 arithmetic on a float32 weight, near 2e-5. ``reorthogonalize_every`` puts W back;
    :class:`ScaledCayley` needs no such thing.

    Shapes: every parameter ``(gates * rows, columns)``, ``rows >= columns``, each gate with orthonormal columns.

    Args:
        params: orthogonal weights, or parameter groups of them.
        lr: step size.
        rms: scale the gradient entry by entry by its running root mean square before A is formed.
        decay: of the running mean square.
        eps: added to the mean square, inside the root.
        initial_accumulator: value at which the mean square starts.
        reorthogonalize_every: project W to the nearest orthogonal matrix each so many steps; 0 never.
        gates: how many matrices each parameter stacks.

    >>> from statewise.weights import haar_orthogonal_
    >>> weight = torch.nn.Parameter(haar_orthogonal_(torch.empty(4, 4), generator=torch.Generator().manual_seed(0)))
    >>> optimizer = StiefelSGD([weight], lr=0.1)
    >>> before = weight.sum().item()
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> weight.sum().item() < before
    True
    """

    def __init__(
        self,
        params: ParamsT,
        *,
        lr: float = 1e-4,
        rms: bool = False,
        decay: float = 0.9,
        eps: float = 1e-10,
        initial_accumulator: float = 1.0,
        reorthogonalize_every: int = 0,
        gates: int = 1,
    ) -> None:
        defaults: dict[str, Any] = {
            "lr": lr,
            "rms": rms,
            "decay": decay,
            "eps": eps,
            "initial_accumulator": initial_accumulator,
            "reorthogonalize_every": reorthogonalize_every,
            "gates": gates,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add weights with settings of their own; raises unless every one is orthogonal."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            _validate_settings(group)
            for index, parameter in enumerate(group["params"]):
                _validate_weight(parameter, gates=group["gates"], where=f"StiefelSGD params[{index}]")
        except Exception:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move every weight that has a gradient; returns the closure's loss, if given one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, group)
        return loss

    def _move(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        state = self.state[parameter]
        state["step"] = state.get("step", 0) + 1
        gradient = parameter.grad.double()
        if group["rms"]:
            gradient = self._scaled(gradient, parameter, group)
        gates = group["gates"]
        moved = stiefel_step(
            split_gates(parameter.double(), gates=gates), split_gates(gradient, gates=gates), lr=group["lr"]
        )
        every = group["reorthogonalize_every"]
        if every and state["step"] % every == 0:
            moved = nearest_orthogonal(moved)
        parameter.copy_(moved.flatten(0, 1))

    def _scaled(self, gradient: Tensor, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.state[parameter]
        if "square_avg" not in state:
            # Kept in the weight's dtype, to which load_state_dict casts: a resumed run then repeats bit for bit.
            state["square_avg"] = torch.full_like(parameter, group["initial_accumulator"])
        average: Tensor = state["square_avg"]
        average.mul_(group["decay"]).add_((1 - group["decay"]) * gradient.square())
        root: Tensor = (average.double() + group["eps"]).sqrt()
        return gradient / root


def _validate_settings(group: dict[str, Any]) -> None:
    wanted: dict[str, tuple[bool, str]] = {
        "lr": (group["lr"] >= 0, "a number >= 0"),
        "decay": (0 <= group["decay"] < 1, "a number in [0, 1)"),
        "eps": (group["eps"] >= 0, "a number >= 0"),
        "initial_accumulator": (group["initial_accumulator"] >= 0, "a number >= 0"),
        "reorthogonalize_every": (group["reorthogonalize_every"] >= 0, "a number of steps, 0 for never"),
        "gates": (group["gates"] >= 1, "an integer >= 1"),
    }
    for name, (holds, domain) in wanted.items():
        if not holds:
            raise ArgumentError(where=f"StiefelSGD.{name}", got=group[name], wanted=domain)


def _validate_weight(parameter: Tensor, *, gates: int, where: str) -> None:
    if not parameter.is_floating_point():
        raise DtypeError(where=where, got=str(parameter.dtype), wanted="a real floating-point weight")
    if parameter.ndim != 2:
        raise ShapeError(where=where, got=f"shape {tuple(parameter.shape)}", wanted="a matrix")
    blocks = split_gates(parameter.detach(), gates=gates, where=where)
    if blocks.shape[-2] < blocks.shape[-1]:
        raise ShapeError(
            where=where,
            got=f"shape {tuple(parameter.shape)} in {gates} gates",
            wanted="at least as many rows as columns in each gate",
            remedy="Store the transpose, whose columns can be orthonormal.",
        )
    require_orthogonal(blocks, where=where)
