"""The unbiasedness auditor: it says what is true of every kind of noise that a layer can have."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from statewise import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    Centroids,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OutputDropout,
    PeepholeLSTM,
    RecurrentDropout,
    Zoneout,
)
from statewise.errors import ArgumentError, DtypeError
from statewise.objectives import audit
from statewise.transforms import Sizes, Stream
from statewise.weights import weight_drop

# A pass of the auditor is hundreds of calls, each of which would have its annotations checked.
pytestmark = pytest.mark.usefixtures("as_users_have_it")


def slow(transforms: Any) -> Any:
    return pytest.param(transforms, marks=pytest.mark.slow)


STRONG: list[Any] = [
    (),
    Noise("gaussian", 0.5, placement="last"),
    Noise("gamma", 0.7, placement="outputs"),
    LockedDropout(0.5),
    slow(Noise("chi-square", 0.3, placement="outputs", mode="additive")),
    slow(OutputDropout(0.5)),
    slow(Centroids(4)),
    [Centroids(4), Noise("bernoulli", 0.5, placement="last")],
]
WEAK: list[Any] = [
    Noise("gaussian", 0.5, placement="recurrent"),
    Zoneout(0.2, memory=0.4),
    slow(Noise("laplace", 0.4, placement="recurrent", mode="additive")),
    slow(Zoneout(0.3)),
    slow([Noise("gaussian", 0.5, placement="recurrent"), OutputDropout(0.3)]),
]
BIASED: list[Any] = [
    InputDropout(0.5),
    slow(LockedInputDropout(0.5)),
    RecurrentDropout(0.5),
    slow(RecurrentDropout(0.5, locked=True)),
    slow(RecurrentDropout(0.5, mask_on="projection", share_gates=False)),
    slow(RecurrentDropout(0.0, input_p=0.5)),
    Centroids(4, temperature=0.1, transition="noisy"),
    [Noise("gaussian", 0.5, placement="last"), InputDropout(0.3)],
]


def named(transforms: Any) -> str:
    return repr(transforms)


def inputs(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(4))


def source() -> torch.Generator:
    return torch.Generator().manual_seed(11)


def built(kind: Any, *arguments: int, **options: Any) -> Any:
    return kind(*arguments, generator=torch.Generator().manual_seed(6), **options)


def run(transforms: Any, kind: Any = LSTM, **options: Any) -> Any:
    return audit(built(kind, 3, 6, transforms=transforms, **options), 2 * inputs(3, 2, 3), generator=source())


@pytest.mark.parametrize("transforms", STRONG, ids=named)
def test_what_is_strongly_unbiased_is_called_so(transforms: Any) -> None:
    found = run(transforms)
    assert found.verdict == "strong", found.sentence
    assert found.layers[0].clean_state
    assert not found.layers[0].mean.nonzero
    assert "strongly unbiased" in found.sentence


@pytest.mark.parametrize("transforms", WEAK, ids=named)
def test_what_is_weakly_unbiased_is_called_so(transforms: Any) -> None:
    found = run(transforms)
    assert found.verdict == "weak", found.sentence
    assert not found.layers[0].clean_state
    assert not found.layers[0].conditional.nonzero


@pytest.mark.parametrize("transforms", BIASED, ids=named)
def test_what_is_biased_is_called_so(transforms: Any) -> None:
    found = run(transforms)
    assert found.verdict == "biased", found.sentence
    assert found.layers[0].conditional.nonzero
    assert "given its input and state" in found.sentence


def test_dropped_weights_are_biased_though_all_rows_share_a_mask() -> None:
    layer = weight_drop(built(LSTM, 3, 6), "weight_hh_l0", p=0.5)
    found = audit(layer, 2 * inputs(4, 2, 3), generator=source())
    assert found.verdict == "biased"
    assert found.layers[0].conditional.steps[0] == 2  # the first step has no state that could be dropped


@pytest.mark.slow
def test_a_stack_with_dropped_weights_above_is_biased_there_alone() -> None:
    layer = weight_drop(built(RNN, 3, 6, 2), "weight_hh_l1", p=0.5)
    found = audit(layer, 2 * inputs(4, 2, 3), generator=source())
    assert [one.verdict for one in found.layers] == ["strong", "biased"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RNN, GRU, MGU, LSTM, PeepholeLSTM])
def test_any_cell_can_be_audited(kind: Any) -> None:
    assert run(Noise("gaussian", 0.4, placement="last"), kind).verdict == "strong"
    assert run(InputDropout(0.5), kind).verdict == "biased"


def test_recurrent_noise_moves_the_mean_from_the_second_step_on() -> None:
    found = run(Noise("gaussian", 0.7, placement="recurrent"), RNN).layers[0]
    assert found.verdict == "weak"
    assert found.mean.steps == (2, 3)
    assert (found.mean.values[0].abs() < 1e-9).all()
    worst = found.mean.worst
    assert abs(worst.value) > worst.half_width
    assert worst.step in (2, 3)
    assert f"output unit {worst.unit} is off by" in found.sentence


def test_noise_on_every_output_is_strong_below_and_weak_above() -> None:
    """The upper layer's own input is noisy, so its mean is not that of the clean network; given it, all is well."""
    found = run(Noise("gaussian", 0.7, placement="outputs"), RNN, num_layers=2)
    assert [one.verdict for one in found.layers] == ["strong", "weak"]
    assert found.layers[1].mean.nonzero
    assert found.verdict == "weak"


