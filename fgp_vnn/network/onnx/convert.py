"""Convert an ONNX graph to a torch.fx graph; the only module that uses onnx2torch.

Each node of the result is marked with the ONNX operator that it computes, so that no rule elsewhere
depends on a class of onnx2torch.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Container, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, NodeProto
from torch import Tensor, nn
from torch.fx import GraphModule

from fgp_vnn.base.errors import UnsupportedError, one_line
from fgp_vnn.network.maps.kinds import mark
from fgp_vnn.network.maps.normalisation import Normalisation
from fgp_vnn.network.onnx.affinity import AFFINE
from fgp_vnn.network.onnx.graph import Graph, attributes, label

# The operators that are left after cleaning and rewriting; the tests check each of them.
CONVERTED = frozenset({"Relu", *AFFINE}) - {"Resize"}

_PADS: dict[int, Any] = {1: nn.ConstantPad1d, 2: nn.ConstantPad2d, 3: nn.ConstantPad3d}


def convert(graph: Graph) -> GraphModule:
    """The torch.fx graph of an ONNX graph; a call_module node's target is the ONNX node's name.

    The module is meant to be taken apart: its graph is correct, but its `forward` is not compiled.
    """
    for node in graph.nodes:
        if node.op_type not in CONVERTED:
            raise UnsupportedError(f"{label(node)} has no torch module")
    linear = {node.name: _linear(graph, node) for node in graph.nodes if _is_linear(graph, node)}
    matrices = _matrices(graph, linear)
    module = convert_whole(graph.model(declared=matrices))
    for name, product in linear.items():
        setattr(module, name, product)
    for node in graph.nodes:
        if node.op_type == "Reshape":
            setattr(module, node.name, _Reshape(graph.constants[node.input[1]].tolist()))
        elif node.op_type == "Conv":
            setattr(module, node.name, _convolution(module.get_submodule(node.name), node))
        elif node.op_type == "BatchNormalization":
            setattr(module, node.name, _normalisation(graph, node))
    kinds = {node.name: node.op_type for node in graph.nodes}
    for call in module.graph.nodes:
        if call.op == "call_module":
            mark(call, kinds[str(call.target)])
            if call.target in linear:
                call.args = call.args[:1]
    _put_back(module, [torch.from_numpy(graph.constants[name]) for name in matrices])
    return module


def convert_whole(model: ModelProto) -> GraphModule:
    """The module that onnx2torch makes from a model, unchanged."""
    with _without_unused():
        import onnx2torch
    try:
        with warnings.catch_warnings():
            # It warns that results may differ; loading compares them with onnxruntime's.
            warnings.simplefilter("ignore")
            module: GraphModule = onnx2torch.convert(model)
    except Exception as error:  # onnx2torch raises whatever its converters meet
        reason = one_line(error)
        raise UnsupportedError(f"onnx2torch cannot convert the network: {reason}") from error
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


class _Reshape(nn.Module):
    """A reshape to a constant shape; that of onnx2torch reads the shape from a tensor each time."""

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, x: Tensor, shape: Tensor) -> Tensor:
        return x.reshape(self.shape)


def _convolution(module: nn.Module, node: Any) -> nn.Module:
    """The convolution's module; if it is padded unevenly, after torch's own padding with zeros."""
    if not isinstance(module, nn.Sequential):
        return module
    last = module[-1]
    pads = attributes(node)["pads"]
    rank = len(pads) // 2
    around = [width for axis in reversed(range(rank)) for width in (pads[axis], pads[rank + axis])]
    return nn.Sequential(_PADS[rank](tuple(around), 0.0), last)


def _normalisation(graph: Graph, node: NodeProto) -> Normalisation:
    scale, shift, mean, variance = (graph.constants[name] for name in node.input[1:])
    scale = scale / np.sqrt(variance + attributes(node).get("epsilon", 1e-5))
    return Normalisation(*(torch.from_numpy(part) for part in (mean, scale, shift)))


def _is_linear(graph: Graph, node: NodeProto) -> bool:
    """Whether a node is a Gemm of its input with a constant matrix, plus at most a vector."""
    if node.op_type != "Gemm" or attributes(node).get("transA", 0):
        return False
    matrix, *offset = (graph.constants.get(name) for name in node.input[1:] if name)
    return matrix is not None and all(v is not None and v.ndim == 1 for v in offset)


def _linear(graph: Graph, node: NodeProto) -> nn.Linear:
    """The module of such a Gemm; it shares the graph's constants unless alpha or beta is not 1."""
    given = attributes(node)
    tensors = (torch.from_numpy(graph.constants[name]) for name in node.input[1:] if name)
    factors = [float(given.get(name, 1.0)) for name in ("alpha", "beta")]
    parts = [t if f == 1 else f * t for t, f in zip(tensors, factors, strict=False)]
    weight = parts[0] if given.get("transB", 0) else parts[0].T
    outputs, inputs = weight.shape
    result = nn.Linear(inputs, outputs, bias=len(parts) > 1, device="meta")  # which takes no memory
    result.weight = nn.Parameter(weight, requires_grad=False)
    if len(parts) > 1:
        result.bias = nn.Parameter(parts[1], requires_grad=False)
    return result


