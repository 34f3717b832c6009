"""Apply a torch graph of convolutions, or its adjoint, to batches of vectors.

`torch.vmap` and `torch.autograd` do this for any graph, but they import much, run slower, and need
a forward pass before the backward pass. Here a few operators have rules of their own; a graph with
any other operator is refused, and left to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, fx, nn

from fgp_vnn.network.maps.kinds import kind
from fgp_vnn.network.maps.normalisation import Normalisation

Shape = tuple[int, ...]
SIGNS = {"Add": 1, "Sub": -1}  # of the second operand
_MOVES = ("Identity", "Reshape")
_RULED = ("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "Pad")
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d)


class NoRuleError(Exception):
    """Something in a graph has no rule here."""


def _pull_convolved(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    """Apply the adjoint of a convolution to rows [batch, ...]; `shape` is that of its input."""
    result: Tensor = torch.ops.aten.convolution_backward(
        rows,
        rows.new_empty(1).expand(len(rows), *shape[1:]),  # only its shape is read
        module.weight,
        None,
        module.stride,
        module.padding,
        module.dilation,
        module.transposed,
        module.output_padding,
        module.groups,
        (True, False, False),
    )[0]
    return result


def pads(module: Any) -> list[int]:
    """The number of zeros that a padding adds before and after each dimension, last one first."""
    return list(module.padding if hasattr(module, "padding") else module.pads)


def is_padding(step: Any) -> bool:
    """Whether a step pads its input with zeros."""
    if isinstance(step, nn.ConstantPad1d | nn.ConstantPad2d | nn.ConstantPad3d):
        return bool(step.value == 0)
    # onnx2torch's module for a Pad with constant widths.
    return hasattr(step, "pads") and step.mode == "constant" and step.constant_value == 0


def pull_pooled(module: nn.AvgPool2d, rows: Tensor, shape: Shape) -> Tensor:
    """Apply the adjoint of average pooling to rows [batch, ...]; `shape` is that of its input."""
    result: Tensor = torch.ops.aten.avg_pool2d_backward(
        rows,
        rows.new_empty(1).expand(len(rows), *shape[1:]),  # only its shape is read
        pair(module.kernel_size),
        pair(module.stride),
        pair(module.padding),
        module.ceil_mode,
        module.count_include_pad,
        module.divisor_override,
    )
    return result


def pair(sizes: int | Sequence[int]) -> list[int]:
    """A size for each of two dimensions."""
    return [sizes, sizes] if isinstance(sizes, int) else list(sizes)


def _pull_scaled(module: Normalisation, rows: Tensor, shape: Shape) -> Tensor:
    return module.pull(rows)


def _pull_padded(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    return nn.functional.pad(rows, [-width for width in pads(module)])  # negative widths crop


def _pull_moved(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    return rows.reshape(len(rows), *shape[1:])


def _rule(step: nn.Module) -> Callable[[Any, Tensor, Shape], Tensor] | None:
    """The adjoint of a step, as a function of the step, rows and the shape of the step's input
    (whose batch size is ignored); None if there is no rule for the step."""
    if isinstance(step, _CONVOLUTIONS):
        return _pull_convolved if amid_zeros(step) else None
    if isinstance(step, Normalisation):
        return _pull_scaled
    if isinstance(step, nn.AvgPool2d):
        return pull_pooled
    return _pull_padded if is_padding(step) else None


class Batched:
    """A linear graph whose tensors all have a leading dimension of 1 that can hold a batch."""

    def __init__(self, module: fx.GraphModule, shapes: Sequence[Shape], like: Tensor) -> None:
        """`shapes` are those of the sources; raises NoRuleError if an operator has no rule."""
        if not _all_known(module):
            raise NoRuleError
        recorder = _Recorder(module)
        recorder.run(*(like.new_zeros(shape) for shape in shapes))
        if recorder.refused:
            raise NoRuleError
        self.module = module
        self.steps = recorder.steps
        self.shapes = recorder.shapes

    @property
    def sources(self) -> list[fx.Node]:
        """The nodes that stand for the sources."""
        return [node for node in self.module.graph.nodes if node.op == "placeholder"]

    @property
    def end(self) -> fx.Node:
        """The node that gives the result."""
        found: fx.Node = next(n for n in self.module.graph.nodes if n.op == "output").args[0]
        return found

    def push(self, values: Sequence[Tensor]) -> Tensor:
        """Apply the graph to one value [batch, n_s] per source; returns [batch, outputs]."""
        found: Tensor = _Forward(self.module, self.shapes).run(*values)
        return found.reshape(len(found), -1)

    def pull(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Apply the adjoint to rows [batch, outputs]; returns one [batch, n_s] per source."""

        def through(node: fx.Node, rows: Tensor) -> Tensor:
            for step, shape in reversed(self.steps[node]):
                rows = (_rule(step) or _pull_moved)(step, rows, shape)
            return rows

        shaped = rows.reshape(len(rows), *self.shapes[self.end][1:])
        pairs = zip(self.sources, self.walk_back(shaped, through), strict=True)
        return tuple(
            rows.new_zeros(len(rows), prod(self.shapes[node]))
            if part is None
            else part.reshape(len(rows), -1)
            for node, part in pairs
        )

    def walk_back(self, rows: Any, through: Callable[[fx.Node, Any], Any]) -> list[Any]:
        """Pull rows of the result back to each source; None for a source that is not read.
        `through` pulls rows back through a node that reads one tensor."""
        waiting: dict[fx.Node, Any] = {self.end: rows}
        found: list[Any] = []

        def add(node: Any, rows: Any) -> None:
            if node.op != "get_attr":
                waiting[node] = waiting[node] + rows if node in waiting else rows

        for node in reversed(self.module.graph.nodes):
            if node.op == "placeholder":
                found.insert(0, waiting.get(node))
            elif node.op == "call_module" and node in waiting:
                rows, sign = waiting.pop(node), SIGNS.get(kind(node) or "")
                if sign is None:
                    add(node.args[0], through(node, rows))
                    continue
                add(node.args[0], rows)
                add(node.args[1], rows if sign > 0 else -rows)
        return found


