"""Every layer keeps the contract of layers, and those that torch.nn has can take their place."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given

from contracts.layers import LayerContract, TorchLayerContract
from contracts.members import MEMBERS
from contracts.passes import Case, Pass, assert_same, cases, few_examples, run


class TestRNNTanh(TorchLayerContract):
    name = "tanh"


class TestRNNRelu(TorchLayerContract):
    name = "relu"


class TestRNNSigmoid(LayerContract):
    name = "sigmoid"


class TestRNNIdentity(LayerContract):
    name = "identity"


class TestRNNModReLU(LayerContract):
    name = "modrelu"


class TestMGU(LayerContract):
    name = "MGU"


class TestGRU(TorchLayerContract):
    name = "GRU"


class TestGRUResetBefore(LayerContract):
    name = "GRU reset before"


class TestMultiplicativeRNN(LayerContract):
    name = "MultiplicativeRNN"

    @few_examples
    @given(case=cases())
    def test_with_a_factor_of_one_it_is_torchs_network_with_the_product_of_its_matrices(self, case: Case) -> None:
        """``W_f = 0``, ``b_f = 1``, ``b'_f = 0``: then ``h_t = tanh(W_n x + b_n + (U_n U_f) h_{t-1} + b'_n)``."""
        layer = self.member.build(replace(case, bias=True, dtype=torch.float64))
        theirs = torch.nn.RNN(**self.member.arguments(replace(case, bias=True, dtype=torch.float64)))
        held, size = layer.state_dict(), case.hidden
        for name in held:
            held[name][:size] *= float(name.startswith("weight_hh"))
            held[name][:size] += float(name.startswith("bias_ih"))
        layer.load_state_dict(held)
        theirs.load_state_dict(
            {
                name: value[size:] @ value[:size] if name.startswith("weight_hh") else value[size:]
                for name, value in held.items()
            }
        )
        wide = replace(case, bias=True, dtype=torch.float64)
        ours, torchs = run(layer, wide), run(theirs, wide)
        shared = ("inputs", "initial state")
        assert_same(*(Pass(p.values, {k: v for k, v in p.gradients.items() if k in shared}) for p in (ours, torchs)))


class TestLSTM(TorchLayerContract):
    name = "LSTM"


class TestPeepholeLSTM(LayerContract):
    name = "PeepholeLSTM"

    @few_examples
    @given(case=cases())
    def test_without_peepholes_it_is_torchs_lstm(self, case: Case) -> None:
        layer, theirs = self.member.build(case), torch.nn.LSTM(**self.member.arguments(case))
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if name.startswith("weight_ph"):
                    parameter.zero_()
        theirs.load_state_dict({name: layer.state_dict()[name] for name in theirs.state_dict()})
        done = run(layer, case)
        kept = {name: value for name, value in done.gradients.items() if not name.startswith("weight_ph")}
        assert_same(Pass(done.values, kept), run(theirs, case))


class TestRAC(LayerContract):
    name = "RAC"


class TestRACPinv(LayerContract):
    name = "RAC pinv"


class TestRACLearned(LayerContract):
    name = "RAC learned"


class TestOrthogonalRNN(LayerContract):
    name = "OrthogonalRNN"


class TestOrthogonalRNNZeros(LayerContract):
    name = "OrthogonalRNN zeros"


class TestOrthogonalRNNLearned(LayerContract):
    name = "OrthogonalRNN learned"


def test_every_member_is_tested_here() -> None:
    tested = {kind.name for kind in globals().values() if isinstance(kind, type) and hasattr(kind, "name")}
    assert tested == set(MEMBERS)
