"""Pull rows that are 0 outside a window back through convolutions.

A neuron of a convolution depends only on a patch of its source, so its row of coefficients is 0
outside a window. Rows of neurons at different places have windows of the same size, which begin at
`step * place + first`. One transposed convolution pulls all of them back.

Channels come last, so that on a CPU one matrix product for each position of the filter suffices;
the products are added up in the window. Milliseconds of this | of torch's transposed convolution in
float64, with 16 channels and filters of 3 x 3: 2.5 | 8.5 for 4000 windows of 1 x 1, 6 | 17 for 2000
of 3 x 3, 4.5 | 9.4 for 40 of 20 x 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn

from fgp_vnn.network.maps.batched import (
    Batched,
    Shape,
    is_padding,
    pads,
    pair,
    pull_pooled,
)
from fgp_vnn.network.maps.kinds import kind
from fgp_vnn.network.maps.normalisation import Normalisation

Pair = tuple[int, int]


class Patches(NamedTuple):
    """Rows over a plane [channels, height, width], stored as one window for each place."""

    rows: Tensor  # [places, rows, height, width, channels]
    step: Pair  # from one place to the next
    first: Pair  # where the window of place (0, 0) begins

    @property
    def size(self) -> Pair:
        """Height and width of a window."""
        return self.rows.shape[2], self.rows.shape[3]

    def __add__(self, other: Patches) -> Patches:  # type: ignore[override]
        """The sum, in the smallest window that contains both."""
        if self.step != other.step:
            raise AssertionError("two ways to one plane have the same step")
        ends = [
            [a + n for a, n in zip(part.first, part.size, strict=True)] for part in (self, other)
        ]
        first = (min(self.first[0], other.first[0]), min(self.first[1], other.first[1]))
        last = [max(a, b) for a, b in zip(*ends, strict=True)]
        size = (last[0] - first[0], last[1] - first[1])
        return Patches(self._within(first, size) + other._within(first, size), self.step, first)

    def __neg__(self) -> Patches:
        return self._replace(rows=-self.rows)

    def _within(self, first: Pair, size: Pair) -> Tensor:
        before = [a - b for a, b in zip(self.first, first, strict=True)]
        after = [n - b - m for n, b, m in zip(size, before, self.size, strict=True)]
        if not any(before) and not any(after):
            return self.rows
        return nn.functional.pad(self.rows, [0, 0, before[1], after[1], before[0], after[0]])


class WindowPositions:
    """The positions of windows in a plane [channels, height, width] that is padded with zeros."""

    def __init__(self, patch: Patches, plane: Shape, places: Tensor, target: Shape) -> None:
        """`places` [places, 2] are positions in a target plane [channels, height, width]."""
        size = patch.size
        last = [
            s * (n - 1) + f for s, n, f in zip(patch.step, target[1:], patch.first, strict=True)
        ]
        self._before = [max(0, -f) for f in patch.first]
        self._after = [max(0, e + n - h) for e, n, h in zip(last, size, plane[1:], strict=True)]
        self._plane = plane
        wide = [h + b + a for h, b, a in zip(plane[1:], self._before, self._after, strict=True)]
        self._wide = (plane[0], wide[0], wide[1])
        step, first = (places.new_tensor(part) for part in (patch.step, patch.first))
        origin = places * step + first + places.new_tensor(self._before)  # [places, 2]
        start = origin[:, 0] * wide[1] + origin[:, 1]
        channel, row, column = (torch.arange(n, device=places.device) for n in (plane[0], *size))
        offset = row[:, None, None] * wide[1] + column[:, None] + channel * (wide[0] * wide[1])
        self._index = start.unsqueeze(-1) + offset.reshape(-1)  # [places, entries of a window]

    def __call__(self, vector: Tensor) -> Tensor:
        """Each window's entries [places, 1, entries of a window] of a vector [..., n] over the
        plane."""
        (top, left), (bottom, right) = self._before, self._after
        plane = nn.functional.pad(vector.reshape(self._plane), [left, right, top, bottom])
        return plane.reshape(-1)[self._index].unsqueeze(1)

    def write(self, rows: Tensor) -> Tensor:
        """Rows [places, rows, entries of a window] as rows [places, rows, n] over the plane."""
        wide = rows.new_zeros(*rows.shape[:2], self._wide[0] * self._wide[1] * self._wide[2])
        wide.scatter_(-1, self._index.unsqueeze(1).expand_as(rows), rows)
        (top, left), (_, height, width) = self._before, self._plane
        plane = wide.reshape(*rows.shape[:2], *self._wide)
        return plane[..., top : top + height, left : left + width].flatten(2)


def _convolved(module: Any, patch: Patches) -> Patches:
    rows, weight = patch.rows.flatten(0, 1), module.weight
    if rows.device.type == "cpu" and module.groups == 1:
        pulled = _by_matrices(rows, weight, module.stride, module.dilation)
    else:
        pulled = nn.functional.conv_transpose2d(
            rows.permute(0, 3, 1, 2),
            weight,
            stride=module.stride,
            groups=module.groups,
            dilation=module.dilation,
        ).permute(0, 2, 3, 1)
    return _moved(patch, pulled, module.stride, module.padding)


def _by_matrices(rows: Tensor, weight: Tensor, stride: Pair, dilation: Pair) -> Tensor:
    """Apply the adjoint of a convolution to rows [n, height, width, channels]."""
    count, *size, channels = rows.shape
    kernel = weight.shape[2:]
    spans = [(n - 1) * s + 1 for n, s in zip(size, stride, strict=True)]
    wide = [n + (k - 1) * d for n, k, d in zip(spans, kernel, dilation, strict=True)]
    result = rows.new_zeros(count, *wide, weight.shape[1])
    flat = rows.reshape(-1, channels)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            part = result[:, top : top + spans[0] : stride[0], left : left + spans[1] : stride[1]]
            part += (flat @ weight[:, :, i, j]).reshape(part.shape)
    return result


def _pooled(module: Any, patch: Patches) -> Patches:
    rows = patch.rows.flatten(0, 1).permute(0, 3, 1, 2)
    kernel, stride = pair(module.kernel_size), pair(module.stride)
    read = [(n - 1) * s + k for n, s, k in zip(patch.size, stride, kernel, strict=True)]
    pulled = pull_pooled(module, rows, (1, rows.shape[1], *read)).permute(0, 2, 3, 1)
    return _moved(patch, pulled, stride, (0, 0))


def _padded(module: Any, patch: Patches) -> Patches:
    left, _, top, _ = pads(module)[:4]
    return patch._replace(first=(patch.first[0] - top, patch.first[1] - left))


def _scaled(module: Normalisation, patch: Patches) -> Patches:
    rows = patch.rows.flatten(0, 1).permute(0, 3, 1, 2)
    scaled = module.pull(rows).permute(0, 2, 3, 1)
    return patch._replace(rows=scaled.reshape(patch.rows.shape))


def _moved(patch: Patches, rows: Tensor, stride: Any, padding: Any) -> Patches:
    step = (patch.step[0] * stride[0], patch.step[1] * stride[1])
    first = (patch.first[0] * stride[0] - padding[0], patch.first[1] * stride[1] - padding[1])
    return Patches(rows.reshape(*patch.rows.shape[:2], *rows.shape[1:]), step, first)


def _rule(step: nn.Module) -> Callable[[Any, Patches], Patches] | None:
    """The function that pulls patches back through a step; None if there is no rule for it."""
    if isinstance(step, nn.Conv2d):
        return _convolved
    if isinstance(step, Normalisation):
        return _scaled
    if isinstance(step, nn.AvgPool2d):
        return _pooled if pair(step.padding) == [0, 0] and not step.ceil_mode else None
    return _padded if is_padding(step) and not any(pads(step)[4:]) else None


class PatchMap:
    """The backward pass of patches through a graph that `Batched` supports."""

    def __init__(self, batched: Batched) -> None:
        self._batched = batched

    @property
    def planes(self) -> tuple[Shape, ...]:
        """The plane [channels, height, width] of each source, and last that of the result."""
        ends = (*self._batched.sources, self._batched.end)
        return tuple(self._batched.shapes[node][1:] for node in ends)

    def known(self) -> bool:
        """Whether all tensors are planes, and all steps have rules."""
        if any(len(plane) != 3 for plane in self.planes):
            return False
        for node, steps in self._batched.steps.items():
            if kind(node) == "Reshape":
                return False
            if any(len(shape) != 4 for _, shape in steps):
                return False
            if kind(node) != "Identity" and any(_rule(step) is None for step, _ in steps):
                return False
        return True

    def pull(self, patch: Patches, places: Tensor) -> tuple[Patches | None, ...]:
        """Pull patches over the result back to each source; None for a source that is not read."""

        def through(node: fx.Node, patch: Patches) -> Patches:
            steps, inner = self._batched.steps[node], node.args[0] not in self._batched.sources
            for number, (step, shape) in reversed(list(enumerate(steps))):
                rule = _rule(step)
                patch = patch if rule is None else rule(step, patch)  # None is an Identity
                # At a source, entries outside the plane may stay: `WindowPositions` ignores them.
                if number or inner:
                    patch = _cut(patch, places, shape[1:])
            return patch

        return tuple(self._batched.walk_back(patch, through))


def _cut(patch: Patches, places: Tensor, plane: Shape) -> Patches:
    """Set entries outside of a plane to 0: there is nothing there for them to multiply."""
    sides = []
    for axis in range(2):
        size = patch.size[axis]
        begin = places[:, axis] * patch.step[axis] + patch.first[axis]
        at = begin.unsqueeze(-1) + torch.arange(size, device=places.device)
        sides.append((at >= 0) & (at < plane[1 + axis]))  # [places, size]
    mask = sides[0].unsqueeze(-1) & sides[1].unsqueeze(-2)  # [places, height, width]
    return patch._replace(rows=patch.rows * mask[:, None, :, :, None])