class _Forward(fx.Interpreter):
    """Runs a graph on batches: shapes from the file hold for all dimensions but the batch."""

    def __init__(self, module: fx.GraphModule, shapes: dict[fx.Node, Shape]) -> None:
        super().__init__(module)
        self._shapes = shapes

    def run_node(self, n: fx.Node) -> Any:
        if n.op == "placeholder" or kind(n) == "Reshape":
            value = super().run_node(n) if n.op == "placeholder" else self.env[n.args[0]]  # type: ignore[index]
            return value.reshape(len(value), *self._shapes[n][1:])
        return super().run_node(n)


def _all_known(module: fx.GraphModule) -> bool:
    """Whether there is a rule for each of a graph's operators."""
    for node in module.graph.nodes:
        if node.op in ("call_function", "call_method"):
            return False
        if node.op == "call_module" and kind(node) not in (*SIGNS, *_MOVES):
            target = module.get_submodule(str(node.target))
            if kind(node) not in _RULED or None in map(_rule, _steps(target)):
                return False
    return True


def amid_zeros(convolution: Any) -> bool:
    """Whether a convolution pads with zeros, by explicit widths."""
    return isinstance(convolution.padding, tuple) and convolution.padding_mode == "zeros"


def _steps(module: nn.Module) -> list[nn.Module]:
    return list(module) if isinstance(module, nn.Sequential) else [module]


class _Recorder(fx.Interpreter):
    """Runs a graph once; records all shapes, and whether any of them rules out a batch.

    (Raising inside of an interpreter would make torch import its compiler.)
    """

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.shapes: dict[fx.Node, Shape] = {}
        self.steps: dict[fx.Node, list[tuple[nn.Module, Shape]]] = {}
        self.refused = False

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.op == "output":
            return result
        self.shapes[n] = tuple(result.shape)
        if n.op != "get_attr" and self.shapes[n][:1] != (1,):
            self.refused = True
        if n.op == "call_module":
            self._note(n)
        return result

    def _note(self, node: fx.Node) -> None:
        module: Any = self.module.get_submodule(str(node.target))
        varying = [a for a in node.args if isinstance(a, fx.Node) and a.op != "get_attr"]
        if kind(node) in SIGNS:
            if any(self.shapes[a] != self.shapes[node] for a in varying):
                self.refused = True
            return
        value = self.env[varying[0]]
        steps = _steps(module)
        self.steps[node] = []
        for step in steps:
            if isinstance(step, _CONVOLUTIONS) and value.dim() != step.weight.dim():
                self.refused = True
            if isinstance(step, nn.AvgPool2d) and value.dim() != 4:
                self.refused = True
            self.steps[node].append((step, tuple(value.shape)))
            value = step(value) if len(steps) > 1 else value
