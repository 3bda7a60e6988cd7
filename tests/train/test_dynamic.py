"""Dynamic evaluation: the published update, scores before steps, noise off, and nothing left behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import statewise
from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.train.dynamic import dynamic_evaluation, gradient_statistics
from statewise.train.dynamic_steps import DecayedStep, GradientStatistics
from statewise.transforms import Noise
from statewise.weights import weight_drop
from support import tolerance
from train.playing import stand_in

WORDS = 11
DTYPE = torch.float64


class Model(nn.Module):
    """A tiny language model with everything on that must be off in evaluation."""

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 6, dtype=DTYPE)
        self.dropout = nn.Dropout(0.5)
        self.recurrent = recurrent
        self.decode = nn.Linear(6, WORDS, dtype=DTYPE)
        self.decode.weight = self.embed.weight
        self.modes: list[bool] = []

    def loss(self, inputs: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, int, Any]:
        self.modes.append(self.dropout.training or self.training)
        output, state = self.recurrent(self.dropout(self.embed(inputs)), state)
        logits = self.decode(output).flatten(0, 1)
        return cross_entropy(logits, targets.flatten(), reduction="sum"), targets.numel(), state


def ours() -> nn.Module:
    layer = statewise.LSTM(6, 6, 2, dropout=0.5, transforms=Noise("gaussian", 0.5), dtype=DTYPE)
    return weight_drop(layer, ["weight_hh_l0", "weight_hh_l1"], p=0.5)


def torchs() -> nn.Module:
    return weight_drop(nn.LSTM(6, 6, 2, dropout=0.5, dtype=DTYPE), ["weight_hh_l0", "weight_hh_l1"], p=0.5)


def stream(generator: torch.Generator, segments: int = 6, batch: int = 1) -> list[tuple[Tensor, Tensor]]:
    text = torch.randint(WORDS, (5 * segments + 1, batch), generator=generator)
    return [(text[5 * i : 5 * i + 5], text[5 * i + 1 : 5 * i + 6]) for i in range(segments)]


def plain_evaluation(model: Model, batches: list[tuple[Tensor, Tensor]]) -> float:
    modes = [module.training for module in model.modules()]
    model.eval()
    total, state = 0.0, None
    with torch.no_grad():
        for inputs, targets in batches:
            value, _, state = model.loss(inputs, targets, state)
            total += float(value)
    for module, mode in zip(model.modules(), modes, strict=True):
        module.training = mode
    return total


EVERY_MODEL = pytest.mark.parametrize("recurrent", [ours, torchs])


def settled(recurrent: Callable[[], nn.Module], generator: torch.Generator) -> Model:
    model = Model(recurrent())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=DTYPE) * 0.5)
    return model


class TestTheStep:
    @pytest.mark.parametrize(
        ("convention", "moved"), [("new", (1.0836711, -2.1820792)), ("old", (1.0911711, -2.1870792))]
    )
    def test_the_known_answers_of_both_conventions(self, convention: Any, moved: tuple[float, float]) -> None:
        weights = {name: nn.Parameter(torch.tensor(value, dtype=DTYPE)) for name, value in (("a", 1.0), ("b", -2.0))}
        roots = {"a": torch.tensor(0.3, dtype=DTYPE), "b": torch.tensor(0.1, dtype=DTYPE)}
        rule = DecayedStep(
            weights,
            statistics=GradientStatistics(roots, batches=1),
            lr=0.002,
            decay=0.1,
            epsilon=0.001,
            convention=convention,
        )
        with rule.restored():
            weights["a"].data.fill_(1.1)
            weights["b"].data.fill_(-2.2)
            weights["a"].grad, weights["b"].grad = (torch.tensor(grad, dtype=DTYPE) for grad in (0.2, -0.4))
            rule.step()
            assert tuple(weight.item() for weight in weights.values()) == pytest.approx(moved, abs=5e-8)
        assert tuple(weight.item() for weight in weights.values()) == (1.0, -2.0)

    def test_the_pull_never_goes_past_the_origin(self) -> None:
        weight = nn.Parameter(torch.zeros(2, dtype=DTYPE))
        statistics = GradientStatistics({"w": torch.tensor([1e-3, 1e3], dtype=DTYPE)}, batches=1)
        rule = DecayedStep({"w": weight}, statistics=statistics, lr=0.0, decay=0.9, epsilon=1e-3)
        weight.data.fill_(1.0)
        weight.grad = torch.zeros(2, dtype=DTYPE)
        rule.step()
        assert weight.tolist() == pytest.approx([1 - 0.9 * 1e-3 / 500, 0.0], abs=1e-8)

    def test_a_parameter_without_a_gradient_is_only_pulled_back(self) -> None:
        weights = {name: nn.Parameter(torch.zeros(1, dtype=DTYPE)) for name in "ab"}
        statistics = GradientStatistics({name: torch.ones(1, dtype=DTYPE) for name in "ab"}, batches=1)
        rule = DecayedStep(weights, statistics=statistics, lr=0.1, decay=0.25, epsilon=1.0)
        for weight in weights.values():
            weight.data.fill_(1.0)
        weights["b"].grad = torch.ones(1, dtype=DTYPE)
        rule.step()
        assert [weight.item() for weight in weights.values()] == pytest.approx([0.75, 0.70])

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"lr": -1.0}, r"dynamic_evaluation\.lr: got -1\.0, wanted a number >= 0"),
            ({"decay": math.nan}, r"dynamic_evaluation\.decay: got nan"),
            ({"epsilon": 0.0}, r"epsilon: got 0\.0, .* A word that the training set lacks has a root of 0\."),
            ({"convention": "newer"}, r"convention: got newer, wanted \"new\" or \"old\""),
        ],
    )
    def test_senseless_settings_are_refused(self, options: Any, text: str, as_users_have_it: None) -> None:
        statistics = GradientStatistics({"w": torch.ones(1)}, batches=1)
        settings = {"lr": 0.1, "decay": 0.1, "epsilon": 0.1, **options}
        with pytest.raises(ArgumentError, match=text):
            DecayedStep({"w": nn.Parameter(torch.ones(1))}, statistics=statistics, **settings)

    @pytest.mark.parametrize(
        ("roots", "text"),
        [({}, r"statistics\.roots\['w'\]: got nothing"), ({"w": torch.ones(3)}, r"got shape \(3,\), wanted .* \(2,\)")],
    )
    def test_statistics_of_another_model_are_refused(self, roots: Any, text: str) -> None:
        statistics = GradientStatistics(roots, batches=1)
        with pytest.raises(ShapeError, match=text):
            DecayedStep({"w": nn.Parameter(torch.ones(2))}, statistics=statistics, lr=0, decay=0, epsilon=1)

    def test_statistics_of_nothing_are_refused(self) -> None:
        statistics = GradientStatistics({"w": torch.zeros(2)}, batches=1)
        with pytest.raises(ArgumentError, match=r"got roots of mean 0\.0, wanted a finite mean > 0"):
            DecayedStep({"w": nn.Parameter(torch.ones(2))}, statistics=statistics, lr=0, decay=0, epsilon=1)


class TestStatistics:
    def test_they_are_roots_of_mean_squares_of_gradients_of_means(self, generator: torch.Generator) -> None:
        model = settled(torchs, generator).eval()
        batches = stream(generator, segments=3, batch=4)
        statistics = gradient_statistics(model.loss, model.named_parameters(), batches)
        squares, state = torch.zeros_like(model.embed.weight), None
        for inputs, targets in batches:
            model.zero_grad()
            value, count, state = model.loss(inputs, targets, state)
            (value / count).backward()
            state = tuple(part.detach() for part in state)
            assert isinstance(model.embed.weight.grad, Tensor)
            squares = squares + model.embed.weight.grad.square()
        torch.testing.assert_close(statistics.roots["embed.weight"], (squares / 3).sqrt(), **tolerance(DTYPE))
        assert statistics.batches == 3
        assert "decode.weight" not in statistics.roots  # tied, and counted once

    @EVERY_MODEL
    def test_they_belong_to_raw_weights_without_noise(self, recurrent: Any, generator: torch.Generator) -> None:
        model, batches = settled(recurrent, generator), stream(generator)
        model.train()
        first, again = (
            gradient_statistics(model.loss, model.named_parameters(), batches, model=model) for _ in range(2)
        )
        assert "recurrent.parametrizations.weight_hh_l0.original" in first.roots
        assert all(torch.equal(first.roots[name], again.roots[name]) for name in first.roots)
        assert not any(model.modes)
        assert all(module.training for module in model.modules())
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_no_batch_is_no_statistics(self) -> None:
        weight = nn.Parameter(torch.ones(1))
        with pytest.raises(LengthError, match=r"gradient_statistics\.batches: got no batch"):
            gradient_statistics(lambda *_: (weight.sum(), 1, None), {"w": weight}, [])


class TestEvaluation:
    @EVERY_MODEL
    def test_without_rate_and_decay_it_is_plain_evaluation(self, recurrent: Any, generator: torch.Generator) -> None:
        model, batches = settled(recurrent, generator), stream(generator)
        model.train()
        statistics = gradient_statistics(model.loss, model.named_parameters(), batches, model=model)
        score = dynamic_evaluation(
            model.loss,
            model.named_parameters(),
            batches,
            statistics=statistics,
            lr=0.0,
            decay=0.0,
            epsilon=1e-5,
            model=model,
        )
        assert score.nll == pytest.approx(plain_evaluation(model, batches), rel=1e-12)
        assert score.tokens == 30
        assert score.perplexity == pytest.approx(math.exp(score.nll / 30))

    @EVERY_MODEL
    def test_a_segment_is_scored_before_the_model_has_seen_it(self, recurrent: Any, generator: torch.Generator) -> None:
        model, batches = settled(recurrent, generator), stream(generator)
        statistics = gradient_statistics(model.loss, model.named_parameters(), batches, model=model)
        options: dict[str, Any] = {"statistics": statistics, "lr": 0.05, "decay": 0.01, "epsilon": 1e-3, "model": model}
        one = dynamic_evaluation(model.loss, model.named_parameters(), batches[:1], **options)
        assert one.nll == pytest.approx(plain_evaluation(model, batches[:1]), rel=1e-12)
        # On a text that repeats itself, what was seen helps.
        repeated = batches[:1] * 20
        moving = dynamic_evaluation(model.loss, model.named_parameters(), repeated, **options)
        assert moving.nll < 0.8 * plain_evaluation(model, repeated)

    def test_settings_of_the_old_convention_become_those_of_the_new(self, generator: torch.Generator) -> None:
        model, batches = settled(ours, generator), stream(generator, segments=9)
        statistics = gradient_statistics(model.loss, model.named_parameters(), batches, model=model)
        tensors, root = len(statistics.roots), math.sqrt(statistics.batches)
        old: dict[str, Any] = {"lr": 0.05, "decay": 0.5, "epsilon": 1e-2, "convention": "old"}
        new: dict[str, Any] = {"lr": 0.05 / root, "decay": 0.5 / tensors, "epsilon": 1e-2 / root}
        scores = [
            dynamic_evaluation(
                model.loss, model.named_parameters(), batches, statistics=statistics, model=model, **settings
            )
            for settings in (old, new)
        ]
        assert scores[0].nll == pytest.approx(scores[1].nll, rel=1e-10)
        assert scores[0].nll != pytest.approx(plain_evaluation(model, batches), rel=1e-4)

    @EVERY_MODEL
    @pytest.mark.parametrize("fails", [False, True])
    def test_the_model_is_left_as_it_was_bit_for_bit(
        self, recurrent: Any, fails: bool, generator: torch.Generator
    ) -> None:
        model, batches = settled(recurrent, generator), stream(generator)
        model.train()
        model.dropout.eval()
        statistics = gradient_statistics(model.loss, model.named_parameters(), batches, model=model)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        seen = 0

        def loss(inputs: Tensor, targets: Tensor, state: Any) -> Any:
            nonlocal seen
            seen += 1
            if fails and seen == 4:
                raise KeyboardInterrupt
            return model.loss(inputs, targets, state)

        try:
            with torch.no_grad():  # which a caller who evaluates may well have
                dynamic_evaluation(
                    loss,
                    model.named_parameters(),
                    batches,
                    statistics=statistics,
                    lr=0.1,
                    decay=0.01,
                    epsilon=1e-3,
                    model=model,
                )
        except KeyboardInterrupt:
            assert fails
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
        assert all(parameter.grad is None for parameter in model.parameters())
        assert [model.training, model.dropout.training, model.recurrent.training] == [True, False, True]
        assert model.recurrent.dropout == 0.5

    @EVERY_MODEL
    def test_some_parameters_alone_can_adapt_and_gradients_that_a_user_keeps_are_still_there(
        self, recurrent: Any, generator: torch.Generator
    ) -> None:
        model, batches = settled(recurrent, generator), stream(generator)
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 2.0)
        model.embed.weight.requires_grad_(False)
        kept = {name: (parameter.grad, parameter.requires_grad) for name, parameter in model.named_parameters()}
        some, seen = {"decode.bias": model.decode.bias}, []

        def loss(inputs: Tensor, targets: Tensor, state: Any) -> Any:
            seen.append([name for name, parameter in model.named_parameters() if parameter.requires_grad])
            return model.loss(inputs, targets, state)

        statistics = gradient_statistics(loss, some, batches, model=model)
        options: dict[str, Any] = {"statistics": statistics, "lr": 0.1, "decay": 0.1, "epsilon": 0.1}
        moving = dynamic_evaluation(loss, some, batches, model=model, **options)
        assert moving.nll != pytest.approx(plain_evaluation(model, batches), rel=1e-9)
        assert seen == [["decode.bias"]] * 12
        for name, parameter in model.named_parameters():
            assert isinstance(parameter.grad, Tensor)
            assert parameter.grad is kept[name][0]
            assert parameter.requires_grad == kept[name][1]
            assert parameter.grad.unique().tolist() == [2.0]

    @pytest.mark.parametrize("kind", [int, torch.tensor])
    def test_a_segment_without_targets_does_no_harm(self, kind: Any) -> None:
        weight = nn.Parameter(torch.zeros(1, dtype=DTYPE))

        def loss(inputs: None, targets: Tensor, state: Any) -> Any:
            return (weight - targets).square().sum(), kind(len(targets)), None

        ones, none = torch.ones(2, dtype=DTYPE), torch.ones(0, dtype=DTYPE)
        statistics = GradientStatistics({"w": torch.ones(1, dtype=DTYPE)}, batches=1)
        with_and_without = [
            dynamic_evaluation(
                loss,
                {"w": weight},
                [(None, targets) for targets in stream],
                statistics=statistics,
                lr=0.1,
                decay=0.0,
                epsilon=0.1,
            )
            for stream in ([ones, none, ones], [ones, ones])
        ]
        assert with_and_without[0] == with_and_without[1]

    def test_a_model_that_minds_its_mode_itself_is_asked_to_change_it(self, generator: torch.Generator) -> None:
        asked: list[bool] = []

        class Minding(Model):
            def train(self, mode: bool = True) -> Minding:
                asked.append(mode)
                return super().train(mode)

        model = Minding(ours())
        model.dropout.eval()
        gradient_statistics(model.loss, model.named_parameters(), stream(generator, 2), model=model)
        assert asked == [False]
        assert not any(model.modes)
        assert model.training
        assert not model.dropout.training

    def test_no_target_is_no_score(self) -> None:
        weight = nn.Parameter(torch.ones(1))
        with pytest.raises(LengthError, match=r"dynamic_evaluation\.batches: got no target"):
            dynamic_evaluation(
                lambda *_: (weight.sum(), 1, None),
                {"w": weight},
                [],
                statistics=GradientStatistics({"w": torch.ones(1)}, batches=1),
                lr=0.1,
                decay=0.1,
                epsilon=0.1,
            )

    @EVERY_MODEL
    def test_steps_that_are_played_as_a_graph_are_eager_ones(
        self, recurrent: Any, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model, batches = settled(recurrent, generator), stream(generator, segments=12)

        def run(**options: Any) -> tuple[float, GradientStatistics]:
            statistics = gradient_statistics(model.loss, model.named_parameters(), batches, model=model, **options)
            rule: dict[str, Any] = {"statistics": statistics, "lr": 0.05, "decay": 0.1, "epsilon": 1e-3, **options}
            return dynamic_evaluation(
                model.loss, model.named_parameters(), batches, model=model, **rule
            ).nll, statistics

        eager, expected = run(graph=False)
        recorders = stand_in(monkeypatch)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        played, statistics = run()
        # The first call has no state, and three more are rehearsals.
        assert [(recorder.rehearsals, len(recorder.recordings)) for recorder in recorders] == [(4, 1), (4, 1)]
        assert played == pytest.approx(eager, rel=1e-12)
        assert all(torch.allclose(statistics.roots[name], root, rtol=1e-12) for name, root in expected.roots.items())
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())

    @pytest.mark.gpu
    @EVERY_MODEL
    def test_on_a_device_gradients_flow_through_fused_layers(self, recurrent: Any, generator: torch.Generator) -> None:
        model, batches = settled(recurrent, generator), stream(generator)
        expected, scores = plain_evaluation(model, batches), []
        model.cuda()
        moved = [(inputs.cuda(), targets.cuda()) for inputs, targets in batches]
        statistics = gradient_statistics(model.loss, model.named_parameters(), moved, model=model)
        for lr in (0.0, 0.01):
            score = dynamic_evaluation(
                model.loss,
                model.named_parameters(),
                moved,
                statistics=statistics,
                lr=lr,
                decay=0.0,
                epsilon=1e-5,
                model=model,
            )
            scores.append(score.nll)
        assert scores[0] == pytest.approx(expected, rel=1e-9)
        assert scores[1] != pytest.approx(expected, rel=1e-9)

    @pytest.mark.gpu
    @EVERY_MODEL
    @pytest.mark.parametrize("kind", [int, torch.tensor])
    def test_on_a_device_captured_steps_are_eager_ones(
        self, recurrent: Any, kind: Any, generator: torch.Generator
    ) -> None:
        model, batches = settled(recurrent, generator).cuda(), stream(generator, segments=12)
        moved = [(inputs.cuda(), targets.cuda()) for inputs, targets in batches]
        short = [(inputs[:3], targets[:3]) for inputs, targets in moved[:1]]
        calls = 0

        def loss(inputs: Tensor, targets: Tensor, state: Any) -> Any:
            nonlocal calls
            calls += 1
            value, count, state = model.loss(inputs, targets, state)
            return value, count if kind is int else torch.full((), count, device="cuda"), state

        def run(graph: Any) -> tuple[float, GradientStatistics]:
            parameters = dict(model.named_parameters())
            options: dict[str, Any] = {"lr": 0.05, "decay": 0.1, "epsilon": 1e-3, "model": model, "graph": graph}
            statistics = gradient_statistics(loss, parameters, moved, model=model, graph=graph)
            score = dynamic_evaluation(loss, parameters, moved + short, statistics=statistics, **options)
            assert score.tokens == 63
            return score.nll, statistics

        (eager, plain), seen = run(False), calls
        captured, same = run(True)
        assert seen == 25
        assert calls - seen == 11  # without a state, three rehearsals and a capture; twice, and the short segment
        assert captured == pytest.approx(eager, rel=1e-9)
        for name, root in plain.roots.items():
            torch.testing.assert_close(same.roots[name], root, **tolerance(DTYPE))
        assert all(parameter.grad is None for parameter in model.parameters())
