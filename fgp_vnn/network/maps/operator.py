"""An affine map that stays a program; its adjoint comes from a rule for each module, or else from
reverse-mode differentiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial, reduce
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from fgp_vnn.base.rounding import rounded_down
from fgp_vnn.network.maps.batched import Batched, NoRuleError
from fgp_vnn.network.maps.kinds import kinds, mark_again
from fgp_vnn.network.maps.losses import Losses
from fgp_vnn.network.maps.patches import PatchMap
from fgp_vnn.network.model import AffineMap, Combination, Underflows

_MARKS = "marks"  # of the modules, in a pickled map


@dataclass(frozen=True, eq=False)
class Operator(AffineMap):
    """An affine map whose linear part is a torch module.

    The module takes one tensor per source, without a batch dimension and in the shape that it has
    in the ONNX file, so that shapes written in the file stay valid. `Batched` does the batching, or
    `torch.vmap` if `Batched` has no rule for a module. The module has no offsets: it maps zeros to
    zeros exactly. `absolute` is the same program with the absolute values of all constants, offsets
    included.
    """

    sources: tuple[int, ...]
    module: GraphModule
    absolute: GraphModule
    shapes: tuple[tuple[int, ...], ...]  # of each source
    bias: Tensor  # [outputs]
    defect: Tensor | None = None  # [outputs]

    @cached_property
    def operations(self) -> int:
        """Roundings of a term. A sum has at most as many terms as there are weights per output (or
        per input, when pulled back), or as `Losses.summed` counts; without a rule for each
        module, also as many as the sources have entries. A node rounds at most three times beside
        its sum, as a normalisation does."""
        tensors = self.module.state_dict().values()
        weights = [t for t in tensors if t.is_floating_point() and t.numel()]
        terms = sum(t.numel() // n for t in weights for n in (*t.shape[:2], *[1] * (not t.dim())))
        terms += self._losses.summed
        if self._batched is None:
            terms += sum(prod(shape) for shape in self.shapes)
        return int(terms) + 3 * len(self.module.graph.nodes)

    def magnitude(self, values: Sequence[Tensor]) -> Tensor:
        return self._run(self.absolute, self._batched_absolute, values)

    def underflows(self, values: Sequence[Tensor]) -> Underflows:
        """The loss for values of 1, times the largest value: it grows no faster than the values."""
        most = reduce(torch.maximum, (value.amax(-1, keepdim=True) for value in values))
        most = most.clamp(min=1)
        return Underflows(self._losses.forward * most, self._losses.backward * most)

    @property
    def exact(self) -> bool:
        """Whether matrix entries that consist of one term are computed without rounding, in float64
        from the file's float32 numbers."""
        return self._losses.exact

    def counting(self) -> Operator:
        """A copy whose `magnitude` counts the terms that are not 0, instead of adding up their
        absolute values."""
        return replace(self, absolute=_copied(self.absolute, _ones))

    @cached_property
    def _losses(self) -> Losses:
        return Losses.of(self.absolute, [self.bias.new_ones(shape) for shape in self.shapes])

    def linear(self, values: Sequence[Tensor]) -> Tensor:
        return self._run(self.module, self._batched, values)

    @cached_property
    def patches(self) -> PatchMap | None:
        """The backward pass of patches through the program; None if a step has no rule for it."""
        found = None if self._batched is None else PatchMap(self._batched)
        return found if found is not None and found.known() else None

    @cached_property
    def _batched(self) -> Batched | None:
        return self._by_rules(self.module)

    @cached_property
    def _batched_absolute(self) -> Batched | None:
        return self._by_rules(self.absolute)

    def _by_rules(self, module: GraphModule) -> Batched | None:
        try:
            return Batched(module, self.shapes, self.bias)
        except NoRuleError:
            return None

    def _run(
        self, module: GraphModule, batched: Batched | None, values: Sequence[Tensor]
    ) -> Tensor:
        batch = np.broadcast_shapes(*(value.shape[:-1] for value in values))
        columns = [value.expand(*batch, -1).reshape(-1, value.shape[-1]) for value in values]
        if batched is not None:
            return batched.push(columns).reshape(*batch, self.outputs)
        return torch.vmap(partial(self._apply, module))(*columns).reshape(*batch, self.outputs)

    def adjoint(self, rows: Tensor) -> tuple[Tensor, ...]:
        batch = rows.shape[:-1]
        flat = rows.reshape(-1, self.outputs)
        if self._batched is not None:
            return tuple(p.reshape(*batch, p.shape[-1]) for p in self._batched.pull(flat))
        differentiable = rows.requires_grad and torch.is_grad_enabled()
        with torch.enable_grad():
            result, points = self._traced
            pulled = torch.autograd.grad(
                result,
                points,
                flat,
                retain_graph=True,
                is_grads_batched=True,
                create_graph=differentiable,
                materialize_grads=True,
            )
        return tuple(p.reshape(*batch, p.shape[-1]) for p in pulled)

    @cached_property
    def _traced(self) -> tuple[Tensor, list[Tensor]]:
        """The result at 0 and the sources there, from which reverse-mode differentiation starts
        each time; the map is linear, so the point does not matter."""
        with torch.enable_grad():
            points = [
                self.bias.new_zeros(shape).reshape(-1).requires_grad_() for shape in self.shapes
            ]
            return self._apply(self.module, *points), points

    def __getstate__(self) -> dict[str, Any]:
        """The fields without cached values: unpickling traces the graph anew, and cached values
        would refer to the old nodes."""
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        return state | {_MARKS: [kinds(module) for module in (self.module, self.absolute)]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        marks = state.pop(_MARKS)
        self.__dict__.update(state)
        for module, found in zip((self.module, self.absolute), marks, strict=True):
            mark_again(module, found)

    def select(self, outputs: Tensor) -> Combination:
        eye = torch.eye(self.outputs, dtype=self.bias.dtype, device=self.bias.device)
        return Combination(self, eye[outputs], torch.zeros_like(self.bias[outputs]))

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Operator:
        bias = self.bias.to(device, dtype)
        if bias is self.bias:
            return self
        module, absolute = (_moved(m, bias) for m in (self.module, self.absolute))
        defect = None if self.defect is None else -rounded_down(-self.defect.to(device), dtype)
        return Operator(self.sources, module, absolute, self.shapes, bias, defect)

    def _apply(self, module: GraphModule, *values: Tensor) -> Tensor:
        """Apply a module to one vector [n_s] per source; returns a vector [outputs]."""
        shaped = (v.reshape(shape) for v, shape in zip(values, self.shapes, strict=True))
        result: Tensor = module(*shaped)
        return result.reshape(-1)


def _ones(tensor: Tensor) -> Tensor:
    """1 for each float that is not 0; integer tensors, which are indices and shapes, stay."""
    return tensor.ne(0).to(tensor.dtype) if tensor.is_floating_point() else tensor


def _moved(module: GraphModule, like: Tensor) -> GraphModule:
    """A copy of a module on the device and in the precision of a tensor."""
    return _copied(module, lambda t: t.to(like if t.is_floating_point() else like.device))


def _copied(module: GraphModule, change: Callable[[Tensor], Tensor]) -> GraphModule:
    """A copy of a module with `change` applied to its tensors. Each new tensor is made once, so
    that a large one does not take memory twice."""
    copies: dict[int, Tensor] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        copy = change(tensor.detach())
        is_parameter = isinstance(tensor, nn.Parameter)
        copies[id(tensor)] = nn.Parameter(copy, requires_grad=False) if is_parameter else copy
    return deepcopy(module, copies)
