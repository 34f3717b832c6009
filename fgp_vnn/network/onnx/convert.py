"""An ONNX graph as a torch.fx graph, by onnx2torch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from fgp_vnn.base.errors import UnsupportedError, one_line
from fgp_vnn.network.onnx.graph import Graph


def convert(graph: Graph) -> GraphModule:
    """The torch.fx graph of a graph; each call_module node's target is the ONNX node's name.

    The module is there to be taken apart: its graph is right, its `forward` is not compiled.
    """
    with _without_torchvision():
        import onnx2torch
    matrices = _matrices(graph)
    try:
        with warnings.catch_warnings():
            # Of results that might differ: loading compares them with onnxruntime's.
            warnings.simplefilter("ignore")
            module: GraphModule = onnx2torch.convert(graph.model(declared=matrices))
    except Exception as error:  # onnx2torch raises whatever its converters meet
        reason = one_line(error)
        raise UnsupportedError(f"onnx2torch cannot convert the network: {reason}") from error
    for node in graph.nodes:
        if node.op_type == "Reshape":
            setattr(module, node.name, _Reshape(graph.constants[node.input[1]].tolist()))
    _put_back(module, [torch.from_numpy(graph.constants[name]) for name in matrices])
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


class _Reshape(nn.Module):
    """A reshape to a shape that is known: onnx2torch's reads it from a tensor at every call."""

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, x: Tensor, shape: Tensor) -> Tensor:
        return x.reshape(self.shape)


def _matrices(graph: Graph) -> list[str]:
    """The constants that only MatMul reads: they need not go through an ONNX model."""
    readers = [(name, node.op_type) for node in graph.nodes for name in node.input]
    others = {name for name, kind in readers if kind != "MatMul"}
    floats = {name for name, array in graph.constants.items() if array.dtype.kind == "f"}
    return [name for name in dict(readers) if name in floats and name not in others]


def _put_back(module: GraphModule, tensors: list[Tensor]) -> None:
    """Give the constants that were declared as inputs their values, in the module's graph."""
    _, *places = (node for node in module.graph.nodes if node.op == "placeholder")
    for i, (place, tensor) in enumerate(zip(places, tensors, strict=True)):
        module.register_buffer(f"matrix_{i}", tensor)
        with module.graph.inserting_before(place):
            place.replace_all_uses_with(module.graph.get_attr(f"matrix_{i}"))
        module.graph.erase_node(place)


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """Stand in for torchvision while onnx2torch is imported.

    onnx2torch needs it for RoiAlign and NonMaxSuppression only; importing it takes long, and
    fails where its build does not match torch's.
    """
    if "onnx2torch" in sys.modules:
        yield
        return
    before = {name: sys.modules.get(name) for name in ("torchvision", "torchvision.ops")}
    ops: Any = ModuleType("torchvision.ops")
    ops.roi_align = None
    package: Any = ModuleType("torchvision")
    package.ops = ops
    sys.modules.update({"torchvision": package, "torchvision.ops": ops})
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
