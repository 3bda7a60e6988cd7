"""Every layer keeps the contract of layers, and those that torch.nn has can take their place."""

from __future__ import annotations

from contracts.layers import LayerContract, TorchLayerContract


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


class TestLSTM(TorchLayerContract):
    name = "LSTM"


class TestPeepholeLSTM(LayerContract):
    name = "PeepholeLSTM"


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
