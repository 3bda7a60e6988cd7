"""What every mixup promises: the slow, obvious mixture of each pair alone, whatever the batch, and nothing in eval."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from contracts.passes import few_examples, seeds, some_examples
from statewise import GRU, LSTM, RNN
from statewise.errors import ArgumentError, DeviceError, DtypeError, LengthError, ShapeError
from statewise.mixup import BinomialBeta, CoefficientProcess, Constant, Mixup, Pairs
from statewise.mixup.lengths import POLICIES
from statewise.mixup.pairing import RULES
from support import Tolerance

DOUBLE = torch.float64
EXACT: Tolerance = {"rtol": 1e-12, "atol": 1e-12}
WIDTH, HIDDEN, CLASSES = 3, 4, 5
CELLS: dict[str, tuple[Any, Any, Any]] = {
    "RNN": (RNN, nn.RNN, nn.RNNCell),
    "GRU": (GRU, nn.GRU, nn.GRUCell),
    "LSTM": (LSTM, nn.LSTM, nn.LSTMCell),
}


@dataclass(frozen=True)
class Wandering(CoefficientProcess):
    """Coefficients that are known before: they differ between steps and between pairs."""

    @property
    def persistence(self) -> float:
        return 1.0

    def variance(self, step: int) -> float:
        return 1 / 12

    def first(self, batch: int, generator: torch.Generator | None) -> Tensor:
        return (0.2 + 0.618 * torch.arange(batch, dtype=DOUBLE)) % 1

    def following(self, previous: Tensor, generator: torch.Generator | None) -> Tensor:
        return (previous + 0.37) % 1


@dataclass(frozen=True)
class Bunch:
    """A batch of sequences of several lengths, its labels, and a network; all a function of the seed."""

    lengths: tuple[int, ...]
    seed: int
    cell: str = "LSTM"
    both_ways: bool = False

    @property
    def steps(self) -> int:
        return max(self.lengths)

    def source(self, name: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed + name)

    def inputs(self, padding: int = 0, junk: float = 0.0) -> Tensor:
        """Sequences, and junk beyond their ends."""
        rows = torch.randn(self.steps, len(self.lengths), WIDTH, generator=self.source(1), dtype=DOUBLE)
        rows = torch.cat((rows, torch.zeros(padding, *rows.shape[1:], dtype=DOUBLE)))
        ended = torch.arange(len(rows)).unsqueeze(1) >= torch.tensor(self.lengths)
        return rows.masked_fill(ended.unsqueeze(2), junk)

    def labels(self, padding: int = 0, junk: int = -100) -> Tensor:
        rows = torch.randint(CLASSES, (self.steps, len(self.lengths)), generator=self.source(2))
        rows = torch.cat((rows, rows.new_zeros(padding, len(self.lengths))))
        return rows.masked_fill(torch.arange(len(rows)).unsqueeze(1) >= torch.tensor(self.lengths), junk)

    def build(self, kind: Any) -> nn.Module:
        layer: nn.Module = kind(WIDTH, HIDDEN, bidirectional=self.both_ways, dtype=DOUBLE)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.normal_(generator=self.source(3))
        return layer

    def head(self) -> Tensor:
        return torch.randn(HIDDEN * (2 if self.both_ways else 1), CLASSES, generator=self.source(4), dtype=DOUBLE)


@st.composite
def bunches(draw: st.DrawFn, *, least: int = 2) -> Bunch:
    """Any batch."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=least, max_size=5))
    return Bunch(tuple(lengths), draw(seeds) % 2**30, draw(st.sampled_from(sorted(CELLS))), draw(st.booleans()))


