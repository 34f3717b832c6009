"""A network that can only be run: some operator is not supported, or its matrices do not fit.

Nothing can be proved about it. It has outputs and, if torch has all of its operators, gradients:
functions that are flat almost everywhere, such as Sign, keep their values and get the slope of a
smooth function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from onnx import GraphProto, ModelProto, numpy_helper
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.program import nodes_in
from fgp_vnn.network.onnx.choice import Choice, with_one_input_and_output
from fgp_vnn.network.onnx.clean import clean_graph, raise_opset
from fgp_vnn.network.onnx.convert import convert_whole
from fgp_vnn.network.onnx.load import parse
from fgp_vnn.network.onnx.read import check_random, ends_of, input_shape, read_graph
from fgp_vnn.network.onnx.runtime import Runtime

# ONNX operators whose slope is 0 wherever they have one.
FLAT_OPERATORS = frozenset({"Ceil", "Floor", "Round", "Sign"})
Pull = Callable[[Tensor], Tensor]  # from outputs [points, outputs] to weights of them


@dataclass(frozen=True, eq=False)
class Opaque:
    """A network that is known only as a program."""

    runtime: Runtime
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    module: nn.Module | None  # from one input of this shape to the outputs; None: no gradients
    softmax: str | None  # the operator at the end that `module` leaves out
    entries: int  # of all tensors for one input, approximately; without a module: of its ends

    @property
    def inputs(self) -> int:
        return prod(self.input_shape)

    @property
    def outputs(self) -> int:
        return prod(self.output_shape)

    @property
    def differentiable(self) -> bool:
        """Whether `slopes` is available."""
        return self.module is not None

    @property
    def bytes_at_a_point(self) -> int:
        """Approximate size in bytes of all tensors that are computed for one input."""
        return 4 * self.entries

    def with_softmax(self) -> Opaque:
        """A copy whose `module` includes the final softmax."""
        if self.module is None or self.softmax is None:
            return self
        last = nn.Softmax(0) if self.softmax == "Softmax" else nn.LogSoftmax(0)
        module = nn.Sequential(self.module, nn.Flatten(0), last)
        return replace(self, module=module, softmax=None)

    def values(self, x: Tensor) -> Tensor:
        """The outputs [points, outputs] at x [points, inputs], before the `softmax` if any."""
        if self.module is None:
            return torch.from_numpy(self.runtime.run_many(x.float().cpu().numpy())).to(x)
        with torch.no_grad():
            return self._run(x.float()).to(x)

    def slopes(self, x: Tensor, weigh: Pull) -> Tensor:
        """The gradients [points, inputs] at x of the sum of the outputs times their weights."""
        with torch.enable_grad(), _Smooth():
            given = x.detach().float().requires_grad_()
            y = self._run(given)
            total = (weigh(y.detach().to(x)).to(y) * y).sum()
            if not total.requires_grad:  # x matters through conditions only
                return torch.zeros_like(x)
            (slope,) = torch.autograd.grad(total, given, allow_unused=True)
        return torch.zeros_like(x) if slope is None else slope.nan_to_num(0, 0, 0).to(x)

    def _run(self, x: Tensor) -> Tensor:
        if self.module is None:
            raise AssertionError("there is no module to run")
        found: Tensor = torch.vmap(self.module)(x.reshape(-1, *self.input_shape))
        return found.flatten(1)


def load_opaque(source: Path | str | bytes) -> Opaque:
    """Open an ONNX file, or its bytes, whose operators are not all supported.

    Refuses a model that is not a function of one float32 input, or that onnxruntime does not run.
    """
    data = source if isinstance(source, bytes) else read_model(Path(source))
    whole = parse(data)
    model = with_one_input_and_output(whole, Choice())
    if model is not whole:
        data = model.SerializeToString()
    read, _ = ends_of(model.graph)
    shape = input_shape(read)
    _check_fixed(model)
    runtime = Runtime(data, shape)
    given = runtime.output_shape()
    two = torch.zeros(2, *shape)
    for clean in (True, False):
        try:
            module, softmax = _cleaned(model) if clean else (convert_whole(model), None)
            with _Counted() as counted:
                found = torch.vmap(module)(two)
            fits = found.numel() == 2 * prod(given)
        except Exception:  # a third-party error on a model that it does not support
            continue
        if fits:
            entries = prod(shape) + counted.entries
            return Opaque(runtime, shape, given, module, softmax, entries)
    return Opaque(runtime, shape, given, None, None, prod(shape) + prod(given))


def _cleaned(model: ModelProto) -> tuple[nn.Module, str | None]:
    """The module of the graph with literal shapes and without a final softmax, and that softmax."""
    graph = read_graph(raise_opset(model))
    softmax = clean_graph(graph)
    return convert_whole(graph.model(single=True)), softmax


def _check_fixed(model: ModelProto) -> None:
    """Refuse a program that may return different results for the same input."""
    false = set(_false_constants(model.graph))
    for graph in (model.graph, *model.functions):
        for node in nodes_in(graph):
            check_random(node, lambda name: name in false)


def _false_constants(graph: GraphProto) -> Iterator[str]:
    """The names of the graph's constants that are all zeros."""
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    for node in graph.node:
        if node.op_type == "Constant":
            tensors += [(node.output[0], a.t) for a in node.attribute if a.name == "value"]
    return (name for name, tensor in tensors if not numpy_helper.to_array(tensor).any())


def _step(x: Tensor) -> Tensor:
    """A smooth step from -1 to 1; its width is the mean absolute value of its argument."""
    width = x.detach().abs().mean() + torch.finfo(x.dtype).tiny
    return x / (width + x.abs())


def _same(x: Tensor) -> Tensor:
    return x


# Flat torch functions, in modules converted from ONNX operators of any name, each with the smooth
# function whose slope replaces its own.
_SUBSTITUTES: dict[Any, Callable[[Tensor], Tensor]] = {
    torch.sign: _step,
    torch.ceil: _same,
    torch.floor: _same,
    torch.round: _same,
    torch.trunc: _same,
}


class _Counted(TorchFunctionMode):
    """Counts the entries of the tensors that functions return; within vmap, those of one input."""

    entries = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        value = func(*args, **(kwargs or {}))
        self.entries += value.numel() if isinstance(value, Tensor) else 0
        return value


class _Smooth(TorchFunctionMode):
    """Straight-through gradients: the values of flat functions with the slopes of smooth ones."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        value = func(*args, **(kwargs or {}))
        smooth = _SUBSTITUTES.get(func)
        if smooth is None or not args[0].is_floating_point():
            return value
        near = smooth(args[0])
        return near + (value - near).detach()