def test_dropout_between_torchs_layers_is_weak_and_the_same_as_bernoulli_noise_on_outputs() -> None:
    found = audit(nn.LSTM(3, 6, 2, dropout=0.5), 2 * inputs(3, 2, 3), generator=source())
    assert [one.verdict for one in found.layers] == ["strong", "weak"]


@pytest.mark.parametrize("kind", [slow(nn.RNN), nn.GRU, slow(nn.LSTM)])
def test_a_plain_layer_of_torch_is_strong(kind: Any) -> None:
    assert audit(kind(3, 4), inputs(3, 2, 3), generator=source()).verdict == "strong"


@pytest.mark.parametrize(
    ("transforms", "verdicts"),
    [
        (Noise("gaussian", 0.6, placement="recurrent"), ["weak", "weak"]),
        pytest.param(InputDropout(0.5, layers=(1,)), ["strong", "biased"], marks=pytest.mark.slow),
    ],
    ids=["noise", "dropout"],
)
def test_both_directions_are_audited(transforms: Any, verdicts: list[str]) -> None:
    found = run(transforms, RNN, num_layers=2, bidirectional=True)
    assert [one.verdict for one in found.layers] == verdicts
    if verdicts[0] == "weak":  # the reverse direction begins at the last step, so its noise is fed back before it
        assert found.layers[0].mean.steps == (1, 2, 3)
        assert (found.layers[0].mean.values[-1, :, 6:].abs() < 1e-9).all()
        assert (found.layers[0].mean.values[0, :, :6].abs() < 1e-9).all()


@pytest.mark.slow
def test_batch_first_unbatched_and_initial_states() -> None:
    noise = Noise("gaussian", 0.6, placement="recurrent")
    first = audit(
        built(RNN, 3, 6, batch_first=True, transforms=noise), inputs(3, 2, 3).transpose(0, 1), generator=source()
    )
    second = audit(built(RNN, 3, 6, transforms=noise), inputs(3, 2, 3), generator=source())
    torch.testing.assert_close(first.layers[0].mean.values, second.layers[0].mean.values)
    alone = audit(built(LSTM, 3, 6, transforms=noise), inputs(3, 3), generator=source())
    assert alone.layers[0].mean.values.shape == (3, 1, 6)
    state = torch.randn(1, 6)
    given = audit(built(LSTM, 3, 6, transforms=noise), inputs(3, 3), (state, state), generator=source())
    assert given.verdict == "weak"


