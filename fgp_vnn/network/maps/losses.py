"""Bounds on the underflow error of a program, forward and backward.

A node's error is that of its sources times its own weights, plus one unit for each of its
operations, plus |x| units for each number x that it multiplies by a constant. In the backward pass,
an error in a coefficient changes the result by that error times the value that the coefficient
multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor, fx, nn

from fgp_vnn.network.maps.kinds import kind

_MOVES = {"Concat", "Gather", "Identity", "Pad", "Reshape", "Transpose"}
_WEIGHS = {"Conv", "ConvTranspose", "MatMul"}
_SUMS = {"AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum"}  # without weights
_SPREADS = {"Add", "Div", "Mul", "Sub", "Where"}  # an operand of a smaller shape is read repeatedly


@dataclass(frozen=True)
class Losses:
    """Underflow error of a program on values of 1, in units of what one operation loses."""

    forward: float  # error of each result
    backward: float  # error of a row that is pulled back, in addition to |row| times `forward`
    summed: int  # terms of sums that no weight stands for, as `_summed` counts them
    exact: bool  # a term of a matrix entry is one constant of the file, or the product of two

    @classmethod
    def of(cls, absolute: fx.GraphModule, values: Sequence[Tensor]) -> Losses:
        """The losses of a program; `absolute` has the absolute values of its constants."""
        run = _Run(absolute)
        run.run(*values)
        exact = run.kinds.count("sum") <= 1 and len(run.kinds) <= 2 and "other" not in run.kinds
        return cls(run.forward, run.backward, run.summed, exact)


class _Run(fx.Interpreter):
    """Runs a graph on two kinds of tensors side by side: absolute values and their errors."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.gone: dict[fx.Node, Any] = {}
        self.forward = self.backward = 0.0
        self.summed = 0
        self.kinds: list[str] = []  # of the nodes that do more than move entries

    def run_node(self, n: fx.Node) -> Any:
        size = super().run_node(n)
        if n.op == "placeholder":
            self.gone[n] = torch.ones_like(size)
        read = [node for node in n.all_input_nodes if node in self.gone]
        if n.op == "output":
            self.forward = max(_total(self.gone[node], Tensor.amax) for node in read)
        elif read:
            self._pass(n, size, read)
        return size

    def _pass(self, node: fx.Node, size: Any, read: list[fx.Node]) -> None:
        args, kwargs = (
            fx.node.map_arg(part, lambda a: self.gone.get(a, self.env[a]))
            for part in (node.args, node.kwargs)
        )
        moved = getattr(self, node.op)(node.target, args, kwargs)
        entries = sum(_total(self.env[a], Tensor.numel) for a in read)
        values = sum(_total(self.env[a], Tensor.sum) for a in read)
        lost = sum(_total(self.gone[a], Tensor.sum) for a in read)
        own = inf if self._divides_by_little(node) else 2 * entries + 2 + values
        several = not isinstance(moved, Tensor)
        self.gone[node] = [part + own for part in moved] if several else moved + own
        self.backward += (2 * _total(size, Tensor.numel) + 2) * (values + lost)
        self.summed += self._summed(node, size, read)
        self.kinds += self._kind(node, len(read))

    def _summed(self, node: fx.Node, size: Any, read: list[fx.Node]) -> int:
        """The number of terms that a node sums without a weight for each, or with weights that
        are no matrix; or, when rows are pulled back, of the copies that it makes of an entry."""
        name = kind(node)
        if name in _SUMS:
            return sum(self.env[a].numel() for a in read)
        if name in _SPREADS:
            return sum(size.numel() // self.env[a].numel() - 1 for a in read)
        if name == "Concat":
            return len(node.args)
        if name == "Gather":
            index = self.env[node.args[1]]  # type: ignore[index]
            return int(index.reshape(-1).bincount().max()) - 1
        constants = [self.env[a] for a in node.all_input_nodes if a not in self.gone]
        if name == "MatMul" and constants and constants[0].dim() != 2:
            return int(constants[0].numel())
        return 0

    def _kind(self, node: fx.Node, read: int) -> list[str]:
        """How a node computes matrix entries: [] if it moves them, else sum, product or other."""
        name = kind(node)
        if name in _MOVES:
            return []
        if name in _WEIGHS:
            return ["sum"]
        if name == "Gemm" and self._is_matrix(node):
            return ["sum", "product"]  # its weights were multiplied by its factor alpha
        if read == 1 and name in ("Add", "Sub"):
            return []
        return ["product"] if read == 1 and name == "Mul" else ["other"]

    def _is_matrix(self, node: fx.Node) -> bool:
        """Whether a Gemm is one product with a matrix, which `convert` makes an nn.Linear."""
        return isinstance(self.module.get_submodule(str(node.target)), nn.Linear)

    def _divides_by_little(self, node: fx.Node) -> bool:
        """Whether a divisor is subnormal or 0, so that its rounding error is not relative."""
        if kind(node) != "Div" or not isinstance(node.args[1], fx.Node):
            return False
        divisor = self.env[node.args[1]]
        return bool((divisor.abs() < torch.finfo(divisor.dtype).tiny).any())


def _total(values: Any, measure: Any) -> float:
    """The sum of a measure over one tensor or several."""
    several = (values,) if isinstance(values, Tensor) else values
    return float(sum(float(measure(value)) for value in several))
