"""Texts in segments: a mixed state keeps its partner, and the chain of coefficients goes on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statewise import GRU, LSTM
from statewise.errors import ArgumentError
from statewise.mixup import Carried, InputMixup, Mixup, Pairs, PreOutputMixup, ThroughTimeMixup, run_segment
from support import Tolerance

DOUBLE = torch.float64
EXACT: Tolerance = {"rtol": 1e-12, "atol": 1e-12}
MIXED = [
    (InputMixup, {}),
    (InputMixup, {"pairing": "double"}),
    (ThroughTimeMixup, {}),
    (ThroughTimeMixup, {"pairing": "double"}),
    (ThroughTimeMixup, {"layer": 1}),
]


def in_segments(
    mix: Mixup, layer: nn.Module, x: Tensor, sizes: list[int], seed: int = 0
) -> tuple[Tensor, list[Carried]]:
    """All outputs, and what each segment carried on."""
    generator, carried, outputs, seen = torch.Generator().manual_seed(seed), None, [], []
    for segment in x.split(sizes):
        output, carried = run_segment(mix, layer, segment, carried, generator=generator)
        outputs.append(output)
        seen.append(carried)
    return torch.cat(outputs), seen


@pytest.mark.parametrize("kind", [GRU, LSTM])
@pytest.mark.parametrize(("mixup", "options"), MIXED)
def test_segments_are_the_whole_text(
    mixup: type[Mixup], options: dict[str, Any], kind: Any, generator: torch.Generator
) -> None:
    layer = kind(3, 4, num_layers=2, dtype=DOUBLE)
    x, mix = torch.randn(9, 4, 3, generator=generator, dtype=DOUBLE), mixup(alpha=0.5, rho=0.3, **options)
    whole, one = in_segments(mix, layer, x, [9])
    parts, several = in_segments(mix, layer, x, [2, 4, 3])
    torch.testing.assert_close(parts, whole, **EXACT)
    coefficients = torch.cat([carried.pairs.coefficients for carried in several])
    assert torch.equal(coefficients, one[0].pairs.coefficients)
    assert all(torch.equal(carried.pairs.second, several[0].pairs.second) for carried in several)


def test_before_the_output_every_text_has_its_own_state_and_partners_are_drawn_anew(
    generator: torch.Generator,
) -> None:
    layer, x = GRU(3, 4, dtype=DOUBLE), torch.randn(40, 6, 3, generator=generator, dtype=DOUBLE)
    mix = PreOutputMixup(alpha=0.5)
    parts, several = in_segments(mix, layer, x, [2] * 20)
    whole = layer(x)[0]
    for place, carried in enumerate(several):
        torch.testing.assert_close(parts[2 * place : 2 * place + 2], carried.pairs.mix(whole[2 * place :][:2]), **EXACT)
    assert len({tuple(carried.pairs.second.tolist()) for carried in several}) > 5


@pytest.mark.parametrize("mix", [InputMixup(), PreOutputMixup(), ThroughTimeMixup()], ids=lambda mix: mix.site)
def test_carried_states_have_no_history_and_in_eval_mode_every_text_is_alone(
    mix: Mixup, generator: torch.Generator
) -> None:
    layer, x = LSTM(3, 4, dtype=DOUBLE), torch.randn(6, 4, 3, generator=generator, dtype=DOUBLE)
    _, several = in_segments(mix, layer, x, [3, 3])
    assert not any(part.requires_grad for part in several[0].state)
    layer.eval()
    parts, several = in_segments(mix, layer, x, [3, 3])
    torch.testing.assert_close(parts, layer(x)[0], **EXACT)
    words = torch.randint(7, (6, 4), generator=generator)
    logits = torch.randn(3, 4, 7, generator=generator, dtype=DOUBLE)
    plain = nn.functional.cross_entropy(logits.flatten(0, 1), words[3:].flatten())
    torch.testing.assert_close(several[1].pairs.language(logits, words[3:]), plain)  # perplexity is never mixed


def test_draw_goes_on_from_earlier_pairs(generator: torch.Generator) -> None:
    mix = InputMixup(rho=0.2)
    first = mix.draw([4, 4, 4], generator=generator)
    second = mix.draw([2, 2, 2], generator=generator, previous=first)
    assert torch.equal(second.second, first.second)
    assert second.continues
    assert second.coefficients.shape == (2, 3)


def test_pairs_that_cannot_go_on_say_so() -> None:
    with pytest.raises(ArgumentError, match="sequences of unequal length"):
        InputMixup().draw([3, 2]).next(3)
    with pytest.raises(ArgumentError, match="pairs of given coefficients"):
        Pairs.of(torch.ones(2, 2), second=torch.tensor([1, 0])).next(3)


def test_half_the_pairs_above_the_first_layer_cannot_be_carried_through_time(generator: torch.Generator) -> None:
    """The layers below give back the states of first members only."""
    mix, layer = ThroughTimeMixup(pairing="double", layer=1), GRU(3, 4, num_layers=2)
    with pytest.raises(ArgumentError, match=r"a second segment of 2 pairs of 4 sequences.*Use pairing='permute'"):
        in_segments(mix, layer, torch.randn(4, 4, 3, generator=generator), [2, 2])


@pytest.mark.parametrize("mix", [InputMixup(rho=0.3), ThroughTimeMixup(rho=0.3)], ids=lambda mix: mix.site)
def test_a_state_that_nothing_mixed_begins_new_pairs_and_one_that_was_mixed_cannot_leave_them(
    mix: Mixup, generator: torch.Generator
) -> None:
    layer, x = LSTM(3, 4), torch.randn(3, 4, 3, generator=generator)
    _, carried = run_segment(mix, layer.eval(), x, generator=generator)
    _, carried = run_segment(mix, layer.train(), x, carried, generator=generator)
    assert not carried.pairs.continues
    assert bool(((carried.pairs.coefficients > 0) & (carried.pairs.coefficients < 1)).any())
    _, carried = run_segment(mix, layer, x, carried, generator=generator)
    assert carried.pairs.continues
    with pytest.raises(ArgumentError, match=r"the state of mixed pairs before the output.*carried=None"):
        run_segment(PreOutputMixup(), layer, x, carried)
    with pytest.raises(ArgumentError, match=r"the state of mixed pairs in eval mode.*carried=None"):
        run_segment(mix, layer.eval(), x, carried)


def test_pairs_that_go_on_obey_what_is_asked_of_them() -> None:
    first = InputMixup().draw([4, 4, 4], dtype=DOUBLE)
    same = InputMixup().draw([2, 2, 2], previous=first)
    other = InputMixup().draw([2, 2, 2], previous=first, steps=5, dtype=torch.half)
    assert (same.steps, same.coefficients.dtype) == (2, DOUBLE)
    assert (other.steps, other.coefficients.dtype, other.lengths.tolist()) == (5, torch.half, [2, 2, 2])
    for lengths, mix in (([2, 1, 2], InputMixup()), ([2, 2], InputMixup()), ([2, 2, 2], ThroughTimeMixup())):
        with pytest.raises(ArgumentError, match=r"draw previous: .* wanted 3 sequences of one length"):
            mix.draw(lengths, previous=first)
