"""A pool trains each of its networks as if the others were not there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from statewise.data import CopyingMemory, PermutedPixels, PixelSet
from statewise.errors import ArgumentError, ShapeError
from statewise.sweep.networks import fresh_state, network_of
from statewise.sweep.pixels import PermutedImages, PixelTask
from statewise.sweep.pool import Pool
from statewise.sweep.sources import HELD_OUT, ORDERS, FreshExamples, states_at_start, uniforms
from statewise.sweep.trial import Trial
from statewise.train import RMSpropTF
from statewise.weights import StiefelSGD

CPU = torch.device("cpu")
#: On an accelerator an iteration is a graph that is recorded at the fourth and replayed: of six the last two are.
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
TASK = CopyingMemory(m=2, n=4, delay=1)


def trial(**others: Any) -> Trial:
    return Trial(**{"task": TASK, "depth": 2, "width": 6, "batch": 8, "lr": 1e-2, "lr_recurrent": 1e-3, **others})


def pool_of(trials: list[Trial], device: str = "cpu") -> Pool:
    place = torch.device(device)
    pool = Pool(trials[0].shape, len(trials), FreshExamples(TASK, trials[0].batch, place), place)
    for slot, each in enumerate(trials):
        pool.put(slot, fresh_state(each.shape, seed=each.seed), seed=each.seed)
        pool.set_rates(slot, each.lr, each.recurrent_rate)
    return pool


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("update", ["cayley", "full-capacity"])
def test_iterations_are_those_of_a_plain_loop(update: str, device: str) -> None:
    one = trial(seed=5, update=update)
    pool = pool_of([trial(seed=4, update=update), one], device)
    pool.advance(6)
    module = network_of(one.shape, fresh_state(one.shape, seed=5))
    others, recurrent = module.parameter_groups(1e-2, 1e-3)
    orthogonal: Any = (
        RMSpropTF([recurrent]) if update == "cayley" else StiefelSGD(recurrent["params"], lr=1e-3, rms=True)
    )
    optimizers = [RMSpropTF([others]), orthogonal]
    source, root = FreshExamples(TASK, one.batch, CPU), torch.tensor([5])
    for iteration in range(6):
        place = torch.tensor([iteration])
        inputs, answers = source.fresh(root, place)
        start = states_at_start(root, place, (2, one.batch, 6))[0]
        module.zero_grad()
        F.cross_entropy(module(inputs[0], start).flatten(0, -2), answers[0].flatten()).backward()
        for optimizer in optimizers:
            optimizer.step()
    same(pool.networks.take(1), {name: each.detach() for name, each in module.named_parameters()})


@pytest.mark.parametrize("device", DEVICES)
def test_a_network_trains_alike_alone_among_others_and_after_a_pause_elsewhere(device: str) -> None:
    trials = [trial(seed=seed, lr=lr) for seed, lr in ((0, 1e-2), (1, 1e-3), (2, 3e-3))]
    together = pool_of(trials, device)
    together.advance(7)
    alone = pool_of([trials[1]])
    alone.advance(3)
    elsewhere = pool_of([trials[0], trials[2]], device)
    elsewhere.advance(2)
    elsewhere.put(0, alone.take(0), seed=1, iterations=3)
    elsewhere.set_rates(0, 1e-3, trials[1].recurrent_rate)
    elsewhere.advance(4)
    same(together.take(1), elsewhere.take(0))
    assert elsewhere.done == [7, 6]
    assert together.done == [7, 7, 7]


def test_looks_are_the_same_for_all_and_weigh_the_last_examples_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of([trial(seed=0), trial(seed=0), trial(seed=1)])
    pool.advance(3)
    pool.put(1, pool.take(0), seed=9)
    look = pool.look("valid", 50)
    assert look.losses[0] == look.losses[1] != look.losses[2]
    assert look != pool.look("test", 50)
    monkeypatch.setattr("statewise.sweep.pool._CHUNK", 7 * TASK.steps * TASK.classes * 3)  # 7 examples at a time
    parts = pool.look("valid", 50)
    assert parts.losses == pytest.approx(look.losses, rel=1e-5)
    assert parts.accuracies == pytest.approx(look.accuracies, rel=1e-5)


def test_what_a_look_says_is_what_the_network_answers() -> None:
    pool = pool_of([trial(seed=3)])
    pool.advance(20)
    source = FreshExamples(TASK, 8, CPU)
    inputs, answers = source.held_out("test", 0, 40)
    module = network_of(trial().shape, pool.networks.take(0))
    logits = module(inputs[0], pool._held_out_starts("test", 0, 40)[0])
    expected = F.cross_entropy(logits.flatten(0, 1), answers[0].flatten())
    right = (logits.argmax(-1) == answers[0])[-2:].float().mean()  # the two symbols that are due at the end
    look = pool.look("test", 40)
    assert look.losses[0] == pytest.approx(expected.item(), rel=1e-5)
    assert look.accuracies[0] == pytest.approx(right.item(), rel=1e-5)


def test_numbers_depend_on_root_place_and_purpose_only() -> None:
    roots, places = torch.tensor([1, 1, 2]), torch.tensor([0, 1, 0])
    numbers = uniforms(roots, places, 0, 1001)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert abs(numbers.mean().item() - 0.5) < 0.02
    assert len({tuple(row[:4].tolist()) for row in [*numbers, *uniforms(roots, places, 1, 1001)]}) == 6
    assert torch.equal(uniforms(roots[2:], places[2:], 0, 1001), numbers[2:])


def test_held_out_examples_are_not_those_of_any_seed() -> None:
    """Batches of one draw as many numbers as a held-out example does: with the same root they would be the same."""
    source = FreshExamples(CopyingMemory(m=12, n=8, delay=0), 1, CPU)
    held = {tuple(row.tolist()) for part in ("valid", "test") for row in source.held_out(part, 0, 64)[1][0].T}
    assert len(held) == 128
    roots, places = torch.arange(40).repeat_interleave(64), torch.arange(64).repeat(40)
    assert not held & {tuple(row.tolist()) for replica in source.fresh(roots, places)[1] for row in replica.T}
    own = source.fresh(torch.full((64,), HELD_OUT["valid"]), torch.arange(64))[1]
    assert {tuple(row.tolist()) for replica in own for row in replica.T} <= held  # so that the test can fail


def pixels(count: int, size: int = 4) -> PixelSet:
    return PixelSet(
        values=torch.arange(count * size).view(count, size).to(torch.uint8), labels=torch.arange(count) % 10
    )


def test_every_image_is_read_once_an_epoch_in_an_order_of_its_own() -> None:
    task = PixelTask(pixels=4)
    source = PermutedImages(task, 3, CPU, PermutedPixels(train=pixels(11), valid=pixels(5), test=pixels(5)))
    roots, seen = torch.tensor([0, 1]), []
    assert source.per_epoch == 3
    for iteration in range(6):
        left = source.prepare(roots, [iteration, iteration])
        assert left == 3 - iteration % 3
        inputs, _ = source.fresh(roots, torch.tensor([iteration, iteration]))
        assert inputs.shape == (2, 4, 3, 1)
        seen.append((inputs[:, 0, :, 0] * 255).round())
    first, second = torch.cat(seen[:3], dim=1), torch.cat(seen[3:], dim=1)
    for epoch in (first, second):
        assert all(len(set(row.tolist())) == 9 for row in epoch)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], second[0])
    order = uniforms(roots[:1], torch.tensor([0]), ORDERS, 11)[0].argsort(stable=True)
    assert torch.equal(first[0], (4 * order[:9]).float())


def test_images_train_in_a_pool_whose_slots_are_at_different_places_of_an_epoch() -> None:
    task = PixelTask(pixels=4)
    shape = Trial(task=task, depth=1, width=5, batch=3).shape

    def pool(slots: int) -> Pool:
        data = PermutedPixels(train=pixels(11), valid=pixels(5), test=pixels(5))
        made = Pool(shape, slots, PermutedImages(task, 3, CPU, data), CPU)
        for slot in range(slots):
            made.put(slot, fresh_state(shape, seed=slot), seed=slot)
            made.set_rates(slot, 1e-2, 1e-3)
        return made

    together = pool(2)
    together.advance(2)
    together.put(1, fresh_state(shape, seed=1), seed=1)  # begins when the other is at its third batch
    together.advance(4)
    alone = pool(1)
    alone.advance(6)
    same(together.take(0), alone.take(0))
    assert together.look("test", 100).accuracies[0] == alone.look("test", 5).accuracies[0]


def test_images_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Give data=permuted_pixels"):
        PermutedImages(PixelTask(), 3, CPU, None)
    few = PermutedPixels(train=pixels(2), valid=pixels(5), test=pixels(5))
    with pytest.raises(ShapeError, match="got images of 4 pixels, wanted 9"):
        PermutedImages(PixelTask(pixels=9), 3, CPU, few)
    with pytest.raises(ShapeError, match="got 2 images, wanted a batch of 3"):
        PermutedImages(PixelTask(pixels=4), 3, CPU, few)


def test_freed_memory_is_kept_in_a_process_of_its_own() -> None:
    """A block that is freed and taken again has its pages already; told in a process that ends with the test."""
    script = (
        "import resource, torch\n"
        "from statewise.sweep.heap import keep_freed_memory\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(20):\n"
        "        torch.ones(1 << 24)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "usual, told = faults(), keep_freed_memory()\n"
        "torch.ones(1 << 24)\n"
        "print(usual, int(told), faults())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    usual, told, kept = map(int, done.stdout.split())
    if not told:
        pytest.skip("another C library")
    assert kept < usual / 2 or usual < 1000  # where pages are huge there are few faults to begin with
