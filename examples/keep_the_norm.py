"""What becomes of a state and of its gradient over 500 steps, with an orthogonal recurrent matrix and without one?

A state of length 1 is carried through steps without input. ``OrthogonalRNN`` keeps its length, and that of the gradient
on the way back, because its recurrent matrix is orthogonal and its activation is the identity until it is trained. The
same is printed for ``RNN`` with tanh, where 0 means less than float32 can hold. Then both are trained for a moment, to
see that the matrix stays orthogonal under any optimiser: it is a function of free parameters (Helfrich et al. 2018).

Run it with ``python examples/keep_the_norm.py``; it takes seconds on a CPU.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import statewise
from statewise.weights import orthogonality_error

INPUTS, HIDDEN = 4, 64
LENGTHS = (1, 10, 50, 100, 250, 500)


def norms(layer: statewise.RNN, steps: int, *, generator: torch.Generator) -> tuple[float, float]:
    """Length of the state after some steps without input, and of the gradient that reaches the first state."""
    start = nn.functional.normalize(torch.randn(1, 1, HIDDEN, generator=generator), dim=2).requires_grad_()
    direction = nn.functional.normalize(torch.randn(1, 1, HIDDEN, generator=generator), dim=2)
    _, final = layer(torch.zeros(steps, 1, INPUTS), start)
    (gradient,) = torch.autograd.grad((final * direction).sum(), start)
    # In float64, because the squares of tiny entries would be rounded to zero.
    return final.double().norm().item(), gradient.double().norm().item()


def remember_the_first_input(layer: statewise.RNN, *, generator: torch.Generator) -> None:
    """Train for a few steps to give the first input back at the end of a sequence."""
    head = nn.Linear(HIDDEN, INPUTS)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(30):
        x: Tensor = torch.randn(50, 16, INPUTS, generator=generator)
        output, _ = layer(x, torch.zeros(1, 16, HIDDEN))
        loss = nn.functional.mse_loss(head(output[-1]), x[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    """Print the lengths, then the distance from orthogonality before and after training."""
    torch.set_num_threads(1)  # for matrices this small more threads only wait for each other
    torch.manual_seed(0)
    layers: dict[str, statewise.RNN] = {
        "OrthogonalRNN": statewise.OrthogonalRNN(INPUTS, HIDDEN),
        "RNN, tanh": statewise.RNN(INPUTS, HIDDEN, bias=False),
    }
    print(f"{'layer':<16}{'steps':>8}{'length of the state':>24}{'length of the gradient':>26}")
    for name, layer in layers.items():
        for steps in LENGTHS:
            state, gradient = norms(layer, steps, generator=torch.Generator().manual_seed(steps))
            print(f"{name:<16}{steps:>8}{state:>24.3g}{gradient:>26.3g}")
    print()
    print(f"{'layer':<16}{'distance from orthogonality: before training':>48}{'after':>12}")
    for name, layer in layers.items():
        before = orthogonality_error(layer.weight_hh_l0.detach()).item()
        remember_the_first_input(layer, generator=torch.Generator().manual_seed(1))
        after = orthogonality_error(layer.weight_hh_l0.detach()).item()
        print(f"{name:<16}{before:>48.2g}{after:>12.2g}")


if __name__ == "__main__":
    main()