class Alone:
    """Every pair by itself, step by step, with torch's own cells: slow and obvious."""

    def __init__(self, bunch: Bunch, layer: nn.Module) -> None:
        self.bunch, self.cells = bunch, []
        for end in ("", "_reverse") if bunch.both_ways else ("",):
            cell = CELLS[bunch.cell][2](WIDTH, HIDDEN, dtype=DOUBLE)
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            cell.load_state_dict({name: layer.get_parameter(f"{name}_l0{end}") for name in names})
            self.cells.append(cell)

    def run(self, steps: int, step: Callable[[nn.Module, int, Any], Any]) -> Tensor:
        """The outputs of one sequence; ``step`` gives the state at a time from the one before it."""
        ways = []
        for cell, order in zip(self.cells, (range(steps), range(steps)[::-1]), strict=False):
            state, found = None, {}
            for time in order:
                state = step(cell, time, state)
                found[time] = state[0] if isinstance(state, tuple) else state
            ways.append(torch.stack([found[time] for time in range(steps)]))
        return torch.cat(ways, 1)

    def plain(self, x: Tensor) -> Tensor:
        return self.run(len(x), lambda cell, time, state: cell(x[time], state))

    def mixed(self, site: str, x: Tensor, y: Tensor, share: Tensor, *, ended: str) -> Tensor:
        """One pair of sequences, the shorter one continued by nothing."""
        steps = min(len(x), len(y)) if ended == "truncate" else max(len(x), len(y))
        share = share[:steps].clone()
        if ended == "handover":
            share[len(y) : len(x)], share[len(x) : len(y)] = 1, 0
        if site == "pre_output":
            first, second = (grown(self.plain(side)[:steps], steps) for side in (x, y))
            return share[:, None] * first + (1 - share[:, None]) * second
        x, y = grown(x[:steps], steps), grown(y[:steps], steps)
        if site == "input":
            return self.plain(share[:, None] * x + (1 - share[:, None]) * y)

        def step(cell: nn.Module, time: int, state: Any) -> Any:
            first, second = cell(x[time], state), cell(y[time], state)
            if isinstance(first, tuple):
                return tuple(share[time] * a + (1 - share[time]) * b for a, b in zip(first, second, strict=True))
            return share[time] * first + (1 - share[time]) * second

        return self.run(steps, step)


def grown(x: Tensor, steps: int) -> Tensor:
    return torch.cat((x, x.new_zeros(steps - len(x), x.shape[1])))


