"""Certificates: what they claim holds, what they rest on is checked, and what they cannot speak of is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import statewise
from networks import LastState
from statewise.automata import compile_machine, from_regex, random_words
from statewise.bounds import METHODS, BoundedInputs, Certificate, Ledger, certify, kl_inverse, network_class, quantise_
from statewise.bounds.grid import nats, prefix_nats, round_up
from statewise.bounds.occam import margin_scale
from statewise.bounds.reading import read_model
from statewise.data import Sequences
from statewise.errors import ArgumentError, AssumptionError, NonFiniteError
from statewise.models import ClassifierConfig


def small(kind: Any = nn.RNN, **options: Any) -> LastState:
    return LastState(kind(2, 3, batch_first=True, **options)).eval()


def labelled(model: nn.Module, count: int = 400, steps: int = 5) -> tuple[Tensor, Tensor]:
    """Sequences within the unit ball, with the model's own answers, so that it never errs."""
    inputs = torch.rand(count, steps, 2) - 0.5
    with torch.no_grad():
        return inputs, model(inputs).argmax(1)


#: The methods that are soon done; most questions are the same for all.
CHEAP = ("kl", "bits", "massart")

ARCHITECTURES: dict[str, Any] = {
    "RNN": nn.RNN,
    "GRU": nn.GRU,
    "LSTM": nn.LSTM,
    "ours": statewise.LSTM,
    "MGU": statewise.MGU,
    "two layers": lambda *sizes, **options: nn.GRU(*sizes, num_layers=2, **options),
    "both ways": lambda *sizes, **options: nn.RNN(*sizes, bidirectional=True, **options),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_gets_a_certificate(name: str) -> None:
    model = small(ARCHITECTURES[name])
    data = labelled(model, 20_000)
    found = certify(model, data, iid=True, input_bound=1.0, longest=5, methods=[*CHEAP, "low-rank", "dudley"])
    assert found.error == 0
    assert found.value == min(claim.value for claim in found.claims if claim.guarantee) < 0.5
    assert not found.vacuous
    assert "errs on at most" in found.sentence
    assert {matrix.name for matrix in found.matrices} >= {"V"}
    kl = found.claim("kl")
    assert kl.value == pytest.approx(kl_inverse(kl.risk, kl.total_nats / found.sequences), rel=1e-12)
    assert kl.nats["class"] == pytest.approx(sum(matrix.nats for matrix in found.matrices), rel=1e-9)


def test_delta_is_split_and_every_choice_is_paid() -> None:
    model = small()
    data = labelled(model)
    found = certify(model, data, iid=True, input_bound="measured", architectures=7, methods=[*CHEAP, "dudley"])
    shares = [claim.delta for claim in found.claims if claim.guarantee]
    assert sum(shares) <= 0.05 * (1 + 1e-12)
    assert len(set(shares)) == 1
    kl = found.claim("kl")
    assert kl.nats["longest"] == prefix_nats(5)
    assert kl.nats["input bound"] == round_up(float(data[0].norm(dim=2).max())).nats
    assert kl.nats["architecture"] == pytest.approx(math.log(7))
    assert kl.nats["margin"] == pytest.approx(nats(round(2 * math.log2(kl.gamma or 0))))
    assert kl.nats["confidence"] == pytest.approx(-math.log(kl.delta))
    assert kl.nats["constants"] >= 3 * math.log(3)
    assert found.claim("bits").nats["architecture"] == pytest.approx(math.log(7))


def test_promises_cost_nothing_and_are_held() -> None:
    model = LastState(nn.RNN(2, 3, batch_first=True, bias=False), bias=False).eval()
    data = labelled(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.999 / torch.linalg.matrix_norm(parameter, 2))
    norms = dict.fromkeys(("U", "W", "V"), 2.0)
    kl: dict[str, Any] = {"iid": True, "input_bound": 1.0, "longest": 5, "methods": ["kl"]}
    found = certify(model, data, **kl, promised=norms)
    assert found.claim("kl").nats["constants"] == pytest.approx(math.log(2))
    assert [matrix.norm for matrix in found.matrices] == pytest.approx([2.0] * 3, rel=2e-9)
    # Norms that stayed far below a promise are looked up and paid for, if that is cheaper.
    loose = certify(model, data, **kl, promised=dict.fromkeys(norms, 1e6))
    free = certify(model, data, **kl)
    assert loose.claim("kl").nats["constants"] == pytest.approx(free.claim("kl").nats["constants"] + math.log(2))
    with pytest.raises(AssumptionError, match="as was promised"):
        certify(model, data, iid=True, input_bound=1.0, promised={"U": 1e-3})
    with pytest.raises(AssumptionError, match="a promise on Q"):
        certify(model, data, iid=True, input_bound=1.0, promised={"Q": 1.0})


def test_the_margin_is_one_of_the_grid_and_the_risk_is_the_share_within_it() -> None:
    model = small()
    inputs, labels = labelled(model)
    found = certify(model, (inputs, labels), iid=True, input_bound=1.0, methods=CHEAP).claim("kl")
    assert found.gamma is not None
    assert 2 * math.log2(found.gamma) == pytest.approx(round(2 * math.log2(found.gamma)), abs=1e-12)
    logits = model(inputs)
    margins = logits.gather(1, labels[:, None])[:, 0] - logits.gather(1, 1 - labels[:, None])[:, 0]
    assert found.risk == pytest.approx(float((margins <= found.gamma).float().mean()), abs=0.01)


def test_a_reference_near_by_is_worth_something() -> None:
    torch.manual_seed(3)
    begun = small(statewise.RNN)
    model = LastState(statewise.RNN(2, 3, batch_first=True)).eval()
    model.load_state_dict({name: value + 1e-3 for name, value in begun.state_dict().items()})
    found = certify(model, labelled(model), iid=True, input_bound=1.0, reference=begun, methods=["kl", "reference"])
    assert found.claim("reference").nats["class"] < found.claim("kl").nats["class"] / 2
    with pytest.raises(statewise.errors.ShapeError, match="other matrices"):
        certify(model, labelled(model), iid=True, input_bound=1.0, reference=small(num_layers=2))


def test_rounded_weights_are_cheap_to_say() -> None:
    model = small()
    plain = certify(model, labelled(model), iid=True, methods=["bits"]).claim("bits")
    quantise_(model, levels=3)
    found = certify(model, labelled(model), iid=True, methods=["bits"])
    assert found.best.nats["weights"] < plain.nats["weights"] / 5
    assert found.matrices == ()


def test_an_automaton_is_certified_where_one_can_be_read() -> None:
    words = random_words("01", 1000, max_length=12, seed=0)
    data = Sequences.from_words(words, [int("0" not in word) for word in words])
    model = compile_machine(from_regex("1*", "01"))
    found = certify(model.eval(), data, iid=True)
    assert found.best.name == "automaton"
    assert found.best.about == "the network"
    assert found.value < 0.02
    assert "Centroids" in found.inapplicable["kl"]


def test_fresh_sequences_add_the_bound_of_a_held_out_set() -> None:
    model = small()
    fresh = labelled(model, 1000)
    found = certify(model, labelled(model), iid=True, input_bound=1.0, fresh=fresh, methods=[*CHEAP, "held-out"])
    held = found.claim("held-out")
    assert held.value == pytest.approx(kl_inverse(0.0, -math.log(held.delta) / 1000))
    assert any("fresh" in each.statement for each in found.assumptions)


def test_fresh_sequences_that_are_not_and_a_reference_that_was_trained_are_refused() -> None:
    model = small()
    inputs, labels = labelled(model)
    with pytest.raises(AssumptionError, match="50 sequences that are among the data"):
        certify(model, (inputs, labels), iid=True, input_bound=1.0, fresh=(inputs[-50:], labels[-50:]))
    with pytest.raises(AssumptionError, match="the weights of the model itself"):
        certify(model, (inputs, labels), iid=True, input_bound=1.0, reference=model)


def test_what_was_said_is_among_what_it_rests_on() -> None:
    model, begun = small(), small()
    twice = tuple(torch.cat([part, part[:7]]) for part in labelled(model))
    found = certify(
        model, twice, iid=True, input_bound=1.0, promised={"V": 9.0}, reference=begun, methods=["reference"],
        forward=model,
    )  # fmt: skip
    said = "\n".join(f"{each.statement}: {each.check}" for each in found.assumptions)
    for each in ("promised constants", "the reference was", "the methods were", "forward computes", "vocabulary"):
        assert each in said
    assert "7 of them are copies of others" in said


def test_the_headline_is_about_the_network_itself() -> None:
    words = random_words("01", 500, max_length=8, seed=0)
    data = Sequences.from_words(words, [int("0" not in word) for word in words])
    model = compile_machine(from_regex("1*", "01")).eval()
    model.retune(temperature=1e6)
    found = certify(model, data, iid=True)
    assert found.error > 0.2
    assert found.value >= found.error
    assert found.other is not None
    assert found.other.about == "the network at argmax"
    assert found.other.value < 0.05
    assert "the network at argmax errs on at most" in found.sentence


def test_a_model_that_shortens_its_inputs_needs_no_promise() -> None:
    model = BoundedInputs(small(), bound=0.25).eval()
    inputs = 10 * torch.randn(400, 5, 2)
    found = certify(model, (inputs, model(inputs).argmax(1)), iid=True, methods=CHEAP)
    assert "kl" in {claim.name for claim in found.claims}
    assert any("shortens" in each.check for each in found.assumptions)


def test_what_is_no_head_on_the_last_state_is_found_out() -> None:
    class Mean(LastState):
        def forward(self, inputs: Tensor) -> Tensor:
            logits: Tensor = self.head(self.layer(inputs)[0].mean(1))
            return logits

    model = Mean(nn.RNN(2, 3, batch_first=True)).eval()
    found = certify(model, labelled(model), iid=True, input_bound=1.0)
    assert "no linear head on the last state" in found.inapplicable["kl"]
    assert found.best.name == "bits"
    with pytest.raises(AssumptionError, match="certify, kl"):
        certify(model, labelled(model), iid=True, input_bound=1.0, methods=["kl"])


def test_random_labels_are_never_certified_under_the_true_error() -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        model = small()
        inputs = torch.rand(300, 5, 2) - 0.5
        data = inputs, torch.randint(2, (300,))
        assert certify(model, data, iid=True, input_bound=1.0, methods=CHEAP).value >= 0.5


def test_the_same_logits_for_all_are_wrong() -> None:
    model = small()
    nn.init.zeros_(model.head.weight)
    nn.init.zeros_(model.head.bias)
    inputs, _ = labelled(model)
    found = certify(model, (inputs, torch.zeros(len(inputs), dtype=torch.int64)), iid=True, input_bound=1.0)
    assert found.error == 1
    assert found.value == 1
    assert found.vacuous
    assert found.sentence.startswith("Nothing can be proved")


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        ({"iid": None}, AssumptionError, "certify.iid"),
        ({"iid": False}, AssumptionError, "Windows of one stream"),
        ({"input_bound": None}, AssumptionError, "inputs without a bound"),
        ({"input_bound": 0.01}, AssumptionError, "as was promised"),
        ({"input_bound": -1.0}, ArgumentError, "input_bound"),
        ({"input_bound": math.inf}, ArgumentError, "input_bound"),
        ({"longest": 4}, AssumptionError, "a sequence of 5 steps"),
        ({"longest": 0}, ArgumentError, "longest"),
        ({"delta": 0.0}, ArgumentError, "delta"),
        ({"delta": 1.0}, ArgumentError, "delta"),
        ({"delta": math.nan}, ArgumentError, "delta"),
        ({"architectures": 0}, ArgumentError, "architectures"),
        ({"methods": ["magic"]}, ArgumentError, "magic"),
        ({"methods": "kl"}, ArgumentError, "names in a list"),
        ({"input_bound": "mesured"}, ArgumentError, "mesured"),
        ({"methods": ["automaton"]}, AssumptionError, "classifiers of tokens"),
        ({"methods": ["held-out"]}, AssumptionError, "no fresh sequences"),
    ],
    ids=str,
)
def test_what_is_not_so_is_refused_by_name(change: dict[str, Any], kind: type[Exception], told: str) -> None:
    model = small()
    with pytest.raises(kind, match=told):
        certify(model, labelled(model), **{"iid": True, "input_bound": 1.0, **change})


