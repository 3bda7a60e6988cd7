"""Known answers for the three places of sequence mixup in whole layers (Karamzade et al. 2020, "Sequence Mixup")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

from statewise import GRU, LSTM, MGU, RNN, OrthogonalRNN, Pairing, PeepholeLSTM, RecurrentLayer, ThroughTimeMix
from statewise.errors import ArgumentError
from support import CPU_ENGINES, Tolerance

ENGINES = CPU_ENGINES
SITES = ("input", "pre_output", "through_time")
CELLS = (RNN, MGU, GRU, LSTM, PeepholeLSTM)
DOUBLE = torch.float64
EXACT: Tolerance = {"rtol": 1e-12, "atol": 1e-12}

Kind = Callable[..., RecurrentLayer]


def network(kind: Kind, **options: Any) -> RecurrentLayer:
    """A layer of random weights, the peepholes among them, that can mix through time."""
    generator = torch.Generator().manual_seed(2020)
    if kind is MGU and options.get("engine") == "cpu":
        options["engine"] = "auto"  # the kernel has no code for mixing through time in this cell
    layer = kind(3, 4, **{"dtype": DOUBLE, "transforms": ThroughTimeMix(), "generator": generator} | options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator)
    return layer


def pair_up(x: Tensor, partner: Tensor, coefficients: Tensor) -> tuple[Tensor, Pairing]:
    """Both members as rows of one batch; a partner's own weight is what the first member leaves."""
    count = x.shape[1]
    swap = torch.cat((torch.arange(count, 2 * count), torch.arange(count)))
    return torch.cat((x, partner), 1), Pairing(swap, torch.cat((coefficients, 1 - coefficients), 1))


def mixed(site: str, layer: RecurrentLayer, x: Tensor, partner: Tensor, coefficients: Tensor) -> Tensor:
    """The states that reach the output map, for pairs of sequences (steps, pairs, input)."""
    weight = coefficients.unsqueeze(2)
    if site == "input":
        return plain(layer, weight * x + (1 - weight) * partner)
    if site == "pre_output":
        return weight * plain(layer, x) + (1 - weight) * plain(layer, partner)
    both, pairing = pair_up(x, partner, coefficients)
    output: Tensor = layer(both, pairing=pairing)[0]
    torch.testing.assert_close(*output.chunk(2, 1), **EXACT)  # both members see one and the same state
    return output.chunk(2, 1)[0]


def plain(layer: RecurrentLayer, x: Tensor) -> Tensor:
    output: Tensor = layer(x)[0]
    return output


