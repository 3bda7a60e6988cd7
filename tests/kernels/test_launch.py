"""A launcher gives a kernel what a plain launch gives it, each time."""

from __future__ import annotations

import pytest
import torch

from statewise.kernels import load_triton


@pytest.fixture
def device() -> str:
    if not load_triton().available:
        pytest.skip(load_triton().reason)
    return load_triton().device


def _copies(device: str, offset: int, times: int) -> list[torch.Tensor]:
    """Initial states of two sequences, moved to where the first turn looks for them, ``times`` times."""
    from statewise.kernels.launch import Launcher
    from statewise.kernels.pack import begin

    constants = {"H": 3, "Hp": 16, "MEMORY": False, "COPY": False, "MASKED": False, "CONSTANT": False, "TILE": 16}
    launch = Launcher(begin, constants)
    none, found = torch.empty(0, device=device), []
    for turn in range(times):
        state = torch.arange(offset + 6.0, device=device)[offset:].view(2, 3) + 10 * turn
        long, carried = torch.full((6, 16), -1.0, device=device), torch.full((2, 16), -1.0, device=device)
        launch((2, 1, 1), state, none, none, long, none, carried, none, none, 4, 2, 0, 2, 4)
        assert (long[:4] == -1).all()
        assert torch.equal(carried, long[4:])
        found.append(long[4:] - 10 * turn * (torch.arange(16, device=device) < 3))
    return found


@pytest.mark.parametrize("offset", [0, 1])
def test_every_launch_does_the_same_wherever_the_tensors_lie(device: str, offset: int) -> None:
    expected = torch.zeros(2, 16, device=device)
    expected[:, :3] = torch.arange(6.0, device=device).view(2, 3) + offset
    for found in _copies(device, offset, 3):
        assert torch.equal(found, expected)


def test_moving_pads_with_zeros_and_cuts(device: str) -> None:
    from statewise.kernels.pack import move

    source = torch.randn(2, 3, 5, 7, device=device)
    wide = torch.full((2, 3, 8, 16), float("nan"), device=device)
    move(source, wide)
    assert torch.equal(wide[:, :, :5, :7], source)
    assert not wide[:, :, 5:].any()
    assert not wide[:, :, :, 7:].any()
    narrow = torch.empty(2, 3, 4, 6, device=device)
    move(source, narrow)
    assert torch.equal(narrow, source[:, :, :4, :6])


def test_moving_turns_and_spreads(device: str) -> None:
    """Any steps between the elements of the source, and between the rows of the target."""
    from statewise.kernels.pack import move

    source, target = torch.randn(1, 3, 5, 7, device=device), torch.empty(1, 7, 3, 5, device=device)
    move(source.transpose(2, 3), target.transpose(1, 2))
    assert torch.equal(target, source.permute(0, 3, 1, 2))


@pytest.mark.parametrize("shape", [(1, 3, 5), (3, 700, 70), (2, 256, 16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_with_the_signs_of_others(device: str, shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    """Rows that do not fill a piece, columns that do not fill a tile, and values of 0, which count for nothing."""
    from statewise.kernels.pack import signed_sums

    grads, values = (torch.randn(shape, device=device, dtype=dtype) for _ in range(2))
    values[:, ::3] = 0
    found = signed_sums(grads, values, dtype)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, (grads * values.sign()).sum(1), rtol=1e-4, atol=1e-4)
