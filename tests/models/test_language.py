"""The language model: what it computes, and what it refuses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import statewise
from statewise import Noise
from statewise.errors import ArgumentError, DtypeError, LengthError, ShapeError
from statewise.heads import Softmax
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.transforms import LockedDropout
from support import tolerance

WORDS = 31


@pytest.fixture
def tokens(generator: torch.Generator) -> Tensor:
    return torch.randint(WORDS, (9, 4), generator=generator)


def plain(**options: object) -> LanguageModel:
    return LanguageModelConfig(hidden=(7, 7), **options).build(WORDS).double()  # type: ignore[arg-type]


def test_it_computes_what_torchs_modules_compute(tokens: Tensor) -> None:
    model = plain()
    lstm = nn.LSTM(7, 7, 2).double()
    lstm.load_state_dict(model.layers[0].state_dict())
    assert isinstance(model.head, Softmax)
    hidden, _ = lstm(model.embedding(tokens))
    expected = F.linear(hidden, model.embedding.weight, model.head.bias).log_softmax(-1)
    found, state = model(tokens)
    torch.testing.assert_close(found, expected, **tolerance(torch.float64))
    nll = F.nll_loss(expected[:-1].flatten(0, 1), tokens[1:].flatten())
    torch.testing.assert_close(model.loss(tokens[:-1], tokens[1:]).total, nll, **tolerance(torch.float64))
    assert len(state) == 1


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "mgu", "peephole", "rac"])
@pytest.mark.parametrize("hidden", [(7, 7), (5, 6, 7)])
def test_segments_with_a_carried_state_equal_one_pass(cell: str, hidden: tuple[int, ...], tokens: Tensor) -> None:
    model = LanguageModelConfig(cell=cell, hidden=hidden).build(WORDS).double().eval()
    whole, _ = model(tokens)
    first, state = model(tokens[:4])
    second, _ = model(tokens[4:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole, **tolerance(torch.float64))


@pytest.mark.parametrize("head", ["softmax", "mixture", "adaptive"])
@pytest.mark.parametrize("placement", ["recurrent", "outputs", "last"])
def test_every_head_trains_under_every_placement_of_noise(head: str, placement: str, tokens: Tensor) -> None:
    config = LanguageModelConfig(
        hidden=(7, 7), head=head, tied=head != "adaptive", experts=2, noise="gamma", gamma=0.4, placement=placement
    )
    model = config.build(WORDS, generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        found = model.loss(tokens[:-1], tokens[1:])
        found.total.backward()
        optimizer.step()
        losses.append(float(found.nll.detach()))
    assert losses[-1] < 0.85 * losses[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_noise_is_off_in_eval_mode(tokens: Tensor) -> None:
    model = plain(noise="gaussian", gamma=1.1)
    model.eval()
    quiet = plain().eval()
    quiet.load_state_dict(model.state_dict())
    assert torch.equal(model(tokens)[0], quiet(tokens)[0])


def test_one_generator_gives_one_loss(tokens: Tensor) -> None:
    model = plain(noise="gaussian", gamma=1.1, output_dropout=0.5, embedding_dropout=0.3, weight_drop=0.5)

    def loss(seed: int) -> Tensor:
        return model.loss(tokens[:-1], tokens[1:], generator=torch.Generator().manual_seed(seed)).total

    assert torch.equal(loss(3), loss(3))
    assert not torch.equal(loss(3), loss(4))


def test_the_activation_penalty_reads_what_the_head_reads_and_the_temporal_one_does_not(tokens: Tensor) -> None:
    lstm = statewise.LSTM(7, 7).double()
    options = {"outputs": (Noise("gaussian", 2.0, placement="last"), LockedDropout(0.5))}
    model = LanguageModel(WORDS, lstm, activation=2.0, temporal=1.0, **options).double()  # type: ignore[arg-type]
    draw = torch.Generator().manual_seed(0)
    features, raw, _ = model.features(tokens[:-1], generator=draw)
    found = model.loss(tokens[:-1], tokens[1:], generator=draw.manual_seed(0))
    expected = found.nll + 2.0 * features.square().mean() + (raw[1:] - raw[:-1]).square().mean()
    torch.testing.assert_close(found.total, expected, **tolerance(torch.float64))
    assert not torch.equal(features, raw)
    quiet, _ = lstm(model.embedding(tokens[:-1]))
    torch.testing.assert_close(raw, quiet, **tolerance(torch.float64))


def test_penalties_are_part_of_training_only(tokens: Tensor) -> None:
    model = plain(activation=2.0, temporal=1.0).eval()
    found = model.loss(tokens[:-1], tokens[1:])
    assert torch.equal(found.total, found.nll)


def test_a_single_step_has_no_temporal_penalty(tokens: Tensor) -> None:
    assert bool(plain(temporal=1.0).loss(tokens[:1], tokens[1:2]).total.isfinite())


def test_tied_weights_are_one_parameter_and_the_softmax_sees_no_dropped_word(tokens: Tensor) -> None:
    model = plain(embedding_dropout=0.9)
    names = [name for name, _ in model.named_parameters()]
    assert "head.weight" not in names
    features, _, _ = model.features(tokens, generator=torch.Generator().manual_seed(0))
    assert isinstance(model.head, Softmax)
    torch.testing.assert_close(model.head.logits(features), F.linear(features, model.embedding.weight, model.head.bias))


def test_layers_are_taken_with_the_weights_that_they_have() -> None:
    layer = statewise.LSTM(5, 5)
    before = {name: parameter.detach().clone() for name, parameter in layer.named_parameters()}
    LanguageModel(WORDS, layer)
    assert all(torch.equal(parameter, before[name]) for name, parameter in layer.named_parameters())


def test_biases_start_at_zero_unless_told_otherwise() -> None:
    assert not any(bool(p.any()) for n, p in plain().named_parameters() if "bias" in n)
    assert any(bool(p.any()) for n, p in plain(zero_biases=False).named_parameters() if "bias" in n)
    assert float(plain().embedding.weight.detach().abs().max()) <= 0.1


def test_what_cannot_be_a_language_model_is_refused(tokens: Tensor) -> None:
    with pytest.raises(ArgumentError, match="looks back"):
        LanguageModel(WORDS, statewise.LSTM(4, 4, bidirectional=True))
    with pytest.raises(ShapeError, match=r"layers\[1\]: got input_size 5, wanted 4"):
        LanguageModel(WORDS, [statewise.LSTM(4, 4), statewise.LSTM(5, 4)])
    with pytest.raises(DtypeError, match=r"upgrade"):
        LanguageModel(WORDS, [nn.LSTM(4, 4)])
    with pytest.raises(LengthError, match="at least one recurrent layer"):
        LanguageModel(WORDS, [])
    with pytest.raises(ArgumentError, match="Give tied=False"):
        LanguageModel(WORDS, statewise.LSTM(4, 4), head="adaptive")
    with pytest.raises(ArgumentError, match=r"head: got crf"):
        LanguageModel(WORDS, statewise.LSTM(4, 4), head="crf")
    with pytest.raises(ShapeError, match="one for 4 and 31"):
        LanguageModel(WORDS, statewise.LSTM(4, 4), head=Softmax(5, WORDS))
    with pytest.raises(ArgumentError, match=r"activation: got -1"):
        LanguageModel(WORDS, statewise.LSTM(4, 4), activation=-1)
    with pytest.raises(ArgumentError, match=r"words: got 1"):
        LanguageModel(1, statewise.LSTM(4, 4))
    model = plain()
    with pytest.raises(LengthError, match="at least one"):
        model(tokens[:0])
    with pytest.raises(ShapeError, match="2 entries"):
        model(tokens, (None, None))


def test_a_config_refuses_what_makes_no_model() -> None:
    with pytest.raises(ArgumentError, match=r"cell: got transformer"):
        LanguageModelConfig(cell="transformer")
    with pytest.raises(ArgumentError, match="the width of each layer"):
        LanguageModelConfig(hidden=())
    with pytest.raises(ArgumentError, match=r"0\.5 with noise=None"):
        LanguageModelConfig(gamma=0.5)
    with pytest.raises(ArgumentError, match="None with noise='gaussian'"):
        LanguageModelConfig(noise="gaussian")
    with pytest.raises(ArgumentError, match=r"placement: got here"):
        LanguageModelConfig(noise="gaussian", gamma=0.5, placement="here")
    with pytest.raises(ArgumentError, match=r"head: got crf"):
        LanguageModelConfig(head="crf")
    with pytest.raises(ArgumentError, match=r"embedding: got 0"):
        LanguageModelConfig(embedding=0)
    with pytest.raises(ArgumentError, match=r"weight_drop: got -0.5"):
        LanguageModelConfig(weight_drop=-0.5)
    with pytest.raises(ArgumentError, match=r'latent_dropout: got 0.2 with head="softmax"'):
        LanguageModelConfig(latent_dropout=0.2)
    with pytest.raises(ArgumentError, match=r"Noise.gamma"):
        LanguageModelConfig(noise="bernoulli", gamma=1.5)


def test_a_config_places_noise_and_dropout_where_it_says() -> None:
    config = LanguageModelConfig(
        hidden=(5, 6, 7), noise="gamma", gamma=0.4, placement="outputs", locked=True, weight_drop=0.5,
        input_dropout=0.4, hidden_dropout=0.2, output_dropout=0.3, recurrent_dropout=0.1,
    )  # fmt: skip
    model = config.build(WORDS)
    shown = [repr(layer.transforms) for layer in model.layers]
    assert "LockedInputDropout(0.4, layers=(0,))" in shown[0]
    assert "LockedInputDropout(0.2" not in shown[0]
    assert "LockedInputDropout(0.2, layers=(0,))" in shown[1]
    assert "Noise('gamma', 0.4, layers=(0,), placement='outputs')" in shown[1]
    assert "Noise" not in shown[2], "the top layer's noise acts after the temporal penalty has looked"
    assert [type(t).__name__ for t in model.outputs] == ["Noise", "LockedDropout"]
    stacked = LanguageModelConfig(hidden=(7, 7), noise="gaussian", gamma=1.0, placement="recurrent").build(WORDS)
    assert repr(stacked.layers[0].transforms) == "(Noise('gaussian', 1.0, placement='recurrent'),)"


def test_a_penalty_can_stand_in_for_noise(tokens: Tensor) -> None:
    """On average over many draws the loss with strong noise is the clean loss plus the penalty, to second order."""
    drawn = plain(noise="gaussian", gamma=0.2, placement="last")
    drawn.initialise(torch.Generator().manual_seed(0))
    penalised = plain(noise="gaussian", gamma=0.2, placement="penalty")
    penalised.load_state_dict(drawn.state_dict())
    with torch.no_grad():
        for model in (drawn, penalised):
            for parameter in model.parameters():
                parameter.mul_(12)  # so that the penalty is more than the error of so many draws
    assert penalised.outputs == ()
    found = penalised.loss(tokens[:-1], tokens[1:])
    clean = drawn.eval().loss(tokens[:-1], tokens[1:]).nll
    torch.testing.assert_close(found.nll, clean)
    many = tokens.repeat(1, 4000)
    with torch.no_grad():
        noisy = drawn.train().loss(many[:-1], many[1:], generator=torch.Generator().manual_seed(0)).total
    penalty = float((found.total - found.nll).detach())
    assert penalty > 1e-3
    assert float((noisy - clean).detach()) == pytest.approx(penalty, rel=0.15)
    assert torch.equal(penalised.eval().loss(tokens[:-1], tokens[1:]).total, clean)


def test_a_mixture_has_no_penalty_to_stand_in(tokens: Tensor) -> None:
    with pytest.raises(DtypeError, match="no explicit penalty"):
        plain(head="mixture", noise="gaussian", gamma=0.2, placement="penalty")


def test_targets_that_are_not_there_do_not_count(tokens: Tensor) -> None:
    model, targets = plain(), tokens[1:].clone()
    targets[4:] = -100
    half = model.loss(tokens[:4], tokens[1:5])
    torch.testing.assert_close(model.loss(tokens[:-1], targets).nll, half.nll)


def test_fresh_weights_reach_what_weight_drop_hides() -> None:
    model = plain(weight_drop=0.5)
    before = {name: p.detach().clone() for name, p in model.named_parameters() if p.ndim == 2}
    model.initialise(torch.Generator().manual_seed(9))
    assert len(before) == 5
    assert not any(torch.equal(before[name], p) for name, p in model.named_parameters() if name in before)
    hidden = dict(model.named_parameters())["layers.0.parametrizations.weight_hh_l1.original"]
    bound = 7**-0.5
    assert float(hidden.detach().abs().max()) <= bound


def test_all_biases_are_zero_in_a_mixture_too() -> None:
    model = plain(head="mixture", experts=2)
    assert not any(bool(p.any()) for name, p in model.named_parameters() if "bias" in name)


def test_a_temporal_penalty_on_noise_that_is_fed_back_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="the temporal penalty sees it"):
        plain(noise="gaussian", gamma=0.5, temporal=1.0)
    plain(noise="gaussian", gamma=0.5, temporal=1.0, placement="outputs")
    below = Noise("gaussian", 0.5, layers=(0,))
    LanguageModel(11, statewise.LSTM(4, 4, 2, transforms=below), temporal=1.0)
