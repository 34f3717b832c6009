"""What we rely on in onnx2torch, operator by operator: an upgrade that changes it fails by name."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import fx, nn

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.program import open_program
from fgp_vnn.network.maps.kinds import kind
from fgp_vnn.network.onnx.affinity import absolute_part, linear_part
from fgp_vnn.network.onnx.convert import CONVERTED, convert
from fgp_vnn.network.onnx.graph import Graph
from fgp_vnn.network.onnx.read import read_graph
from tests.helpers.network_models import Builder

IMAGE, VECTOR = (1, 2, 5, 4), (1, 6)
_RANDOM = np.random.default_rng(7)


def _values(*shape: int) -> Any:
    return _RANDOM.uniform(0.5, 2, shape).astype(np.float32)


def _ints(*values: int) -> Any:
    return np.asarray(values, dtype=np.int64)


class Contract(NamedTuple):
    """An operator on the input and some constants, and what it is to be converted to."""

    operator: str
    module: str  # the class of the module
    shape: tuple[int, ...] = IMAGE
    constants: tuple[Any, ...] = ()
    attributes: dict[str, Any] = {}  # noqa: RUF012
    opset: int = 17
    reads: tuple[str, ...] = ()  # what we read of the module, or of the last one of several


_CONVOLUTION = ("weight", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")
_BATCH_NORM = tuple(_values(2) for _ in range(4))

CONTRACTS = [
    Contract("Add", "OnnxBinaryMathOperation", constants=(_values(2, 1, 4),)),
    Contract("AveragePool", "AvgPool2d", attributes={"kernel_shape": [2, 2], "strides": [1, 2]}),
    Contract("AveragePool", "AvgPool1d", (1, 2, 6), attributes={"kernel_shape": [3]}),
    Contract("BatchNormalization", "Normalisation", constants=_BATCH_NORM),
    Contract("BatchNormalization", "Normalisation", (1, 2), constants=_BATCH_NORM),
    Contract("Concat", "OnnxConcat", constants=(_values(1, 1, 5, 4),), attributes={"axis": 1}),
    Contract(
        "Conv",
        "Conv2d",
        constants=(_values(4, 1, 2, 3), _values(4)),
        attributes={"group": 2, "pads": [1, 0, 1, 0], "strides": [2, 1], "dilations": [2, 1]},
        reads=_CONVOLUTION,
    ),
    Contract("Conv", "Conv1d", (1, 2, 6), (_values(3, 2, 2),), reads=_CONVOLUTION),
    Contract("Conv", "Conv3d", (1, 2, 3, 4, 3), (_values(3, 2, 2, 2, 1),), reads=_CONVOLUTION),
    Contract(
        "Conv",
        "Sequential",  # torch's padding with zeros before a convolution without any
        constants=(_values(3, 2, 2, 2),),
        attributes={"pads": [0, 2, 1, 0]},
        reads=_CONVOLUTION,
    ),
    Contract(
        "ConvTranspose",
        "ConvTranspose2d",
        constants=(_values(2, 3, 2, 2), _values(3)),
        attributes={"strides": [2, 1], "pads": [1, 0, 1, 0], "output_padding": [1, 0]},
    ),
    Contract("Div", "OnnxBinaryMathOperation", constants=(_values(4),)),
    Contract("Gather", "OnnxGather", VECTOR, (_ints(3, 0, 0),), {"axis": 1}),
    Contract(
        "Gemm",
        "Linear",
        VECTOR,
        (_values(3, 6), _values(3)),
        {"transB": 1, "alpha": 0.5, "beta": 2.0},
        reads=("weight", "in_features"),
    ),
    Contract("Gemm", "Linear", VECTOR, (_values(6, 3),), reads=("weight", "in_features")),
    Contract("Gemm", "OnnxGemm", VECTOR, (_values(6, 3), _values(1, 3)), {"alpha": 0.5}),
    Contract("GlobalAveragePool", "OnnxGlobalAveragePoolWithKnownInputShape"),
    Contract("Identity", "OnnxCopyIdentity"),
    Contract("MatMul", "OnnxMatMul", VECTOR, (_values(6, 3),)),
    Contract("Mul", "OnnxBinaryMathOperation", constants=(_values(1, 2, 5, 1),)),
    Contract("Neg", "OnnxNeg"),
    Contract("Pad", "OnnxPadDynamic", constants=(_ints(0, 0, 1, -1, 0, 0, 2, 0),)),
    Contract("Pad", "OnnxPadStatic", attributes={"pads": [0, 0, 1, -1, 0, 0, 2, 0]}, opset=10),
    Contract("ReduceMean", "OnnxReduceStaticAxes", attributes={"axes": [1, 3], "keepdims": 0}),
    Contract("ReduceSum", "OnnxReduceSumStaticAxes", constants=(_ints(1, 2),)),
    Contract("ReduceSum", "OnnxReduceStaticAxes", attributes={"axes": [2]}, opset=11),
    Contract("Relu", "ReLU"),
    Contract("Reshape", "_Reshape", constants=(_ints(2, 20),)),
    Contract("Sub", "OnnxBinaryMathOperation", constants=(_values(2, 5, 4),)),
    Contract("Transpose", "OnnxTranspose", attributes={"perm": [0, 3, 1, 2]}),
    Contract("Where", "OnnxWhere", constants=(_values(2, 5, 4) > 1, _values(4))),
]
_IDS = [f"{c.operator} {c.module} {c.opset}" for c in CONTRACTS]


def _graph(contract: Contract) -> tuple[Graph, bytes]:
    """A network of one operator, and its file."""
    builder = Builder(contract.shape, contract.opset)
    given = [builder.const(c, c.dtype.type) for c in contract.constants]
    given.insert(1 if contract.operator == "Where" else 0, "x")
    end = builder.op(contract.operator, *given, **contract.attributes)
    model = builder.model(end)
    graph = read_graph(model)
    for node in graph.nodes:
        node.name = "n"
    return graph, model.SerializeToString()


def test_every_operator_that_is_converted_has_a_contract() -> None:
    assert {contract.operator for contract in CONTRACTS} == CONVERTED


@pytest.mark.parametrize("contract", CONTRACTS, ids=_IDS)
def test_operator_is_converted_to_the_module_that_we_read(contract: Contract) -> None:
    module = convert(_graph(contract)[0])
    (call,) = (node for node in module.graph.nodes if node.op == "call_module")
    target = module.get_submodule("n")
    assert call.target == "n"
    assert kind(call) == contract.operator
    assert type(target).__name__ == contract.module
    last = target[-1] if isinstance(target, nn.Sequential) else target
    for name in contract.reads:
        assert hasattr(last, name), name


@pytest.mark.parametrize("contract", CONTRACTS, ids=_IDS)
def test_converted_operator_computes_what_onnxruntime_does(contract: Contract) -> None:
    graph, content = _graph(contract)
    x = _values(*contract.shape) - 1
    expected = open_program(content).run(None, {graph.input: x})[0]
    actual = fx.Interpreter(convert(graph)).run(torch.from_numpy(x).double())
    assert actual.shape == expected.shape
    assert actual.dtype == torch.float64
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_uneven_padding_is_torchs_own_with_zeros() -> None:
    (contract,) = (c for c in CONTRACTS if c.module == "Sequential")
    pad = convert(_graph(contract)[0]).get_submodule("n.0")
    assert isinstance(pad, nn.ConstantPad2d)
    assert (pad.padding, pad.value) == ((2, 0, 0, 1), 0)


@pytest.mark.parametrize("operator", ["Gemm", "MatMul"])
@pytest.mark.parametrize("part", [lambda graph: graph, linear_part])
def test_matrix_of_a_product_is_the_graphs_own(
    operator: str, part: Callable[[Graph], Graph]
) -> None:
    """A large one takes memory once, and does not go through a protobuf, which ends at 2 GB."""
    graph, _ = _graph(Contract(operator, "", VECTOR, (_values(6, 3),)))
    (matrix,) = graph.constants.values()
    before = torch.from_numpy(matrix).data_ptr()
    tensors = convert(part(graph)).state_dict().values()
    assert [tensor.data_ptr() for tensor in tensors] == [before]


@pytest.mark.parametrize("operator", ["Conv", "Gemm"])
@pytest.mark.parametrize("part", [absolute_part, linear_part])
def test_model_of_a_part_holds_no_constant_that_only_the_whole_reads(
    operator: str, part: Callable[[Graph], Graph]
) -> None:
    contract = next(c for c in CONTRACTS if c.operator == operator)
    graph, _ = _graph(contract)
    assert len(part(graph).model().graph.initializer) == len(contract.constants)


def test_operator_without_a_contract_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="operator Erf"):
        convert(_graph(Contract("Erf", ""))[0])


@pytest.mark.parametrize("copy", [deepcopy, lambda m: fx.GraphModule(m, deepcopy(m.graph))])
def test_copies_of_a_graph_keep_its_operators(copy: Callable[[Any], Any]) -> None:
    contract = next(c for c in CONTRACTS if c.operator == "Conv")
    module = convert(_graph(contract)[0])
    kinds = [kind(node) for node in copy(module).graph.nodes]
    assert kinds == [None, "Conv", None]
