"""Bad input gets a named error that says what was got and what was wanted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import statewise
from contracts.passes import FORMS, only
from statewise import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    Centroids,
    Draws,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    MultiplicativeRNN,
    Noise,
    OrthogonalRNN,
    OutputDropout,
    Pairing,
    PeepholeLSTM,
    RecurrentDropout,
    RecurrentLayer,
    ThroughTimeMix,
    Transform,
    Zoneout,
    embedding_dropout,
)
from statewise.errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    EngineError,
    LengthError,
    NonFiniteError,
    ShapeError,
    StatewiseError,
    UnknownArgumentError,
)
from statewise.weights import weight_drop

INPUT, HIDDEN, STEPS, BATCH = 4, 5, 3, 2
EVERY_LAYER = pytest.mark.parametrize(
    "kind", [RNN, MGU, GRU, MultiplicativeRNN, LSTM, PeepholeLSTM, RAC, OrthogonalRNN]
)
MEMORIES = (LSTM, PeepholeLSTM)


# The run-time check of annotations would stop bad input before the library sees it.
pytestmark = pytest.mark.usefixtures("as_users_have_it")


@contextmanager
def refused(error: type[StatewiseError], *words: str) -> Iterator[None]:
    """Within, an error of exactly this type is raised, whose text holds all these words."""
    with pytest.raises(error) as caught:
        yield
    assert type(caught.value) is error
    for word in (*words, ": got ", ", wanted "):
        assert word in str(caught.value), f"{word!r} is missing from: {caught.value}"


def sequences(*shape: int) -> Tensor:
    return torch.randn(shape or (STEPS, BATCH, INPUT))


def state(kind: type[RecurrentLayer], *shape: int, **options: Any) -> Any:
    """An initial state as the layer takes it: a tensor, or a pair."""
    tensor = torch.zeros(shape or (1, BATCH, HIDDEN), **options)
    return (tensor, tensor) if kind in MEMORIES else tensor


class Elsewhere(torch.Generator):
    """A generator that says it is on another device."""

    device = torch.device("meta")


class TestInputs:
    @EVERY_LAYER
    @pytest.mark.parametrize("shape", [(INPUT,), (1, STEPS, BATCH, INPUT), ()])
    def test_a_wrong_rank_is_refused_with_both_ranks(self, kind: Any, shape: tuple[int, ...]) -> None:
        where = f"statewise.{kind.__name__} input"
        with refused(ShapeError, where, f"{len(shape)} dimensions", str(shape), "3 (batched) or 2"):
            kind(INPUT, HIDDEN)(torch.randn(shape))

    @EVERY_LAYER
    @pytest.mark.parametrize("shape", [(STEPS, BATCH, 7), (STEPS, 7)])
    def test_a_wrong_size_is_refused_with_both_sizes(self, kind: Any, shape: tuple[int, ...]) -> None:
        with refused(ShapeError, "size 7", str(shape), "input_size=4"):
            kind(INPUT, HIDDEN)(torch.randn(shape))

    def test_a_packed_batch_of_a_wrong_size_is_refused(self) -> None:
        with refused(ShapeError, "size 7", "input_size=4"):
            GRU(INPUT, HIDDEN)(pack_padded_sequence(sequences(STEPS, BATCH, 7), torch.tensor([3, 1])))

    @EVERY_LAYER
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64], ids=str)
    def test_a_wrong_dtype_is_refused_with_both_dtypes(self, kind: Any, dtype: torch.dtype) -> None:
        with refused(DtypeError, f"input: got {dtype}", "torch.float32", ".to(dtype)"):
            kind(INPUT, HIDDEN)(torch.ones(STEPS, BATCH, INPUT, dtype=dtype))

    def test_a_packed_batch_of_a_wrong_dtype_is_refused(self) -> None:
        with refused(DtypeError, "torch.float64", "torch.float32"):
            GRU(INPUT, HIDDEN)(pack_padded_sequence(sequences().double(), torch.tensor([3, 1])))

    @EVERY_LAYER
    def test_another_device_is_refused_with_both_devices(self, kind: Any) -> None:
        with refused(DeviceError, "got meta", "wanted cpu", ".to()"):
            kind(INPUT, HIDDEN)(sequences().to("meta"))

    @EVERY_LAYER
    @pytest.mark.parametrize(
        ("shape", "words"),
        [
            ((0, BATCH, INPUT), "0 steps of 2 sequences"),
            ((0, 0, INPUT), "0 steps of 0 sequences"),
            ((0, INPUT), "0 steps of 1 sequences"),
        ],
    )
    def test_nothing_to_run_on_is_refused(self, kind: Any, shape: tuple[int, ...], words: str) -> None:
        with refused(LengthError, words, str(shape), "at least one"):
            kind(INPUT, HIDDEN)(torch.randn(shape))

    def test_there_is_nothing_to_mix_in_an_empty_batch(self) -> None:
        pairing = Pairing(torch.zeros(0, dtype=torch.int64), torch.zeros(0))
        with refused(LengthError, "a pairing of an empty batch", "without it"):
            LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())(torch.zeros(STEPS, 0, INPUT), pairing=pairing)

    def test_no_steps_are_counted_along_the_right_dimension(self) -> None:
        with refused(LengthError, "0 steps of 2 sequences", "(2, 0, 4)"):
            LSTM(INPUT, HIDDEN, batch_first=True)(torch.randn(2, 0, INPUT))

    @EVERY_LAYER
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_what_is_not_finite_is_refused_if_asked(self, kind: Any, value: float) -> None:
        x = sequences()
        x[1, 0, 2] = value
        with refused(NonFiniteError, "input: got NaN or infinity", "finite numbers"):
            kind(INPUT, HIDDEN, check_finite=True)(x)

    @EVERY_LAYER
    def test_an_initial_state_that_is_not_finite_is_refused_if_asked(self, kind: Any) -> None:
        start = torch.full((1, BATCH, HIDDEN), math.nan)
        with refused(NonFiniteError, "hx: got NaN or infinity"):
            kind(INPUT, HIDDEN, check_finite=True)(sequences(), (start, start) if kind in MEMORIES else start)

    def test_a_memory_that_is_not_finite_is_refused_by_its_name(self) -> None:
        good, bad = torch.zeros(1, BATCH, HIDDEN), torch.full((1, BATCH, HIDDEN), math.inf)
        with refused(NonFiniteError, "cx: got NaN or infinity"):
            LSTM(INPUT, HIDDEN, check_finite=True)(sequences(), (good, bad))

    @EVERY_LAYER
    def test_finite_input_passes_the_check(self, kind: Any) -> None:
        assert kind(INPUT, HIDDEN, check_finite=True)(sequences())[0].isfinite().all()

    @EVERY_LAYER
    @pytest.mark.parametrize("form", FORMS)
    def test_without_the_check_nan_goes_through_its_own_sequence_only(self, kind: Any, form: str) -> None:
        compiled = "auto" if kind is MultiplicativeRNN else "cpu"
        layer = kind(INPUT, HIDDEN, engine="reference" if form == "loop" else compiled)
        x = sequences()
        x[1, 0] = math.nan
        with only(form):
            output, _ = layer(x)
            output.nan_to_num().sum().backward()
        assert output[1:, 0].isnan().all()
        assert output[0].isfinite().all()
        assert output[:, 1].isfinite().all()


class TestInitialStates:
    @EVERY_LAYER
    @pytest.mark.parametrize("shape", [(1, BATCH, 6), (1, 3, HIDDEN), (2, BATCH, HIDDEN), (1, HIDDEN)])
    def test_a_wrong_shape_is_refused_with_both_shapes(self, kind: Any, shape: tuple[int, ...]) -> None:
        with refused(ShapeError, f"hx: got {shape}", "wanted (1, 2, 5)", "num_layers * directions"):
            kind(INPUT, HIDDEN)(sequences(), state(kind, *shape))

    @EVERY_LAYER
    def test_the_wanted_shape_counts_layers_and_directions(self, kind: Any) -> None:
        layer = kind(INPUT, HIDDEN, num_layers=3, bidirectional=True)
        with refused(ShapeError, "got (1, 2, 5)", "wanted (6, 2, 5)"):
            layer(sequences(), state(kind))

    @EVERY_LAYER
    def test_an_unbatched_input_wants_an_unbatched_state(self, kind: Any) -> None:
        with refused(ShapeError, "got (1, 1, 5)", "wanted (1, 5)", "(num_layers * directions, hidden_size)"):
            kind(INPUT, HIDDEN)(sequences(STEPS, INPUT), state(kind, 1, 1, HIDDEN))

    def test_a_wrong_memory_is_refused_by_its_name(self) -> None:
        good = torch.zeros(1, BATCH, HIDDEN)
        with refused(ShapeError, "cx: got (1, 2, 7)", "wanted (1, 2, 5)"):
            LSTM(INPUT, HIDDEN)(sequences(), (good, torch.zeros(1, BATCH, 7)))

    @pytest.mark.parametrize(
        ("kind", "count"), [(LSTM, 0), (LSTM, 1), (LSTM, 3), (PeepholeLSTM, 1), (GRU, 0), (GRU, 2), (RNN, 2), (RAC, 3)]
    )
    def test_a_wrong_number_of_tensors_is_refused(self, kind: Any, count: int) -> None:
        hx = (torch.zeros(1, BATCH, HIDDEN),) * count
        with refused(ShapeError, f"hx: got {count} tensor", "a pair (h, c)" if kind in MEMORIES else "one tensor"):
            kind(INPUT, HIDDEN)(sequences(), hx)

    def test_one_tensor_is_no_state_of_an_lstm(self) -> None:
        with refused(ShapeError, "hx: got 1 tensor", "a pair (h, c)"):
            LSTM(INPUT, HIDDEN)(sequences(), torch.zeros(1, BATCH, HIDDEN))

    @EVERY_LAYER
    def test_a_wrong_dtype_is_refused_with_both_dtypes(self, kind: Any) -> None:
        with refused(DtypeError, "hx: got torch.float64", "torch.float32"):
            kind(INPUT, HIDDEN)(sequences(), state(kind, dtype=torch.float64))

    @EVERY_LAYER
    def test_another_device_is_refused_with_both_devices(self, kind: Any) -> None:
        with refused(DeviceError, "hx: got meta", "wanted cpu"):
            kind(INPUT, HIDDEN)(sequences(), state(kind, device="meta"))

    def test_a_list_of_two_is_a_pair_as_in_torch(self) -> None:
        layer, x = LSTM(INPUT, HIDDEN), sequences()
        h, c = torch.randn(2, 1, BATCH, HIDDEN)
        torch.testing.assert_close(layer(x, [h, c])[0], layer(x, (h, c))[0])


class TestRandomness:
    @EVERY_LAYER
    def test_a_generator_on_another_device_is_refused_with_both_devices(self, kind: Any) -> None:
        layer = kind(INPUT, HIDDEN, transforms=OutputDropout(0.5))
        for call in (layer, layer.draw):
            with refused(DeviceError, "generator on meta", "wanted one on cpu", "torch.Generator('cpu')"):
                call(sequences(), generator=Elsewhere())

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("shape", [(2, BATCH, INPUT), (4, BATCH, INPUT), (STEPS, 1, INPUT), (STEPS, 3, INPUT)])
    def test_draws_for_another_input_are_refused(self, form: str, shape: tuple[int, ...]) -> None:
        """A compiled engine would otherwise read past the end of what was drawn."""
        layer = LSTM(INPUT, HIDDEN, transforms=Noise("gaussian", 1.0), engine="reference" if form == "loop" else "cpu")
        draws = layer.draw(torch.randn(shape))
        with only(form), refused(ShapeError, f"{shape[0]} steps of {shape[1]} seq", "3 steps of 2 seq", "layer.draw("):
            layer(sequences(), draws=draws)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("transform", [Noise("gaussian", 1.0), Zoneout(0.5), RecurrentDropout(0.5)], ids=repr)
    def test_draws_for_another_hidden_size_are_refused(self, form: str, transform: Transform) -> None:
        layer, other = (LSTM(INPUT, size, transforms=transform) for size in (HIDDEN, 3))
        layer.engine = "reference" if form == "loop" else "cpu"
        with only(form), pytest.raises((StatewiseError, RuntimeError)):
            layer(sequences(), draws=other.draw(sequences()))

    @pytest.mark.parametrize(("hidden", "batch"), [(7, BATCH), (HIDDEN, 3), (HIDDEN, 1)])
    def test_drawn_initial_states_of_another_shape_are_refused(self, hidden: int, batch: int) -> None:
        draws = OrthogonalRNN(INPUT, hidden).draw(sequences(STEPS, batch, INPUT))
        with refused(ShapeError, f"initial states of shape (1, {batch}, {hidden})", "2, 5)", "layer.draw("):
            OrthogonalRNN(INPUT, HIDDEN)(sequences(), draws=draws)

    def test_draws_on_another_device_are_refused(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Noise("gaussian", 1.0))
        with refused(DeviceError, "draws: got meta", "wanted cpu"):
            layer(sequences(), draws=layer.draw(sequences()).to("meta"))

    def test_no_draws_at_all_are_no_noise(self) -> None:
        layer, x = LSTM(INPUT, HIDDEN, transforms=Noise("gaussian", 1.0)), sequences()
        torch.testing.assert_close(layer(x, draws=Draws())[0], layer.eval()(x)[0])


class TestNoise:
    @pytest.mark.parametrize("law", ["gaussian", "logistic", "laplace", "gamma", "gumbel", "beta", "chi-square"])
    def test_a_negative_spread_is_refused(self, law: str) -> None:
        with refused(ArgumentError, "gamma", "got -0.5", ">= 0"):
            Noise(law, -0.5)

    @pytest.mark.parametrize("keep", [0.0, -0.1, 1.5])
    def test_a_keep_probability_outside_its_interval_is_refused(self, keep: float) -> None:
        with refused(ArgumentError, "gamma", f"got {keep}", "(0, 1]"):
            Noise("bernoulli", keep)

    @pytest.mark.parametrize("gamma", [math.nan, math.inf, -math.inf])
    def test_a_spread_that_is_not_finite_is_refused(self, gamma: float) -> None:
        with refused(ArgumentError, "Noise.gamma", f"got {gamma}", "finite"):
            Noise("gaussian", gamma)

    @pytest.mark.parametrize(("gamma", "kind"), [(True, "bool"), ("0.5", "str"), (None, "NoneType"), ([1.0], "list")])
    def test_a_spread_that_is_no_number_is_refused(self, gamma: Any, kind: str) -> None:
        with refused(DtypeError, "Noise.gamma", f"got {kind}", "a real number"):
            Noise("gaussian", gamma)

    @pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
    def test_a_shape_out_of_range_is_refused(self, alpha: float) -> None:
        with refused(ArgumentError, "alpha", f"got {alpha}", "> 0"):
            Noise("gamma", 0.5, alpha)

    def test_an_unknown_law_is_refused_with_a_suggestion(self) -> None:
        with refused(ArgumentError, "'gausian'", "'chi-square'", "Did you mean 'gaussian'?"):
            Noise("gausian", 0.5)

    @pytest.mark.parametrize("law", ["", None, 3])
    def test_what_is_no_law_is_refused_with_the_list(self, law: Any) -> None:
        with refused(ArgumentError, f"got {law!r}", "'gaussian', 'logistic'"):
            Noise(law, 0.5)

    @pytest.mark.parametrize(
        ("setting", "options"),
        [("mode", ("multiplicative", "additive")), ("placement", ("recurrent", "outputs", "last"))],
    )
    def test_an_unknown_mode_or_placement_is_refused_with_the_choices(
        self, setting: str, options: tuple[str, ...]
    ) -> None:
        with refused(ArgumentError, f"Noise.{setting}", "got sideways", *options):
            Noise("gaussian", 0.5, **{setting: "sideways"})  # type: ignore[arg-type]

    @pytest.mark.parametrize("std", [-1.0, math.nan, math.inf])
    def test_a_standard_deviation_out_of_range_is_refused(self, std: float) -> None:
        with refused(ArgumentError, "std", f"got {std}", "finite"):
            Noise.from_std("laplace", std)


class TestCentroids:
    @pytest.mark.parametrize("k", [0, -3])
    def test_fewer_than_one_is_refused(self, k: int) -> None:
        with refused(ArgumentError, "Centroids.k", f"got {k}", "at least 1"):
            Centroids(k)

    @pytest.mark.parametrize(("k", "kind"), [(2.0, "float"), (True, "bool"), ("3", "str"), (None, "NoneType")])
    def test_what_is_no_whole_number_is_refused(self, k: Any, kind: str) -> None:
        with refused(DtypeError, "Centroids.k", f"got {kind}", "a whole number"):
            Centroids(k)

    @pytest.mark.parametrize("setting", ["temperature", "relaxation"])
    @pytest.mark.parametrize("value", [0, 0.0, -1.0])
    def test_a_temperature_that_is_not_positive_is_refused(self, setting: str, value: float) -> None:
        with refused(ArgumentError, f"Centroids.{setting}", f"got {value}", "above 0"):
            Centroids(3, **{setting: value})  # type: ignore[arg-type]

    def test_a_temperature_of_zero_gets_the_remedy(self) -> None:
        with refused(ArgumentError, "transition='argmax'"):
            Centroids(3, temperature=0.0)

    @pytest.mark.parametrize("setting", ["temperature", "relaxation", "noise"])
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_what_is_not_finite_is_refused(self, setting: str, value: float) -> None:
        with refused(ArgumentError, f"Centroids.{setting}", f"got {value}", "finite"):
            Centroids(3, **{setting: value})  # type: ignore[arg-type]

    @pytest.mark.parametrize("setting", ["temperature", "relaxation", "noise"])
    @pytest.mark.parametrize(("value", "kind"), [(True, "bool"), ("1", "str")])
    def test_what_is_no_number_is_refused(self, setting: str, value: Any, kind: str) -> None:
        with refused(DtypeError, f"Centroids.{setting}", f"got {kind}", "a real number"):
            Centroids(3, **{setting: value})

    def test_negative_noise_is_refused(self) -> None:
        with refused(ArgumentError, "Centroids.noise", "got -1.0", ">= 0"):
            Centroids(3, noise=-1.0)

    @pytest.mark.parametrize(
        ("setting", "options"),
        [
            ("similarity", ("dot", "euclidean")),
            ("transition", ("mixture", "sample", "argmax", "st_argmax", "gumbel_hard", "noisy")),
        ],
    )
    def test_an_unknown_similarity_or_transition_is_refused_with_the_choices(
        self, setting: str, options: tuple[str, ...]
    ) -> None:
        with refused(ArgumentError, f"Centroids.{setting}", "got sideways", *options):
            Centroids(3, **{setting: "sideways"})  # type: ignore[arg-type]


class TestPairings:
    def pairing(self, *partner: int, steps: int | None = None) -> Pairing:
        shape = (len(partner),) if steps is None else (steps, len(partner))
        return Pairing(torch.tensor(partner), torch.full(shape, 0.5))

    def test_coefficients_of_another_batch_are_refused(self) -> None:
        with refused(ShapeError, "Pairing.coefficients", "got (2,)", "(3,) or (steps, 3)"):
            Pairing(torch.tensor([1, 0, 2]), torch.full((2,), 0.5))

    def test_coefficients_with_the_batch_first_are_refused(self) -> None:
        with refused(ShapeError, "got (2, 3)", "(steps, 2), time first"):
            Pairing(torch.tensor([1, 0]), torch.full((2, 3), 0.5))

    @pytest.mark.parametrize("partner", [[1, 2], [1, -1]])
    def test_a_partner_outside_the_batch_is_refused(self, partner: list[int]) -> None:
        with refused(ArgumentError, "Pairing.partner", str(partner), "from 0 to 1"):
            Pairing(torch.tensor(partner), torch.full((2,), 0.5))

    @pytest.mark.parametrize("value", [1.5, -0.1, math.nan])
    def test_a_coefficient_outside_zero_to_one_is_refused_with_its_value(self, value: float) -> None:
        with refused(ArgumentError, "Pairing.coefficients", f"{value:.2g}", "from 0 to 1"):
            Pairing(torch.tensor([1, 0]), torch.tensor([0.5, value]))

    def test_partners_that_are_no_indices_are_refused(self) -> None:
        with refused(DtypeError, "Pairing.partner", "torch.float32 of shape (2,)", "integer"):
            Pairing(torch.tensor([1.0, 0.0]), torch.full((2,), 0.5))

    @pytest.mark.parametrize("partner", [(1, 0, 2), (0,)])
    def test_a_pairing_of_another_batch_is_refused(self, partner: tuple[int, ...]) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())
        with refused(ShapeError, "Pairing.partner", f"got {len(partner)}", "2 rows"):
            layer(sequences(), pairing=self.pairing(*partner))

    def test_coefficients_for_another_number_of_steps_are_refused(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())
        with refused(ShapeError, "Pairing.coefficients", "(4, 2)", "1 or 3 steps"):
            layer(sequences(), pairing=self.pairing(1, 0, steps=4))

    def test_a_pairing_on_another_device_is_refused(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())
        pairing = Pairing(torch.tensor([1, 0], device="meta"), torch.full((2,), 0.5, device="meta"))
        with refused(DeviceError, "Pairing: got meta", "wanted cpu"):
            layer(sequences(), pairing=pairing)

    @pytest.mark.parametrize("setting", ["first", "lengths"])
    def test_settings_of_other_pairs_are_refused(self, setting: str) -> None:
        with refused(ShapeError, f"Pairing.{setting}", "got (3,)", "(2,), as partner has"):
            replace(self.pairing(1, 0), **{setting: torch.tensor([1, 1, 1])})  # type: ignore[arg-type]

    @pytest.mark.parametrize(("setting", "least"), [("first", 0), ("lengths", 1)])
    def test_numbers_that_are_too_small_are_refused(self, setting: str, least: int) -> None:
        with refused(ArgumentError, f"Pairing.{setting}", f"from {least}"):
            replace(self.pairing(1, 0), **{setting: torch.tensor([1, least - 1])})  # type: ignore[arg-type]

    @pytest.mark.parametrize("setting", ["partner", "first"])
    def test_a_member_outside_the_batch_is_refused_by_the_layer(self, setting: str) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())
        pairing = Pairing(torch.tensor([1, 0]), torch.full((2,), 0.5), first=torch.tensor([0, 1]))
        with refused(ArgumentError, f"Pairing.{setting}", "got 2", "from 0 to 1"):
            layer(sequences(), pairing=replace(pairing, **{setting: torch.tensor([0, 2])}))  # type: ignore[arg-type]

    def test_pairs_that_are_longer_than_the_input_are_refused(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())
        pairing = Pairing(torch.tensor([1, 0]), torch.full((2,), 0.5), lengths=torch.tensor([3, 4]))
        with refused(LengthError, "Pairing.lengths", "got 4", "at most 3"):
            layer(sequences(), pairing=pairing)

    @pytest.mark.parametrize(("layer", "error"), [(-1, ArgumentError), (True, DtypeError), (0.5, DtypeError)])
    def test_a_layer_that_is_none_is_refused(self, layer: Any, error: type[StatewiseError]) -> None:
        with refused(error, "Pairing.layer"):
            Pairing(torch.tensor([1, 0]), torch.full((2,), 0.5), layer=layer)

    def test_a_layer_outside_the_stack_is_refused(self) -> None:
        pairing = Pairing(torch.tensor([1, 0]), torch.full((2,), 0.5), layer=2)
        with refused(ArgumentError, "Pairing.layer", "got 2", "one of 2 layers"):
            LSTM(INPUT, HIDDEN, 2)(sequences(), pairing=pairing)

    def test_draws_for_the_sequences_are_refused_for_other_pairs(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=(ThroughTimeMix(), Zoneout(0.5)))
        pairing = Pairing(torch.tensor([1]), torch.tensor([0.5]), first=torch.tensor([0]))
        layer(sequences(), pairing=pairing, draws=layer.draw(sequences(), pairing=pairing))
        with refused(ShapeError, "draws", "of 2 sequences", "3 steps of 1 sequences", "the pairing"):
            layer(sequences(), pairing=pairing, draws=layer.draw(sequences()))

    def test_a_pairing_without_through_time_mix_is_refused(self) -> None:
        with refused(ArgumentError, "statewise.GRU pairing", "transforms=ThroughTimeMix()"):
            GRU(INPUT, HIDDEN)(sequences(), pairing=self.pairing(1, 0))

    def test_a_pairing_in_eval_mode_is_refused(self) -> None:
        layer = GRU(INPUT, HIDDEN, transforms=ThroughTimeMix()).eval()
        with refused(ArgumentError, "a pairing in eval mode", "training only", ".train()"):
            layer(sequences(), pairing=self.pairing(1, 0))


DROPOUTS = [InputDropout, OutputDropout, LockedDropout, LockedInputDropout, Zoneout, RecurrentDropout]


class TestDropouts:
    @pytest.mark.parametrize("kind", DROPOUTS)
    @pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, math.nan, math.inf])
    def test_a_probability_out_of_range_is_refused(self, kind: Any, p: float) -> None:
        with refused(ArgumentError, f"{kind.__name__}.p", f"got {p}"):
            kind(p)

    @pytest.mark.parametrize("kind", DROPOUTS)
    @pytest.mark.parametrize(("p", "found"), [(True, "bool"), ("0.5", "str"), (None, "NoneType")])
    def test_what_is_no_number_is_refused(self, kind: Any, p: Any, found: str) -> None:
        with refused(DtypeError, f"{kind.__name__}.p", f"got {found}", "a real number"):
            kind(p)

    def test_the_other_probabilities_are_checked_too(self) -> None:
        with refused(ArgumentError, "Zoneout.memory", "got 2"):
            Zoneout(0.5, memory=2)
        with refused(ArgumentError, "RecurrentDropout.input_p", "got -1"):
            RecurrentDropout(0.5, input_p=-1)

    def test_an_unknown_place_of_the_mask_is_refused(self) -> None:
        with refused(ArgumentError, "RecurrentDropout.mask_on", "got gates", "input, projection"):
            RecurrentDropout(0.5, mask_on="gates")

    @pytest.mark.parametrize("p", [-0.1, 1.0, math.nan])
    def test_embedding_dropout_checks_its_probability(self, p: float) -> None:
        with refused(ArgumentError, "embedding_dropout.p", f"got {p}"):
            embedding_dropout(nn.Embedding(3, 2), torch.tensor([0]), p=p, training=True)

    @EVERY_LAYER
    @pytest.mark.parametrize("p", [-0.1, 1.0, math.nan])
    def test_dropout_between_layers_is_checked_under_its_own_name(self, kind: Any, p: float) -> None:
        with refused(ArgumentError, f"statewise.{kind.__name__}.dropout", f"got {p}"):
            kind(INPUT, HIDDEN, num_layers=2, dropout=p)

    def test_dropout_between_the_layers_of_one_layer_warns(self) -> None:
        with pytest.warns(UserWarning, match="there is only one"):
            LSTM(INPUT, HIDDEN, dropout=0.5)

    @pytest.mark.parametrize("p", [-0.1, 1.0, math.nan])
    def test_weight_drop_checks_its_probability(self, p: float) -> None:
        with refused(ArgumentError, "WeightDrop.p", f"got {p}", "[0, 1)"):
            weight_drop(LSTM(INPUT, HIDDEN), "weight_hh_l0", p=p)


class TestTransforms:
    @pytest.mark.parametrize("layers", [(-1,), (0, -2), (0.5,), ("0",), (True,), 0, "0"])
    def test_what_is_no_layer_is_refused(self, layers: Any) -> None:
        with refused(ArgumentError, "Noise.layers", "got", "counted from 0"):
            Noise("gaussian", 0.5, layers=layers)

    @EVERY_LAYER
    def test_a_layer_beyond_the_last_is_refused(self, kind: Any) -> None:
        with refused(ArgumentError, "Zoneout.layers", "got (0, 2)", "from 0 to 1"):
            kind(INPUT, HIDDEN, num_layers=2, transforms=Zoneout(0.1, layers=(0, 2)))

    @pytest.mark.parametrize("layers", [(0, 1), (), None])
    def test_through_time_mix_belongs_to_one_layer(self, layers: Any) -> None:
        with refused(ArgumentError, "ThroughTimeMix.layers", str(layers), "one layer"):
            ThroughTimeMix(layers=layers)

    @pytest.mark.parametrize("first", [Noise("gaussian", 0.5), Zoneout(0.5), Centroids(3)], ids=repr)
    def test_through_time_mix_after_a_state_transform_is_refused(self, first: Transform) -> None:
        with refused(ArgumentError, "ThroughTimeMix after", "before all transforms of the state"):
            LSTM(INPUT, HIDDEN, transforms=[first, ThroughTimeMix()])

    @pytest.mark.parametrize("twice", [ThroughTimeMix(), RecurrentDropout(0.5)], ids=repr)
    def test_two_of_what_can_only_be_one_are_refused(self, twice: Transform) -> None:
        with refused(ArgumentError, "statewise.LSTM.transforms", f"{type(twice).__name__} twice", "wanted one"):
            LSTM(INPUT, HIDDEN, transforms=[twice, twice])

    @pytest.mark.parametrize("kind", [LSTM, OrthogonalRNN])
    @pytest.mark.parametrize(
        "wrong", [object(), None, "noise", Noise, nn.Dropout(0.5)], ids=["object", "None", "name", "class", "module"]
    )
    def test_what_is_no_transform_is_refused(self, kind: Any, wrong: Any) -> None:
        with refused(ArgumentError, f"statewise.{kind.__name__}.transforms", repr(wrong), "transforms of statewise"):
            kind(INPUT, HIDDEN, transforms=[Zoneout(0.5), wrong])


class TestCollecting:
    @EVERY_LAYER
    def test_an_unknown_word_is_refused_with_the_known_ones(self, kind: Any) -> None:
        with refused(ArgumentError, "collect", "['hidden']", "states, cells, gates, probabilities"):
            kind(INPUT, HIDDEN)(sequences(), collect=("states", "hidden"))

    def test_one_word_need_not_be_in_a_tuple(self) -> None:
        assert LSTM(INPUT, HIDDEN)(sequences(), collect="states")[2].states[0].shape == (STEPS, BATCH, HIDDEN)


class TestEngines:
    @EVERY_LAYER
    def test_an_unknown_engine_is_refused_with_the_known_ones(self, kind: Any) -> None:
        with refused(ArgumentError, f"statewise.{kind.__name__}.engine", "got gpu", "auto, reference, cpu"):
            kind(INPUT, HIDDEN, engine="gpu")

    def test_an_unknown_engine_set_later_is_refused_too(self) -> None:
        layer = LSTM(INPUT, HIDDEN)
        with refused(ArgumentError, "engine", "got gpu", "auto, reference, cpu"):
            layer.engine = "gpu"
        assert layer.engine == "auto"

    @EVERY_LAYER
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_the_cpu_engine_refuses_other_dtypes_with_the_remedy(self, kind: Any, dtype: torch.dtype) -> None:
        layer = kind(INPUT, HIDDEN, engine="cpu").to(dtype)
        with refused(EngineError, "engine='cpu'", "float32 and float64", str(dtype), "engine='auto'"):
            layer(sequences().to(dtype))

    @EVERY_LAYER
    def test_the_cpu_engine_refuses_another_device_with_the_remedy(self, kind: Any) -> None:
        layer = kind(INPUT, HIDDEN, engine="cpu").to("meta")
        with refused(EngineError, "engine='cpu'", "meta", "engine='auto'"):
            layer(sequences().to("meta"))

    def test_the_cpu_engine_refuses_collected_gradients_with_the_remedy(self) -> None:
        with refused(EngineError, "collected tensors with gradients", "engine='auto'"):
            LSTM(INPUT, HIDDEN, engine="cpu")(sequences(), collect="states", collect_grad=True)

    def test_another_engine_on_another_device_runs(self) -> None:
        assert LSTM(INPUT, HIDDEN, device="meta")(sequences().to("meta"))[0].shape == (STEPS, BATCH, HIDDEN)


class TestConstructors:
    @EVERY_LAYER
    @pytest.mark.parametrize("name", ["input_size", "hidden_size", "num_layers"])
    @pytest.mark.parametrize("size", [0, -1, True])
    def test_a_size_below_one_is_refused(self, kind: Any, name: str, size: int) -> None:
        sizes = {"input_size": INPUT, "hidden_size": HIDDEN, "num_layers": 1} | {name: size}
        with refused(ArgumentError, f"statewise.{kind.__name__}.{name}", f"got {size}", "at least 1"):
            kind(**sizes)

    @pytest.mark.parametrize("kind", MEMORIES)
    def test_projected_states_are_refused_with_the_remedy(self, kind: Any) -> None:
        with refused(ArgumentError, f"statewise.{kind.__name__}.proj_size", "got 3", "wanted 0", "torch.nn.Linear"):
            kind(INPUT, HIDDEN, proj_size=3)

    def test_an_unknown_nonlinearity_is_refused_with_the_known_ones(self) -> None:
        with refused(ArgumentError, "RNN.nonlinearity", "got gelu", "tanh, relu, sigmoid, identity, modrelu"):
            RNN(INPUT, HIDDEN, nonlinearity="gelu")

    @pytest.mark.parametrize("start", ["zeros", "uniform", ""])
    def test_an_unknown_start_of_a_circuit_is_refused(self, start: str) -> None:
        with refused(ArgumentError, "statewise.RAC.initial_state", f"got {start}", "ones, pinv, learned"):
            RAC(INPUT, HIDDEN, initial_state=start)

    def test_an_unknown_start_of_an_orthogonal_network_is_refused(self) -> None:
        with refused(ArgumentError, "statewise.OrthogonalRNN.initial_state", "got ones", "uniform, zeros, learned"):
            OrthogonalRNN(INPUT, HIDDEN, initial_state="ones")

    @pytest.mark.parametrize("rho", [-1, 6])
    def test_more_negative_signs_than_units_are_refused(self, rho: int) -> None:
        with refused(ArgumentError, "rho", f"got {rho}", "0..5"):
            OrthogonalRNN(INPUT, HIDDEN, rho=rho)

    @pytest.mark.parametrize("name", ["weight_hh_l1", "weight"])
    def test_an_unknown_weight_is_refused_with_the_known_ones(self, name: str) -> None:
        with refused(ArgumentError, f"LSTM.{name}", "no such weight", "weight_hh_l0"):
            weight_drop(LSTM(INPUT, HIDDEN), name)


CELLS = [
    statewise.RNNCell,
    statewise.MGUCell,
    statewise.GRUCell,
    statewise.MultiplicativeRNNCell,
    statewise.LSTMCell,
    statewise.PeepholeLSTMCell,
    statewise.RACCell,
    statewise.OrthogonalRNNCell,
]


@pytest.mark.parametrize("kind", CELLS)
class TestSingleSteps:
    def hx(self, kind: Any, *shape: int, **options: Any) -> Any:
        tensor = torch.zeros(shape or (BATCH, HIDDEN), **options)
        return (tensor, tensor) if kind in (statewise.LSTMCell, statewise.PeepholeLSTMCell) else tensor

    @pytest.mark.parametrize("shape", [(), (1, BATCH, INPUT), (BATCH, 7), (7,)])
    def test_a_wrong_shape_is_refused_with_both_shapes(self, kind: Any, shape: tuple[int, ...]) -> None:
        with refused(ShapeError, f"{kind.__name__} input: got {shape}", "(batch, 4) or (4,)"):
            kind(INPUT, HIDDEN)(torch.randn(shape))

    def test_a_wrong_dtype_is_refused_with_both_dtypes(self, kind: Any) -> None:
        with refused(DtypeError, "input: got torch.float64", "torch.float32"):
            kind(INPUT, HIDDEN)(torch.randn(BATCH, INPUT).double())

    def test_another_device_is_refused_with_both_devices(self, kind: Any) -> None:
        with refused(DeviceError, "input: got meta", "wanted cpu"):
            kind(INPUT, HIDDEN)(torch.randn(BATCH, INPUT, device="meta"))

    @pytest.mark.parametrize("shape", [(BATCH, 7), (3, HIDDEN), (HIDDEN,), (1, BATCH, HIDDEN)])
    def test_a_wrong_state_is_refused_with_both_shapes(self, kind: Any, shape: tuple[int, ...]) -> None:
        with refused(ShapeError, "hx: got", str(shape), "of shape (2, 5)"):
            kind(INPUT, HIDDEN)(torch.randn(BATCH, INPUT), self.hx(kind, *shape))

    def test_a_wrong_number_of_tensors_is_refused(self, kind: Any) -> None:
        with refused(ShapeError, "hx: got [(2, 5), (2, 5), (2, 5)]", "of shape (2, 5)"):
            kind(INPUT, HIDDEN)(torch.randn(BATCH, INPUT), (torch.zeros(BATCH, HIDDEN),) * 3)

    def test_a_state_of_another_dtype_or_device_is_refused(self, kind: Any) -> None:
        with refused(DtypeError, "hx: got torch.float64", "torch.float32"):
            kind(INPUT, HIDDEN)(torch.randn(BATCH, INPUT), self.hx(kind, dtype=torch.float64))
        with refused(DeviceError, "hx: got meta", "wanted cpu"):
            kind(INPUT, HIDDEN)(torch.randn(BATCH, INPUT), self.hx(kind, device="meta"))

    @pytest.mark.parametrize("name", ["input_size", "hidden_size"])
    @pytest.mark.parametrize("size", [0, -1, True])
    def test_a_size_below_one_is_refused(self, kind: Any, name: str, size: int) -> None:
        with refused(ArgumentError, f"{kind.__name__}.{name}", f"got {size}", ">= 1"):
            kind(**({"input_size": INPUT, "hidden_size": HIDDEN} | {name: size}))


# What no type checker would let through.
UNTYPED: dict[str, tuple[type[StatewiseError], tuple[str, ...]]] = {
    "LSTM(4, 5)([1, 2])": (DtypeError, ("got list", "a tensor or a PackedSequence")),
    "LSTM(4, 5)(None)": (DtypeError, ("got NoneType", "a tensor or a PackedSequence")),
    "LSTM(4, 5)(x, (torch.zeros(1, 2, 5), None))": (DtypeError, ("cx", "got NoneType", "a tensor")),
    "GRU(4, 5)(x, 'zeros')": (DtypeError, ("hx", "got str", "a tensor")),
    "LSTM(4, 5, engine='auto')(x, collect=None)": (ArgumentError, ("collect", "None", "states")),
    "LSTM(4, 5)(x, collect=('hidden', 1))": (ArgumentError, ("collect", "['1', 'hidden']", "states")),
    "LSTM(4, 5.0)": (ArgumentError, ("hidden_size", "got 5.0", "a whole number")),
    "LSTM('4', 5)": (ArgumentError, ("input_size", "got 4", "a whole number")),
    "LSTM(4, 5, 1.0)": (ArgumentError, ("num_layers", "got 1.0", "a whole number")),
    "LSTM(4, 5, engine=None)": (ArgumentError, ("engine", "got None", "auto, reference, cpu")),
    "LSTM(4, 5, 2, dropout='half')": (DtypeError, ("LSTM.dropout", "got str", "a real number")),
    "LSTM(4, 5, 2, dropout=True)": (DtypeError, ("LSTM.dropout", "got bool", "a real number")),
    "LSTM(4, 5, transform=Noise('gaussian', 0.5))": (UnknownArgumentError, ("'transform'", "mean transforms?")),
    "LSTMCell(4, 5, transforms=())": (UnknownArgumentError, ("LSTMCell", "'transforms'", "generator")),
    "OrthogonalRNN(4, 5, bias=True)": (UnknownArgumentError, ("OrthogonalRNN", "'bias'")),
    "RecurrentLayer(LSTMCell(4, 5), 4, 5)": (DtypeError, ("cell", "got LSTMCell", "statewise.cells.LSTMCell()")),
    "LSTM(4, 5, transforms=Noise)": (ArgumentError, ("transforms", "Noise")),
    "LSTM(4, 5, transforms='noise')": (ArgumentError, ("transforms", "'noise'", "an instance")),
    "LSTM(4, 5, transforms=object())": (ArgumentError, ("transforms", "object")),
    "RAC(4, 5, initial_state=3)": (ArgumentError, ("initial_state", "got 3", "ones, pinv, learned")),
    "RNN(4, 5, 1, None)": (ArgumentError, ("nonlinearity", "got None", "tanh")),
    "OrthogonalRNN(4, 5, rho=2.5)": (ArgumentError, ("rho", "got 2.5", "0..5")),
    "OrthogonalRNN(4, 5, rho=True)": (ArgumentError, ("rho", "got True", "0..5")),
    "weights.weight_drop(LSTM(4, 5), 'weight_hh_l0', p='half')": (ArgumentError, ("WeightDrop.p", "got half")),
    "LSTM(4, 5, transforms=Zoneout(0.1)).retune(3, p=0.2)": (ArgumentError, ("retune", "got 3", "Zoneout")),
    "LSTM(4, 5)(x, generator=3)": (DtypeError, ("generator", "got int", "torch.Generator")),
    "LSTM(4, 5)(x, draws=3)": (DtypeError, ("draws", "got int", "layer.draw")),
    "LSTM(4, 5, transforms=ThroughTimeMix())(x, pairing=3)": (DtypeError, ("pairing", "got int", "Pairing")),
    "Pairing([1, 0], torch.full((2,), 0.5))": (DtypeError, ("Pairing.partner", "got list")),
    "Pairing(torch.tensor([1, 0]), [0.5, 0.5])": (DtypeError, ("Pairing.coefficients", "got list")),
    "Pairing(torch.tensor([1, 0]), torch.tensor([1, 0]))": (DtypeError, ("Pairing.coefficients", "torch.int64")),
    "LSTM(4, 5, dtype=torch.int64)": (DtypeError, ("dtype", "torch.int64", "floating")),
    "GRUCell(4, 5.0)": (ArgumentError, ("hidden_size", "got 5.0", "a whole number")),
    "GRUCell(4, 5)([1])": (DtypeError, ("input", "got list", "a tensor")),
    "GRUCell(4, 5)(torch.ones(2, 4, dtype=torch.int64))": (DtypeError, ("input", "torch.int64", "torch.float32")),
    "LSTMCell(4, 5)(x[0], (torch.zeros(2, 5), 3))": (DtypeError, ("hx", "int", "tensors")),
    "upgrade(3)": (DtypeError, ("upgrade.model", "got int", "torch.nn.Module")),
    "upgrade(torch.nn.LSTM(4, 5), transforms=object())": (ArgumentError, ("transforms", "object")),
    "upgrade(torch.nn.LSTM(4, 5), engine=3)": (ArgumentError, ("engine", "got 3")),
}


@pytest.mark.parametrize("call", list(UNTYPED))
def test_an_argument_of_the_wrong_type_is_refused_by_name(call: str) -> None:
    error, words = UNTYPED[call]
    with refused(error, *words):
        names = {name: getattr(statewise, name) for name in statewise.__all__}
        eval(call, names | {"torch": torch, "x": sequences()})