def sequences(generator: torch.Generator, *, steps: int = 6, pairs: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    x, partner = torch.randn(2, steps, pairs, 3, generator=generator, dtype=DOUBLE)
    return x, partner, torch.rand(steps, pairs, generator=generator, dtype=DOUBLE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("site", SITES)
def test_weight_one_is_the_first_member_weight_zero_the_second_and_equal_members_are_plain(
    site: str, kind: Kind, bidirectional: bool, engine: str, generator: torch.Generator
) -> None:
    layer = network(kind, bidirectional=bidirectional, engine=engine)
    x, partner, coefficients = sequences(generator)
    ones = torch.ones_like(coefficients)
    torch.testing.assert_close(mixed(site, layer, x, partner, ones), plain(layer, x), **EXACT)
    torch.testing.assert_close(mixed(site, layer, x, partner, 0 * ones), plain(layer, partner), **EXACT)
    torch.testing.assert_close(mixed(site, layer, x, x, coefficients), plain(layer, x), **EXACT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("site", SITES)
def test_exchanging_the_members_changes_neither_output_nor_loss(
    site: str, kind: Kind, engine: str, generator: torch.Generator
) -> None:
    layer, head = network(kind, engine=engine), torch.randn(4, 5, generator=generator, dtype=DOUBLE)
    x, partner, coefficients = sequences(generator)
    labels, others = torch.randint(5, (2, 6, 3), generator=generator)

    def loss(states: Tensor, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
        scores = (states @ head).flatten(0, 1)
        of_first, of_second = (
            nn.functional.cross_entropy(scores, y.flatten(), reduction="none") for y in (first, second)
        )
        return (weight.flatten() * of_first + (1 - weight.flatten()) * of_second).sum()

    states = mixed(site, layer, x, partner, coefficients)
    exchanged = mixed(site, layer, partner, x, 1 - coefficients)
    torch.testing.assert_close(exchanged, states, **EXACT)
    torch.testing.assert_close(
        loss(exchanged, others, labels, 1 - coefficients), loss(states, labels, others, coefficients), **EXACT
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", CELLS)
def test_with_one_step_mixing_before_the_output_is_mixing_through_time(
    kind: Kind, engine: str, generator: torch.Generator
) -> None:
    x, partner, coefficients = sequences(generator, steps=1, pairs=50)
    layer = network(kind, engine=engine)
    before, through = (mixed(site, layer, x, partner, coefficients) for site in ("pre_output", "through_time"))
    torch.testing.assert_close(before, through, **EXACT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", CELLS)
def test_with_hard_weights_mixing_through_time_is_mixing_the_input(
    kind: Kind, engine: str, generator: torch.Generator
) -> None:
    layer = network(kind, engine=engine)
    x, partner, coefficients = sequences(generator)
    hard = coefficients.round()
    found = {site: mixed(site, layer, x, partner, hard) for site in SITES}
    torch.testing.assert_close(found["through_time"], found["input"], **EXACT)
    assert (found["pre_output"] - found["input"]).abs().max() > 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_in_a_linear_network_the_three_places_agree_for_constant_weights(
    engine: str, generator: torch.Generator
) -> None:
    """Through time equals input for any weights; before the output equals them for constant ones only."""
    layer = network(RNN, nonlinearity="identity", engine=engine)
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0").mul_(0.3)
    x, partner, varying = sequences(generator)
    found = {site: mixed(site, layer, x, partner, varying) for site in SITES}
    torch.testing.assert_close(found["through_time"], found["input"], **EXACT)
    assert (found["pre_output"] - found["input"]).abs().max() > 1e-3
    found = {site: mixed(site, layer, x, partner, varying[:1].expand_as(varying)) for site in SITES}
    torch.testing.assert_close(found["through_time"], found["input"], **EXACT)
    torch.testing.assert_close(found["pre_output"], found["input"], **EXACT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "site", "printed"),
    [
        (RNN, "input", (-0.4621171573, 0.3909177252)),
        (RNN, "pre_output", (-0.3807970780, 0.8498773353)),
        (RNN, "through_time", (-0.3807970780, 0.3201082613)),
        (GRU, "input", (-0.2876491366, 0.0287618997)),
        (GRU, "pre_output", (-0.3663714022, 0.1734837407)),
        (GRU, "through_time", (-0.3663714022, -0.0816021612)),
        (LSTM, "input", (-0.0652084830, 0.2282266402)),
        (LSTM, "pre_output", (0.0516555203, 0.5016564623)),
        (LSTM, "through_time", (0.0516555203, 0.2950952764)),
    ],
)
def test_one_unit_with_all_weights_one_gives_the_printed_outputs(
    kind: Kind, site: str, printed: tuple[float, float], engine: str
) -> None:
    """x = (1, 0.5), x' = (-1, 2), lambda = (0.25, 0.75)."""
    layer = kind(1, 1, bias=False, dtype=DOUBLE, engine=engine, transforms=ThroughTimeMix())
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(1)
    x, partner, coefficients = torch.tensor([[1.0, 0.5], [-1.0, 2.0], [0.25, 0.75]], dtype=DOUBLE)
    states = mixed(site, layer, x.reshape(2, 1, 1), partner.reshape(2, 1, 1), coefficients.reshape(2, 1))
    assert states.flatten().tolist() == pytest.approx(printed, abs=5.1e-11)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM])
@pytest.mark.parametrize("site", SITES)
def test_padding_changes_no_output_no_loss_and_no_gradient(
    site: str, kind: Kind, engine: str, generator: torch.Generator
) -> None:
    """Pairs of several lengths in both directions: any padding gives what each pair gives alone."""
    layer, lengths = network(kind, bidirectional=True, engine=engine), (2, 6, 4)
    x, partner, coefficients = sequences(generator)

    def backward(states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        layer.zero_grad()
        loss = torch.stack([(state**2).sum() for state in states]).sum()
        loss.backward()
        found = [parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None]
        return loss.detach(), found

    alone = [
        mixed(site, layer, *(part[:length, row : row + 1] for part in (x, partner, coefficients)))[:, 0]
        for row, length in enumerate(lengths)
    ]
    expected = backward(alone)
    assert len(expected[1]) == len(list(layer.parameters()))
    for steps, junk in ((0, 0.0), (3, 0.0), (3, float("nan"))):
        padding = torch.full((steps, 3, 3), junk, dtype=DOUBLE)
        first, second = (torch.cat((part, padding)) for part in (x, partner))
        states = padded_run(site, layer, first, second, coefficients, lengths)
        together = [states[:length, row] for row, length in enumerate(lengths)]
        for ours, theirs in zip(together, alone, strict=True):
            torch.testing.assert_close(ours, theirs, **EXACT)
        torch.testing.assert_close(backward(together), expected, rtol=1e-12, atol=1e-12)


def padded_run(
    site: str, layer: RecurrentLayer, x: Tensor, partner: Tensor, coefficients: Tensor, lengths: tuple[int, ...]
) -> Tensor:
    """As :func:`mixed`, for padded pairs that are packed on their way."""

    def run(batch: Tensor, count: int, **options: Any) -> Tensor:
        packed = pack_padded_sequence(batch, torch.tensor(lengths * count), enforce_sorted=False)
        return pad_packed_sequence(layer(packed, **options)[0])[0]

    steps = max(lengths)
    weight = coefficients[:steps].unsqueeze(2)
    if site == "input":
        blend = torch.cat((weight * x[:steps] + (1 - weight) * partner[:steps], x[steps:]))
        return run(blend, 1)
    if site == "pre_output":
        return weight * run(x, 1) + (1 - weight) * run(partner, 1)
    both, pairing = pair_up(x, partner, coefficients[:steps])
    return run(both, 2, pairing=pairing)[:, : len(lengths)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_both_directions_use_the_weight_of_the_same_position(
    kind: Kind, engine: str, generator: torch.Generator
) -> None:
    layer = network(kind, bidirectional=True, engine=engine)
    backwards = kind(3, 4, dtype=DOUBLE, transforms=ThroughTimeMix(), engine=engine)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    backwards.load_state_dict({name: layer.get_parameter(f"{name}_reverse") for name in names})
    x, partner, coefficients = sequences(generator)
    both_ways = mixed("through_time", layer, x, partner, coefficients)
    turned = mixed("through_time", backwards, x.flip(0), partner.flip(0), coefficients.flip(0))
    torch.testing.assert_close(both_ways[..., 4:], turned.flip(0), **EXACT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM])
@pytest.mark.parametrize("where", [0, 1])
def test_layers_below_the_mixing_one_run_on_each_member_and_those_above_on_the_mixed_stream(
    kind: Kind, where: int, engine: str, generator: torch.Generator
) -> None:
    generator_of_weights = torch.Generator().manual_seed(1)
    transforms = ThroughTimeMix(layers=(where,))
    stack = kind(3, 3, num_layers=2, dtype=DOUBLE, transforms=transforms, engine=engine, generator=generator_of_weights)
    single = [kind(3, 3, dtype=DOUBLE, transforms=ThroughTimeMix(), engine=engine) for _ in range(2)]
    for index, layer in enumerate(single):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        layer.load_state_dict({f"{name}_l0": stack.get_parameter(f"{name}_l{index}") for name in names})
    x, partner, coefficients = sequences(generator)
    found = mixed("through_time", stack, x, partner, coefficients)
    if where == 0:
        expected = plain(single[1], mixed("through_time", single[0], x, partner, coefficients))
    else:
        expected = mixed("through_time", single[1], plain(single[0], x), plain(single[0], partner), coefficients)
    torch.testing.assert_close(found, expected, **EXACT)


def test_the_memory_of_an_lstm_is_mixed_with_the_state_by_the_same_weight(generator: torch.Generator) -> None:
    """One step from a shared state: both parts of the final state are blends of the members' own."""
    layer = network(LSTM)
    x, partner, coefficients = sequences(generator, steps=1)
    start = torch.randn(2, 1, 3, 4, generator=generator, dtype=DOUBLE)
    both, pairing = pair_up(x, partner, coefficients)
    state = (torch.cat((start[0],) * 2, 1), torch.cat((start[1],) * 2, 1))
    _, ends = layer(both, state, pairing=pairing)
    of_x, of_partner = (layer(sequence, (start[0], start[1]))[1] for sequence in (x, partner))
    weight = coefficients.reshape(1, 3, 1)
    for end, first, second in zip(ends, of_x, of_partner, strict=True):
        torch.testing.assert_close(end[:, :3], weight * first + (1 - weight) * second, **EXACT)


class Pairs(NamedTuple):
    """Sequences of several lengths, and pairs of some of them."""

    sequences: tuple[Tensor, ...]
    first: Tensor
    second: Tensor
    coefficients: Tensor
    lengths: Tensor

    @classmethod
    def draw(cls, generator: torch.Generator, *, truncate: bool = False) -> Pairs:
        """Some sequences in no pair, some in several; a pair lasts as long as its longer member, or its shorter."""
        own = torch.tensor([3, 6, 1, 4, 6])
        first, second = torch.randint(5, (2, 4), generator=generator)
        lengths = torch.minimum(own[first], own[second]) if truncate else torch.maximum(own[first], own[second])
        made = tuple(torch.randn(length, 3, generator=generator, dtype=DOUBLE) for length in own.tolist())
        weights = torch.rand(int(lengths.max()), 4, generator=generator, dtype=DOUBLE)
        return cls(tuple(x.requires_grad_() for x in made), first, second, weights, lengths)

    def pairing(self, layer: int | None = None, *, given: bool = True) -> Pairing:
        lengths = self.lengths if given else None
        return Pairing(self.second, self.coefficients, first=self.first, lengths=lengths, layer=layer)

    def packed(self) -> Any:
        return pack_sequence(list(self.sequences), enforce_sorted=False)


def padded_to(x: Tensor, length: int) -> Tensor:
    """A sequence cut, or followed by zero vectors."""
    return torch.cat((x[:length], x.new_zeros(max(0, length - len(x)), x.shape[1])))


def by_hand(
    layer: RecurrentLayer, first: Tensor, second: Tensor, weights: Tensor, hx: Any = None
) -> tuple[Tensor, Any]:
    """One pair in one layer of one direction: a plain step from the shared state for each member, then the mixture."""
    outputs, state = [], hx
    for one, other, weight in zip(first, second, weights, strict=True):
        ends = [layer(member.reshape(1, 1, -1), state)[1] for member in (one, other)]
        parts = [end if isinstance(end, tuple) else (end,) for end in ends]
        mixture = tuple(weight * a + (1 - weight) * b for a, b in zip(*parts, strict=True))
        state = mixture if len(mixture) == 2 else mixture[0]
        outputs.append(mixture[0].flatten())
    return torch.stack(outputs), state


def singles(layer: RecurrentLayer, engine: str = "reference") -> list[list[RecurrentLayer]]:
    """The layers and directions of a stack, each as a layer of its own."""
    found = []
    for place in range(layer.num_layers):
        row = []
        for suffix in ("", "_reverse")[: layer.num_directions]:
            size = layer.input_size if place == 0 else layer.hidden_size * layer.num_directions
            one = type(layer)(size, layer.hidden_size, dtype=DOUBLE, engine=engine)  # type: ignore[call-arg, arg-type]
            names = {name: f"{name.removesuffix('_l0')}_l{place}{suffix}" for name in one.state_dict()}
            with torch.no_grad():
                for name, parameter in one.named_parameters():
                    parameter.copy_(layer.get_parameter(names[name]))
            row.append(one)
        found.append(row)
    return found


def truth(layer: RecurrentLayer, pairs: Pairs, where: int) -> list[Tensor]:
    """The outputs of all pairs, each alone and step by step: the layers below on its members, those above on it."""
    outputs, stack = [], singles(layer)
    for place, length in enumerate(pairs.lengths.tolist()):
        members = [pairs.sequences[int(which[place])] for which in (pairs.first, pairs.second)]
        for row in stack[:where]:
            members = [both_ways(row, x) for x in members]
        weights = pairs.coefficients[:length, place]
        one, other = (padded_to(member, length) for member in members)
        ways = [by_hand(stack[where][0], one, other, weights)[0]]
        if layer.bidirectional:
            ways.append(by_hand(stack[where][1], one.flip(0), other.flip(0), weights.flip(0))[0].flip(0))
        mixture = torch.cat(ways, 1)
        for row in stack[where + 1 :]:
            mixture = both_ways(row, mixture)
        outputs.append(mixture)
    return outputs


def both_ways(row: list[RecurrentLayer], x: Tensor) -> Tensor:
    ways = [row[0](x.unsqueeze(1))[0]] + [one(x.flip(0).unsqueeze(1))[0].flip(0) for one in row[1:]]
    return torch.cat(ways, 2).squeeze(1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize(("bidirectional", "where"), [(False, 0), (False, 1), (True, 0), (True, 2)])
@pytest.mark.parametrize("kind", [MGU, GRU, LSTM])
def test_pairs_of_any_sequences_are_what_each_pair_is_alone(
    kind: Kind, bidirectional: bool, where: int, truncate: bool, engine: str, generator: torch.Generator
) -> None:
    """A subset of unequal members, mixed in any layer of a stack, in both directions: outputs, states and gradients."""
    layer = network(kind, num_layers=3 if where else 1, bidirectional=bidirectional, engine=engine)
    pairs = Pairs.draw(generator, truncate=truncate)
    output, final = layer(pairs.packed(), pairing=pairs.pairing(where, given=truncate))
    found = [one[:length] for one, length in zip(pad_packed_sequence(output)[0].unbind(1), pairs.lengths, strict=True)]
    expected = truth(layer, pairs, where)
    state = final[0] if isinstance(final, tuple) else final
    assert state.shape == (layer.num_layers * layer.num_directions, 4, 4)
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        torch.testing.assert_close(ours, theirs, **EXACT)
        torch.testing.assert_close(state[-layer.num_directions, place], ours[-1, :4], **EXACT)
    upstream = [torch.randn(one.shape, generator=generator, dtype=DOUBLE) for one in found]
    gradients = (torch.autograd.grad(of, pairs.sequences, upstream, allow_unused=True) for of in (found, expected))
    for ours, theirs in zip(*gradients, strict=True):
        assert (ours is None or not ours.any()) if theirs is None else True
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_unequal_members_with_weight_one_are_the_first_and_with_zero_the_second(
    kind: Kind, engine: str, generator: torch.Generator
) -> None:
    """Followed by zero vectors where they end first; and exchanging the members changes nothing."""
    layer, pairs = network(kind, bidirectional=True, engine=engine), Pairs.draw(generator)

    def run(first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
        return pad_packed_sequence(layer(pairs.packed(), pairing=Pairing(second, weights, first=first))[0])[0]

    ones = torch.ones_like(pairs.coefficients)
    for members, weights in ((pairs.first, ones), (pairs.second, 0 * ones)):
        alone = [padded_to(pairs.sequences[int(i)], int(n)) for i, n in zip(members, pairs.lengths, strict=True)]
        expected = pad_packed_sequence(layer(pack_sequence(alone, enforce_sorted=False))[0])[0]
        torch.testing.assert_close(run(pairs.first, pairs.second, weights), expected, **EXACT)
    torch.testing.assert_close(
        run(pairs.second, pairs.first, 1 - pairs.coefficients),
        run(pairs.first, pairs.second, pairs.coefficients),
        **EXACT,
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_a_padded_input_with_the_lengths_of_the_pairs_is_the_packed_one(
    kind: Kind, engine: str, generator: torch.Generator
) -> None:
    """Zero padding goes through the cell as a member does that has ended; outputs are zero beyond a pair's end."""
    layer, pairs = network(kind, bidirectional=True, engine=engine), Pairs.draw(generator)
    padded = torch.stack([padded_to(x, 6) for x in pairs.sequences], 1)
    output, final = layer(padded, pairing=pairs.pairing())
    packed, expected = layer(pairs.packed(), pairing=pairs.pairing())
    torch.testing.assert_close(output, pad_packed_sequence(packed)[0], **EXACT)
    torch.testing.assert_close(final, expected, **EXACT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_given_initial_states_are_mixed_by_the_weight_of_the_first_step(
    kind: Kind, engine: str, generator: torch.Generator
) -> None:
    """From the mixing layer on; below it every sequence starts from its own."""
    layer, pairs = network(kind, num_layers=2, engine=engine), Pairs.draw(generator)
    parts = torch.randn(2, 2, 5, 4, generator=generator, dtype=DOUBLE)
    hx = (parts[0], parts[1]) if kind is LSTM else parts[0]

    def of(layer_index: int, sequence: Any) -> tuple[Tensor, ...]:
        return tuple(part[layer_index, int(sequence)].reshape(1, 1, 4) for part in parts)

    def argument(state: tuple[Tensor, ...]) -> Any:
        return state if kind is LSTM else state[0]

    found = pad_packed_sequence(layer(pairs.packed(), hx, pairing=pairs.pairing(1))[0])[0]
    (below,), (mixing,) = singles(layer)
    for place, length in enumerate(pairs.lengths.tolist()):
        members = [int(which[place]) for which in (pairs.first, pairs.second)]
        inputs = [below(pairs.sequences[m].unsqueeze(1), argument(of(0, m)))[0].squeeze(1) for m in members]
        weights = pairs.coefficients[:length, place]
        starts = zip(*(of(1, m) for m in members), strict=True)
        start = tuple(weights[0] * one + (1 - weights[0]) * other for one, other in starts)
        one, other = (padded_to(x, length) for x in inputs)
        expected, _ = by_hand(mixing, one, other, weights, argument(start))
        torch.testing.assert_close(found[:length, place], expected, **EXACT)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_below_the_mixing_layer_final_states_are_the_first_members_and_what_is_seen_the_sequences(
    kind: Kind, generator: torch.Generator
) -> None:
    layer, pairs = network(kind, num_layers=2), Pairs.draw(generator)
    _, final, seen = layer(pairs.packed(), pairing=pairs.pairing(1), collect=("states",))
    _, alone, plainly = layer(pairs.packed(), collect=("states",))
    one, other = (end[0] if isinstance(end, tuple) else end for end in (final, alone))
    torch.testing.assert_close(one[0], other[0, pairs.first], **EXACT)
    torch.testing.assert_close(seen.states[0], plainly.states[0], **EXACT)
    assert seen.states[1].shape[:2] == (int(pairs.lengths.max()), 4)


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_the_mixture_through_time_can_be_differentiated_twice(engine: str, generator: torch.Generator) -> None:
    """On the reference engine, which runs where coefficients want gradients; the dealing out of rows is included."""
    layer, pairs = network(GRU, engine=engine), Pairs.draw(generator)
    pairs.coefficients.requires_grad_()

    def run(*sequences: Tensor) -> Tensor:
        output: Tensor = layer(pairs._replace(sequences=sequences).packed(), pairing=pairs.pairing())[0].data
        return output

    assert torch.autograd.gradgradcheck(run, pairs.sequences, fast_mode=True)


@pytest.mark.parametrize("initial_state", ["uniform", "learned", "zeros"])
def test_a_layer_with_a_beginning_of_its_own_begins_for_the_pairs(
    initial_state: str, generator: torch.Generator
) -> None:
    layer = OrthogonalRNN(3, 4, 2, dtype=DOUBLE, initial_state=initial_state)
    pairs = Pairs.draw(generator)
    draws = layer.draw(pairs.packed(), pairing=pairs.pairing(1), generator=generator)
    output, final = layer(pairs.packed(), pairing=pairs.pairing(1), draws=draws)
    assert final.shape == (2, 4, 4)
    again = layer(pairs.packed(), pairing=pairs.pairing(1), draws=draws)[0]
    torch.testing.assert_close(again.data, output.data, **EXACT)


@pytest.mark.parametrize("kind", CELLS)
def test_in_eval_mode_the_network_is_the_plain_one_with_the_plain_parameters(
    kind: Kind, generator: torch.Generator
) -> None:
    layer = network(kind).eval()
    bare = kind(3, 4, dtype=DOUBLE)
    bare.load_state_dict(layer.state_dict())
    x, partner, coefficients = sequences(generator)
    assert torch.equal(plain(layer, x), plain(bare, x))
    both, pairing = pair_up(x, partner, coefficients)
    with pytest.raises(ArgumentError, match="eval mode"):
        layer(both, pairing=pairing)