@pytest.mark.parametrize("count", [0, 1])
def test_one_sequence_is_not_enough(count: int) -> None:
    model = small()
    inputs, labels = labelled(model)
    with pytest.raises(ArgumentError, match=f"{count} sequences"):
        certify(model, (inputs[:count], labels[:count]), iid=True, input_bound=1.0)


def test_a_network_that_is_not_finite_is_refused() -> None:
    model = small()
    data = labelled(model)
    with torch.no_grad():
        model.head.weight[0, 0] = math.inf
    with pytest.raises(NonFiniteError, match=r"head\.weight"):
        certify(model, data, iid=True, input_bound=1.0)


def test_long_sequences_and_strong_growth_stay_finite() -> None:
    model = small(bias=False)
    with torch.no_grad():
        model.layer.weight_hh_l0.copy_(3 * torch.eye(3))
    data = labelled(model, 4, steps=5000)
    found = certify(model, data, iid=True, input_bound=1.0)
    assert found.growth == pytest.approx(math.log(3), abs=0.09)
    assert math.isfinite(found.claim("kl").total_nats)
    for claim in found.claims:
        assert claim.log_penalty is None or math.isfinite(claim.log_penalty)
    json.dumps(found.to_json(), allow_nan=False)


def test_what_if_says_what_a_projection_is_worth() -> None:
    model = small(bias=False)
    with torch.no_grad():
        model.layer.weight_hh_l0.copy_(2 * torch.eye(3))
    found = certify(model, labelled(model), iid=True, input_bound=1.0, longest=5, methods=CHEAP)
    change = next(change for change in found.what_if if change.change == "project U to 1.0 (kl)")
    assert change.nats < -1
    # The class whose norm is promised to be 1 is the one that the projection would lead to.
    with torch.no_grad():
        model.layer.weight_hh_l0.copy_(torch.eye(3))
    promised = {matrix.name: matrix.norm for matrix in found.matrices} | {"U": 1.0}
    after = certify(model, labelled(model), iid=True, input_bound=1.0, longest=5, methods=["kl"], promised=promised)
    gamma = found.claim("kl").gamma
    assert gamma is not None
    matrices = read_model(model).matrices
    assert matrices is not None
    network = network_class(matrices, steps=5, input_bound=1.0 + 1e-6, ledger=Ledger(promised=promised))
    before = found.claim("kl").nats["class"]
    assert network.profile().cover_nats(margin_scale(gamma)) - before == pytest.approx(change.nats, rel=1e-6)
    assert {matrix.name: matrix.norm for matrix in after.matrices} == pytest.approx(promised, rel=2e-9)


