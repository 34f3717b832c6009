"""Batches of vectors through a torch graph of convolutions, forward and back.

`torch.vmap` and `torch.autograd` do it for any graph, but they import much, run slower, and the
way back would first go forward. Here each kind of module has a rule of its own; a graph with any
other module in it is refused, and left to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

Shape = tuple[int, ...]
SUMS = {torch.add: 1, torch.sub: -1}
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


class NoRuleError(Exception):
    """Something in a graph has no rule here."""


def _pull_convolved(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    """Rows [batch, ...] of a convolution's result, as rows of what it reads."""
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


def _pull_padded(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    """What was padded is cut off: padding by negative numbers."""
    return nn.functional.pad(rows, [-width for width in module.padding])


def _pull_pads(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    return nn.functional.pad(rows, [-width for width in module.pads])


def pull_pooled(module: Any, rows: Tensor, shape: Shape) -> Tensor:
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


def pair(sizes: Any) -> list[int]:
    return [sizes, sizes] if isinstance(sizes, int) else list(sizes)


def pull_scaled(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    """Of a normalisation by constants, whose mean and offset the linear part does not have."""
    scale = module.weight / (module.running_var + module.eps).sqrt()
    return rows * scale.reshape(1, -1, *[1] * (len(shape) - 2))


def _pull_reshaped(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    return rows.reshape(len(rows), *shape[1:])


_RULES: dict[str, Callable[[Any, Tensor, Shape], Tensor]] = {
    "AvgPool2d": pull_pooled,
    "BatchNorm1d": pull_scaled,
    "BatchNorm2d": pull_scaled,
    "ConstantPad1d": _pull_padded,
    "ConstantPad2d": _pull_padded,
    "Conv1d": _pull_convolved,
    "Conv2d": _pull_convolved,
    "ConvTranspose1d": _pull_convolved,
    "ConvTranspose2d": _pull_convolved,
    "Identity": _pull_reshaped,
    "OnnxCopyIdentity": _pull_reshaped,
    "OnnxIdentity": _pull_reshaped,
    "OnnxPadStatic": _pull_pads,
    "_Reshape": _pull_reshaped,
}


class Batched:
    """A linear graph whose tensors all have a leading dimension of 1 that can be a batch."""

    def __init__(self, module: fx.GraphModule, shapes: Sequence[Shape], like: Tensor) -> None:
        """`shapes` are those of the sources; raises NoRuleError for what is not known here."""
        if not _all_known(module):
            raise NoRuleError
        recorder = _Recorder(module)
        recorder.run(*(like.new_zeros(shape) for shape in shapes))
        if recorder.refused:
            raise NoRuleError
        self.module = module
        self.steps = recorder.steps
        self.shapes = recorder.shapes

    def push(self, values: Sequence[Tensor]) -> Tensor:
        """One value [batch, n_s] per source to [batch, outputs]."""
        return _Forward(self.module, self.shapes).run(*values).flatten(1)  # type: ignore[no-any-return]

    def pull(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows [batch, outputs] to one [batch, n_s] per source."""
        waiting: dict[fx.Node, Tensor] = {}
        found: list[Tensor] = []
        for node in reversed(self.module.graph.nodes):
            if node.op == "output":
                end = node.args[0]
                waiting[end] = rows.reshape(len(rows), *self.shapes[end][1:])
            elif node.op == "placeholder":
                none = rows.new_zeros(len(rows), *self.shapes[node][1:])
                found.insert(0, waiting.get(node, none).flatten(1))
            elif node.op == "call_module" and node in waiting:
                self._pull_through(node, waiting)
        return tuple(found)

    def _pull_through(self, node: fx.Node, waiting: dict[fx.Node, Tensor]) -> None:
        rows = waiting.pop(node)
        module: Any = self.module.get_submodule(str(node.target))
        if is_sum(module):
            first, second = node.args
            _add(waiting, first, rows)
            _add(waiting, second, rows if SUMS[module.math_op_function] > 0 else -rows)
            return
        for step, shape in reversed(self.steps[node]):
            rows = _RULES[type(step).__name__](step, rows, shape)
        _add(waiting, node.args[0], rows)


def _add(waiting: dict[fx.Node, Tensor], node: Any, rows: Tensor) -> None:
    if node.op != "get_attr":
        waiting[node] = waiting[node] + rows if node in waiting else rows


def is_sum(module: Any) -> bool:
    return type(module).__name__ == "OnnxBinaryMathOperation"


class _Forward(fx.Interpreter):
    """Runs a graph on batches: a shape that the file gives holds but for the batch."""

    def __init__(self, module: fx.GraphModule, shapes: dict[fx.Node, Shape]) -> None:
        super().__init__(module)
        self._shapes = shapes

    def run_node(self, n: fx.Node) -> Any:
        if n.op == "placeholder" or (n.op == "call_module" and self._reshapes(n)):
            value = super().run_node(n) if n.op == "placeholder" else self.env[n.args[0]]  # type: ignore[index]
            return value.reshape(len(value), *self._shapes[n][1:])
        return super().run_node(n)

    def _reshapes(self, node: fx.Node) -> bool:
        return type(self.module.get_submodule(str(node.target))).__name__ == "_Reshape"


def _all_known(module: fx.GraphModule) -> bool:
    """Whether there is a rule for each of a graph's modules."""
    for node in module.graph.nodes:
        if node.op in ("call_function", "call_method"):
            return False
        if node.op == "call_module":
            target: Any = module.get_submodule(str(node.target))
            if is_sum(target):
                if target.math_op_function not in SUMS or target.broadcast:
                    return False
            elif not all(map(_known, _steps(target))):
                return False
    return True


def _known(module: Any) -> bool:
    if isinstance(module, _CONVOLUTIONS):
        return isinstance(module.padding, tuple) and module.padding_mode == "zeros"
    if isinstance(module, _NORMS):
        return not module.training and module.track_running_stats and module.affine
    if type(module).__name__ == "OnnxPadStatic":
        return module.mode == "constant" and module.constant_value == 0
    return type(module).__name__ in _RULES


def _steps(module: nn.Module) -> list[nn.Module]:
    return list(module) if isinstance(module, nn.Sequential) else [module]


class _Recorder(fx.Interpreter):
    """Runs a graph once, notes all shapes, and whether some of them do not allow for a batch.

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
        if is_sum(module):
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