def _matrices(graph: Graph, linear: Container[str]) -> list[str]:
    """The constants that only MatMul and the `linear` nodes read. They bypass the ONNX model, which
    would hold several copies of them, and is limited to 2 GB."""
    others: set[str] = set()
    for node in graph.nodes:
        if node.op_type != "MatMul" and node.name not in linear:
            others.update(node.input)
    read = dict.fromkeys(name for node in graph.nodes for name in node.input)
    floats = {name for name, array in graph.constants.items() if array.dtype.kind == "f"}
    return [name for name in read if name in floats and name not in others]


def _put_back(module: GraphModule, tensors: list[Tensor]) -> None:
    """Replace the inputs that stand for constants by these tensors, in the module's graph."""
    _, *places = (node for node in module.graph.nodes if node.op == "placeholder")
    for i, (place, tensor) in enumerate(zip(places, tensors, strict=True)):
        if place.users:
            module.register_buffer(f"matrix_{i}", tensor)
            with module.graph.inserting_before(place):
                place.replace_all_uses_with(module.graph.get_attr(f"matrix_{i}"))
        module.graph.erase_node(place)


@contextmanager
def _without_unused() -> Iterator[None]:
    """Replace modules that onnx2torch needs in rare cases only by stubs while it is imported.

    torchvision is for RoiAlign and NonMaxSuppression; importing it is slow, and fails if its build
    does not match torch's. torch.onnx is for exporting a converted module. What is used later is
    taken from the real modules.
    """
    if "onnx2torch" in sys.modules:
        yield
        return
    vision, ops = ModuleType("torchvision"), _Late("torchvision", "ops")
    vars(vision)["ops"], vars(ops)["roi_align"] = ops, _roi_align
    stubs = {"torchvision": vision, "torchvision.ops": ops}
    if "torch.onnx" not in sys.modules:
        stubs["torch.onnx"] = ModuleType("torch.onnx")
        vars(stubs["torch.onnx"])["symbolic_helper"] = _Late("torch.onnx", "symbolic_helper")
    before = {name: sys.modules.get(name) for name in stubs}
    sys.modules.update(stubs)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class _Late(ModuleType):
    """A stub for a module that another one, `home`, contains: `home` is loaded when a name of the
    stub is used."""

    def __init__(self, home: str, own: str) -> None:
        super().__init__(own)
        self._home = home

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks for these
            raise AttributeError(name)
        return getattr(getattr(import_module(self._home), self.__name__), name)


def _roi_align(*given: Any, **options: Any) -> Any:
    return import_module("torchvision.ops").roi_align(*given, **options)
