"""An ONNX graph as a torch.fx graph, by onnx2torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from onnx import ModelProto
from torch.fx import GraphModule

from fgp_vnn.errors import UnsupportedError


def convert(model: ModelProto) -> GraphModule:
    """The torch.fx graph of a model; each call_module node's target is the ONNX node's name."""
    with _without_torchvision():
        import onnx2torch
    try:
        module: GraphModule = onnx2torch.convert(model)
    except Exception as error:  # onnx2torch raises whatever its converters meet
        reason = " ".join(str(error).split())[:300]
        raise UnsupportedError(f"onnx2torch cannot convert the network: {reason}") from error
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


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
