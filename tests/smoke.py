"""Tries an installation, with nothing but what users have: layers equal torch.nn's, and a model survives a file.

With ``--kernel`` the CPU kernel must be there, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

import torch

import statewise
from statewise.models import ClassifierConfig
from statewise.native import load_native


def main() -> None:
    ours, theirs = statewise.LSTM(3, 8, num_layers=2), torch.nn.LSTM(3, 8, num_layers=2)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(5, 4, 3)
    output, expected = ours(x)[0], theirs(x)[0]
    torch.testing.assert_close(output, expected)
    grads, wanted = (
        torch.autograd.grad(each.square().sum(), list(layer.parameters()))
        for each, layer in ((output, ours), (expected, theirs))
    )
    torch.testing.assert_close(grads, wanted)

    noisy = statewise.GRU(3, 8, transforms=[statewise.Noise("gaussian", 0.5), statewise.Centroids(4)])
    noisy(x)[0].sum().backward()
    if any(parameter.grad is None for parameter in noisy.parameters()):
        sys.exit("A parameter of a layer with noise and centroids got no gradient.")

    model = ClassifierConfig(hidden=8, centroids=(5,)).build(tokens=2, classes=2, symbols="01")
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        torch.testing.assert_close(statewise.load(folder).state_dict(), model.state_dict())

    if "--kernel" in sys.argv and not load_native():
        sys.exit(load_native().reason)
    subprocess.run([sys.executable, "-m", "statewise", "doctor"], check=True)


if __name__ == "__main__":
    main()