class MixupContract:
    """Inherit it, and say which mixup it is and which layers it takes."""

    kind: ClassVar[type[Mixup]]
    torchs: ClassVar[bool] = False

    def layer(self, bunch: Bunch) -> nn.Module:
        return bunch.build(CELLS[bunch.cell][1 if self.torchs else 0])

    def mixed(self, mix: Mixup, bunch: Bunch, layer: nn.Module, **options: Any) -> tuple[Tensor, Pairs]:
        """A run; the head's loss follows in :meth:`loss`."""
        padding, junk = options.pop("padding", 0), options.pop("junk", 0.0)
        x = bunch.inputs(padding, junk)
        return mix(layer, x, lengths=torch.tensor(bunch.lengths), generator=bunch.source(), **options)

    # --- the value

    def test_it_is_an_immutable_value(self) -> None:
        mix = self.kind(alpha=0.5, rho=0.1, pairing="double", lengths="zero")
        for twin in (copy.deepcopy(mix), pickle.loads(pickle.dumps(mix)), dataclasses.replace(mix)):
            assert twin == mix
            assert hash(twin) == hash(mix)
        with pytest.raises(dataclasses.FrozenInstanceError):
            mix.alpha = 1.0  # type: ignore[misc]
        assert dataclasses.replace(mix, alpha=1.0) != mix

    # --- what it computes

    @some_examples
    @given(
        bunch=bunches(),
        rule=st.sampled_from(sorted(RULES)),
        policy=st.sampled_from(POLICIES),
        padding=st.integers(0, 3),
        junk=st.sampled_from([0.0, float("nan")]),
    )
    def test_a_batch_gives_what_each_pair_gives_alone(
        self, bunch: Bunch, rule: str, policy: str, padding: int, junk: float
    ) -> None:
        """Outputs, loss and all gradients: padding, what it holds and the other pairs change nothing."""
        layer, head = self.layer(bunch), bunch.head()
        mix = self.kind(process=Wandering(), pairing=rule, lengths=policy)
        output, pairs = self.mixed(mix, bunch, layer, padding=padding, junk=junk)
        loss = pairs.cross_entropy(output @ head, bunch.labels(padding, junk=77))
        found = torch.autograd.grad(loss, list(layer.parameters()))

        alone, x, y = Alone(bunch, layer), bunch.inputs(), bunch.labels()
        drawn = mix.coefficients.sample(len(pairs), bunch.steps)
        losses = []
        for place, (one, other) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
            own, its = bunch.lengths[one], bunch.lengths[other]
            expected = alone.mixed(mix.site, x[:own, one], x[:its, other], drawn[:, place], ended=policy)
            steps = len(expected)
            torch.testing.assert_close(output[:steps, place], expected, **EXACT)
            assert not output[steps:, place].any()
            chances = (expected @ head).log_softmax(1)
            share = pairs.coefficients[:steps, place]
            for time in range(steps):
                if time < own:
                    losses.append(-share[time] * chances[time, y[time, one]])
                if time < its:
                    losses.append(-(1 - share[time]) * chances[time, y[time, other]])
        torch.testing.assert_close(loss, torch.stack(losses).sum() / len(pairs), **EXACT)
        weights = [weight for cell in alone.cells for weight in cell.parameters()]
        expected_grads = torch.autograd.grad(torch.stack(losses).sum() / len(pairs), weights)
        torch.testing.assert_close(found, expected_grads, rtol=1e-10, atol=1e-11)

    @some_examples
    @given(bunch=bunches(), policy=st.sampled_from(POLICIES))
    def test_exchanging_the_members_changes_neither_output_nor_loss(self, bunch: Bunch, policy: str) -> None:
        layer, mix = self.layer(bunch), self.kind(process=BinomialBeta(0.5, 1), pairing="double", lengths=policy)
        output, pairs = self.mixed(mix, bunch, layer)
        again, other = self.mixed(mix, bunch, layer, pairs=pairs.exchanged())
        torch.testing.assert_close(again, output, **EXACT)
        losses = [
            one.cross_entropy(states @ bunch.head(), bunch.labels())
            for states, one in ((output, pairs), (again, other))
        ]
        torch.testing.assert_close(*losses, **EXACT)

    @few_examples
    @given(bunch=bunches(), seed=seeds)
    def test_coefficient_1_is_the_first_member_0_the_second_and_oneself_is_plain(self, bunch: Bunch, seed: int) -> None:
        layer = self.layer(bunch)
        level = dataclasses.replace(bunch, lengths=(bunch.steps,) * len(bunch.lengths))
        plain = layer(level.inputs())[0]
        for share in (0.0, 1.0):
            mix = self.kind(process=Constant(share), pairing="derange")
            output, pairs = self.mixed(mix, level, layer)
            torch.testing.assert_close(output, plain[:, pairs.first if share else pairs.second], **EXACT)
        mix = self.kind(alpha=1.0, rho=0.5, pairing=with_oneself)
        torch.testing.assert_close(self.mixed(mix, level, layer)[0], plain, **EXACT)

    # --- randomness

    @few_examples
    @given(bunch=bunches(), rho=st.sampled_from([0.0, 0.3, 1.0]))
    def test_a_seed_repeats_pairs_coefficients_and_loss_bit_by_bit(self, bunch: Bunch, rho: float) -> None:
        layer, mix, before = self.layer(bunch), self.kind(alpha=0.5, rho=rho), torch.random.get_rng_state()
        (output, pairs), (again, same) = (self.mixed(mix, bunch, layer) for _ in range(2))
        for name in ("first", "second", "coefficients", "weights", "partner_weights", "mean_coefficient"):
            assert torch.equal(getattr(pairs, name), getattr(same, name))
        assert torch.equal(output, again)
        losses = [one.cross_entropy(output @ bunch.head(), bunch.labels()) for one in (pairs, same)]
        assert torch.equal(*losses)
        assert torch.equal(torch.random.get_rng_state(), before)
        given_again, _ = self.mixed(mix, bunch, layer, pairs=pairs)
        assert torch.equal(given_again, output)

    def test_coefficients_carry_no_gradient_and_have_the_inputs_dtype(self) -> None:
        bunch = Bunch((3, 2, 3), 5)
        _, pairs = self.mixed(self.kind(), bunch, self.layer(bunch))
        assert pairs.coefficients.dtype == DOUBLE
        assert not pairs.coefficients.requires_grad
        layer = self.layer(bunch).float()
        output, pairs = self.kind()(layer, bunch.inputs().float(), generator=bunch.source())
        assert output.dtype == pairs.coefficients.dtype == torch.float32

    # --- modes

    @few_examples
    @given(bunch=bunches(least=1))
    def test_in_eval_mode_it_is_the_plain_network_and_the_plain_loss(self, bunch: Bunch) -> None:
        layer = self.layer(bunch).eval()
        found = [self.mixed(self.kind(alpha=alpha, rho=rho), bunch, layer) for alpha, rho in ((0.1, 0.0), (9.0, 0.5))]
        assert torch.equal(found[0][0], found[1][0])
        output, pairs = found[0]
        own = torch.tensor(bunch.lengths)
        losses = []
        for row, length in enumerate(bunch.lengths):
            plain = layer(bunch.inputs()[:length, row : row + 1])[0][:, 0]
            torch.testing.assert_close(output[:length, row], plain, **EXACT)
            losses.append(
                nn.functional.cross_entropy(plain @ bunch.head(), bunch.labels()[:length, row], reduction="sum")
            )
        loss = pairs.cross_entropy(output @ bunch.head(), bunch.labels())
        torch.testing.assert_close(loss, torch.stack(losses).mean(), **EXACT)
        assert torch.equal(pairs.lengths, own)

    # --- refusals

    def test_what_it_cannot_run_is_refused_by_name(self) -> None:
        bunch, mix = Bunch((3, 2), 0), self.kind()
        layer, x = self.layer(bunch), bunch.inputs()
        with pytest.raises(LengthError, match="empty sequence in pair"):
            mix(layer, x, lengths=[3, 0])
        with pytest.raises(LengthError, match="4 steps, wanted at most 3"):
            mix(layer, x, lengths=[4, 2])
        with pytest.raises(ShapeError, match="1 of them, wanted 2"):
            mix(layer, x, lengths=[3])
        with pytest.raises(ArgumentError, match="pairs for"):
            mix(layer, x, pairs=Pairs.alone([3, 3], site="pre_output" if mix.site == "input" else "input"))
        with pytest.raises(ArgumentError, match="of other lengths"):
            mix(layer, x, lengths=[3, 1], pairs=mix.draw([3, 2]))
        batch_first = CELLS["GRU"][0](WIDTH, HIDDEN, batch_first=True)
        with pytest.raises(ArgumentError, match="batch_first=True, wanted time first"):
            mix(batch_first, x.float())

    @pytest.mark.usefixtures("as_users_have_it")
    def test_words_and_unbatched_sequences_are_refused(self) -> None:
        bunch, mix = Bunch((3, 2), 0), self.kind()
        layer = self.layer(bunch)
        with pytest.raises(DtypeError, match="vectors are mixed, never indices"):
            mix(layer, torch.zeros(3, 2, dtype=torch.long))
        with pytest.raises(ShapeError, match=r"\(steps, batch, width\)"):
            mix(layer, bunch.inputs()[:, 0])
        with pytest.raises(DtypeError, match=r"got PackedSequence, .*Give the padded batch and lengths="):
            mix(layer, pack_padded_sequence(bunch.inputs(), torch.tensor([3, 2])))  # type: ignore[arg-type]
        with pytest.raises(DtypeError, match="whole numbers"):
            mix(layer, bunch.inputs(), lengths=torch.tensor([3.0, 2.0]))

    def test_wrong_settings_are_refused(self) -> None:
        name = self.kind.__name__
        with pytest.raises(ArgumentError, match=rf"{name}\.lengths: got pad"):
            self.kind(lengths="pad")
        with pytest.raises(ArgumentError, match="alpha"):
            self.kind(alpha=-1.0)
        with pytest.raises(ArgumentError, match="rho"):
            self.kind(rho=2.0)
        with pytest.raises(ArgumentError, match=f"{name}: got alpha=0.5 and rho=0.0 beside a process"):
            self.kind(alpha=0.5, process=Constant(0.5))

    @pytest.mark.gpu
    def test_a_generator_of_a_device_is_refused(self) -> None:
        with pytest.raises(DeviceError, match="one on the CPU"):
            self.kind().draw([2, 2], generator=torch.Generator("cuda"))


def with_oneself(lengths: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    rows = torch.arange(len(lengths))
    return rows, rows