def test_the_sequences_that_are_needed_would_do() -> None:
    model = small()
    found = certify(model, labelled(model, 20_000), iid=True, input_bound=1.0, methods=CHEAP, targets=(0.5, 0.2))
    for target, count in found.needed.items():
        assert count is not None
        assert kl_inverse(found.best.risk, found.best.total_nats / count) <= target * (1 + 1e-6)
        assert kl_inverse(found.best.risk, found.best.total_nats / (0.99 * count)) > target


def test_text_and_file_say_the_same(tmp_path: Path) -> None:
    model = small()
    found = certify(model, labelled(model), iid=True, input_bound=1.0)
    text = str(found)
    for each in (
        found.sentence,
        "Nats of each matrix",
        "What if",
        "Sequences needed",
        "Do not apply",
        "Rests on",
        "kl",
    ):
        assert each in text
    kept = json.loads(found.save(tmp_path / "certificate.json").read_text(encoding="utf-8"))
    assert kept["value"] == found.value
    assert kept["sentence"] == found.sentence
    assert [claim["name"] for claim in kept["claims"]] == [claim.name for claim in found.claims]
    assert {claim.name for claim in found.claims} | set(found.inapplicable) == set(METHODS)


def test_orders_without_a_guarantee_are_never_the_best() -> None:
    model = small()
    found = certify(model, labelled(model), iid=True, input_bound=1.0)
    order = found.claim("zhang-order")
    assert not order.guarantee
    assert order is found.claims[-1]
    with pytest.raises(AssumptionError, match="no bound that applies"):
        certify(model, labelled(model), iid=True, input_bound=1.0, methods=["zhang-order"])


