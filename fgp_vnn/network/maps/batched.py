"""Batches of vectors through a torch graph of convolutions, forward and back.

`torch.vmap` and `torch.autograd` do it for any graph, but they import much, run slower, and the
way back would first go forward. Here each of a few operators has a rule of its own; a graph with
any other one in it is refused, and left to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from fgp_vnn.network.maps.kinds import kind

Shape = tuple[int, ...]
_SIGNS = {"Add": 1, "Sub": -1}  # of the second operand
_MOVES = ("Identity", "Reshape")


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
        False,
        [0] * (len(shape) - 2),
        module.groups,
        (True, False, False),
    )[0]
    return result


def _pull_padded(module: Any, rows: Tensor, shape: Shape) -> Tensor:
    """What was padded is cut off: padding by negative numbers."""
    return nn.functional.pad(rows, [-width for width in module.padding])


def _pull_step(step: nn.Module, rows: Tensor, shape: Shape) -> Tensor:
    """Rows of what a step gives as rows of what it reads, of that shape but for the batch."""
    if isinstance(step, nn.Conv1d | nn.Conv2d):
        return _pull_convolved(step, rows, shape)
    if isinstance(step, nn.ConstantPad1d | nn.ConstantPad2d):
        return _pull_padded(step, rows, shape)
    return rows.reshape(len(rows), *shape[1:])


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
        self._module = module
        self._steps = recorder.steps
        self._shapes = recorder.shapes

    def push(self, values: Sequence[Tensor]) -> Tensor:
        """One value [batch, n_s] per source to [batch, outputs]."""
        return _Forward(self._module, self._shapes).run(*values).flatten(1)  # type: ignore[no-any-return]

    def pull(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows [batch, outputs] to one [batch, n_s] per source."""
        waiting: dict[fx.Node, Tensor] = {}
        found: list[Tensor] = []
        for node in reversed(self._module.graph.nodes):
            if node.op == "output":
                end = node.args[0]
                waiting[end] = rows.reshape(len(rows), *self._shapes[end][1:])
            elif node.op == "placeholder":
                none = rows.new_zeros(len(rows), *self._shapes[node][1:])
                found.insert(0, waiting.get(node, none).flatten(1))
            elif node.op == "call_module" and node in waiting:
                self._pull_through(node, waiting)
        return tuple(found)

    def _pull_through(self, node: fx.Node, waiting: dict[fx.Node, Tensor]) -> None:
        rows = waiting.pop(node)
        sign = _SIGNS.get(kind(node) or "")
        if sign is not None:
            first, second = node.args
            _add(waiting, first, rows)
            _add(waiting, second, rows if sign > 0 else -rows)
            return
        for step, shape in reversed(self._steps[node]):
            rows = _pull_step(step, rows, shape)
        _add(waiting, node.args[0], rows)


def _add(waiting: dict[fx.Node, Tensor], node: Any, rows: Tensor) -> None:
    if node.op != "get_attr":
        waiting[node] = waiting[node] + rows if node in waiting else rows


class _Forward(fx.Interpreter):
    """Runs a graph on batches: a shape that the file gives holds but for the batch."""

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
        if node.op == "call_module" and kind(node) not in (*_SIGNS, *_MOVES):
            target = module.get_submodule(str(node.target))
            if kind(node) != "Conv" or not all(map(_known, _steps(target))):
                return False
    return True


def _known(step: nn.Module) -> bool:
    if isinstance(step, nn.Conv1d | nn.Conv2d):
        return isinstance(step.padding, tuple) and step.padding_mode == "zeros"
    return isinstance(step, nn.ConstantPad1d | nn.ConstantPad2d) and step.value == 0


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
        if kind(node) in _SIGNS:
            if any(self.shapes[a] != self.shapes[node] for a in varying):
                self.refused = True
            return
        value = self.env[varying[0]]
        steps = _steps(module)
        self.steps[node] = []
        for step in steps:
            if isinstance(step, nn.Conv1d | nn.Conv2d) and value.dim() != step.weight.dim():
                self.refused = True
            self.steps[node].append((step, tuple(value.shape)))
            value = step(value) if len(steps) > 1 else value