class Shifted(Noise):
    """Noise that forgot to be centred."""

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        drawn = super().draw(sizes, stream, training=training)
        return None if drawn is None else (drawn[0] + 0.1,)


@pytest.mark.parametrize("placement", ["last", "recurrent"])
def test_noise_that_is_not_centred_is_biased(placement: str) -> None:
    found = run(Shifted("gaussian", 0.3, placement=placement), RNN)
    assert found.verdict == "biased"
    assert found.layers[0].conditional.steps == (1, 2, 3)


class Clamped(Noise):
    """Multipliers that are kept from being negative, which moves their mean."""

    def apply(self, sequence: Tensor, draws: tuple[Tensor, ...]) -> Tensor:
        return super().apply(sequence, (draws[0].clamp(min=0.0),))


def test_clamped_multipliers_are_biased() -> None:
    assert run(Clamped("gaussian", 0.8, placement="last"), RNN).verdict == "biased"


def test_the_layer_is_left_as_it_was() -> None:
    layer = built(LSTM, 3, 4, transforms=Noise("gaussian", 0.5), dropout=0.0).eval()
    before, global_state = copy.deepcopy(layer.state_dict()), torch.get_rng_state()
    first, again = (audit(layer, inputs(2, 1, 3), generator=source(), samples=1024) for _ in range(2))
    assert not layer.training
    assert torch.equal(torch.get_rng_state(), global_state)
    assert layer.state_dict().keys() == before.keys()
    assert all(torch.equal(one, before[name]) for name, one in layer.state_dict().items())
    assert next(layer.parameters()).dtype == torch.float32
    assert torch.equal(first.layers[0].mean.values, again.layers[0].mean.values)


def test_it_tells_what_it_presumes_and_how_sure_it_is() -> None:
    found = run(())
    assert found.samples == 16384
    assert "(16384 samples, confidence 0.999)" in found.sentence
    assert any("these inputs" in one for one in found.assumptions)
    assert found.sentence in repr(found)


def test_noise_that_is_nearly_always_absent_needs_more_samples() -> None:
    with pytest.raises(ArgumentError, match=r"too heavy for so few.*samples=262144"):
        run(InputDropout(0.9999))


def test_what_cannot_be_audited_is_refused() -> None:
    x = inputs(3, 2, 3)
    with pytest.raises(DtypeError, match="a recurrent layer"):
        audit(nn.Linear(3, 4), x)
    with pytest.raises(DtypeError, match="sequences of one length"):
        audit(LSTM(3, 4), pack_sequence([torch.zeros(2, 3)]))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="draws in eval mode too"):
        audit(LSTM(3, 4, transforms=Centroids(5, transition="sample")), x, generator=source())
    with pytest.raises(ArgumentError, match="does not start at zero"):
        audit(RAC(3, 4), x)
    with pytest.raises(ArgumentError, match="at least 1024"):
        audit(LSTM(3, 4), x, samples=10)
    with pytest.raises(ArgumentError, match="confidence"):
        audit(LSTM(3, 4), x, confidence=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        Noise("chi-square", 0.2, placement="last"),
        Noise("bernoulli", 0.1, placement="outputs"),
        Noise("gamma", 1.5, alpha=0.3, placement="outputs", mode="additive"),
        Noise("gumbel", 1.0, placement="recurrent"),
        Zoneout(0.5),
    ],
    ids=repr,
)
def test_false_alarms_are_rare_on_fresh_seeds(noise: Any) -> None:
    """At a confidence of nine in ten, and in truth rarer: at most one in ten of fresh layers, inputs and noises."""
    wanted = "strong" if getattr(noise, "placement", "recurrent") != "recurrent" else "weak"
    wrong = 0
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        layer = RNN(3, 6, transforms=noise, generator=generator)
        x = torch.randn(4, 2, 3, generator=generator)
        wrong += audit(layer, x, samples=2048, confidence=0.9, generator=generator).verdict != wanted
    assert wrong <= 12