def test_gates_are_taken_as_they_were_seen() -> None:
    model = small(statewise.MGU)
    with torch.no_grad():
        for parameter in model.layer.parameters():
            parameter.mul_(0.3)
    methods = ["kl", "measured-gates"]
    found = certify(model, labelled(model, 5000), iid=True, input_bound=1.0, longest=5, methods=methods)
    claim = found.claim("measured-gates")
    assert claim.value == pytest.approx(kl_inverse(claim.risk, claim.total_nats / 5000), rel=1e-9)
    assert claim.nats["constants"] < found.claim("kl").nats["constants"]
    assert claim.value < 0.5
    other = certify(small(), labelled(small()), iid=True, input_bound=1.0)
    assert "minimal gated units" in other.inapplicable["measured-gates"]


def test_a_network_of_filters_has_a_class_of_its_own() -> None:
    class Filters(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = statewise.ConvRNN(8, 3, batch_first=True)
            self.head = statewise.ConvReadout(8, 3, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            logits: Tensor = self.head(self.layer(inputs)[1][0])
            return logits

    model = Filters().double().eval()
    inputs = torch.rand(2000, 5, 8, dtype=torch.float64) / 3
    found = certify(model, (inputs, model(inputs).argmax(1)), iid=True, input_bound=1.0, longest=5)
    assert [(matrix.name, matrix.rows, matrix.columns) for matrix in found.matrices] == [
        ("U", 3, 1),
        ("V", 3, 1),
        ("W", 3, 1),
    ]
    assert found.claim("kl").nats["constants"] == 0
    assert found.growth == pytest.approx(-0.5 * math.log(3))
    assert "theorem-2" in {claim.name for claim in found.claims}
    assert "free entries" in found.inapplicable["low-rank"]


def test_our_classifier_of_tokens_needs_no_input_bound() -> None:
    model = ClassifierConfig(cell="rnn", hidden=3, embedding=2).build(tokens=2, classes=2, symbols="01").eval()
    words = random_words("01", 300, max_length=6, seed=0)
    data = Sequences.from_words(words, model.classify(words), symbols="01")
    found = certify(model, data, iid=True)
    assert isinstance(found, Certificate)
    assert "embedding" in {matrix.name for matrix in found.matrices}
    assert "input bound" not in found.claim("kl").nats
