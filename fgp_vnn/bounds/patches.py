"""Bounds of a convolution's neurons by backward passes over small windows (patches).

The formulas are those of `bounds.backward`, with a batch of places (pixels): the rows of all
neurons at a place depend on the same window of every layer, so only the bounds and lines inside
that window are read. Once a window is nearly as large as its plane, rows over all neurons take
over.

Rounding: a row's coefficients are sums of the same terms as without windows, in another order, so
the same error bounds hold; entries outside of a plane are 0 and count as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.rounding import below
from fgp_vnn.bounds.lines import Lines, pull
from fgp_vnn.bounds.rounding import Rounding, dot
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.maps.batched import Shape
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.maps.patches import Patches, PatchMap, WindowPositions
from fgp_vnn.network.model import Network
from fgp_vnn.strategy import COMMON

_COPIES = 8  # of a window's rows that a pass holds at once


# Finishes a backward pass from a layer on without windows: takes the layer, the coefficients [1,
# rows, n_k] of pending layers k, constants and errors [1, rows]; returns lower bounds [1, rows].
Rest = Callable[[int, dict[int, Tensor], Tensor, Tensor], Tensor]


class _Group(NamedTuple):
    """Neurons that are bounded together, the same number at each place."""

    places: Tensor  # [places, 2]
    neurons: Tensor  # [places, rows] their indices in the layer


class PatchPass:
    """Backward pass for the neurons of one map, in windows as long as these are small."""

    def __init__(
        self,
        network: Network,
        target: int,
        lines: Sequence[Lines],
        rounding: Rounding,
        rest: Rest,
    ) -> None:
        self._network, self._target, self._lines, self._rest = network, target, lines, rest
        self._rounding, self._box = rounding, rounding.domain
        self._maps = [_patch_map(affine) for affine in network.maps[: target + 1]]
        self._planes: dict[int, Shape] = {}
        for k, found in enumerate(self._maps):
            if found is not None:
                *read, made = found.planes
                self._planes.update(zip(network.maps[k].sources, read, strict=True))
                self._planes[k + 1] = made

    @property
    def pays(self) -> bool:
        """Whether a pass by windows applies and its first windows are small."""
        first = self._maps[self._target]
        if first is None or not isinstance(self._box, Box) or not self._network.piecewise_linear:
            return False
        return all(self._small(k, p) for k, p in self._begin(self._probe()).items())

    def by_place(self, neurons: Tensor) -> Tensor:
        """Neurons [m] sorted by place; those at one place have the same windows."""
        _, height, width = self._planes[self._target + 1]
        return neurons[(neurons % (height * width)).argsort(stable=True)]

    def bounds(self, neurons: Tensor, budget: Budget) -> tuple[Tensor, Tensor]:
        """Proved lower and upper bounds [m] of neurons [m]; infinite after the deadline."""
        lower = self._network.output.bias.new_full(
            (self._network.widths[self._target],), -torch.inf
        )
        upper = -lower
        for group in self._groups(neurons, budget):
            if budget.expired():
                break
            low, high = self._bound(group)
            lower[group.neurons], upper[group.neurons] = low, high
        return lower[neurons], upper[neurons]

    def _groups(self, neurons: Tensor, budget: Budget) -> list[_Group]:
        """Group places with similar numbers of neurons; a group has as many as fit into memory."""
        _, height, width = self._planes[self._target + 1]
        host = neurons.cpu().numpy()  # one read: the number of neurons at each place is needed
        order = np.argsort(host % (height * width), kind="stable")
        places, count = np.unique(host % (height * width), return_counts=True)
        first = count.cumsum() - count
        row = 8 * _COPIES * self._entries()  # bytes
        fit = min(budget.at_once, COMMON.cached_windows) // row
        # A place with more neurons than fit into memory, or than end in time, counts as several.
        most = min(budget.at_once, COMMON.ascents) if neurons.is_cpu else budget.at_once
        cap = max(1, most // (2 * row))
        parts = -(-count // cap)
        before = cap * (np.arange(parts.sum()) - np.repeat(parts.cumsum() - parts, parts))
        places, first, count = (np.repeat(a, parts) for a in (places, first, count))
        first, count = first + before, np.minimum(count - before, cap)
        result: list[_Group] = []
        by_count = np.argsort(-count, kind="stable")
        begin = 0
        while begin < len(by_count):
            rows = int(count[by_count[begin]])
            some = by_count[begin : begin + max(1, fit // (2 * rows))]
            begin += len(some)
            # A place with fewer neurons than another repeats its last one.
            at = np.minimum(np.arange(rows), count[some, None] - 1)
            chosen = host[order[first[some, None] + at]]
            where = np.stack([places[some] // width, places[some] % width], -1)
            pair = (torch.from_numpy(part).to(neurons.device) for part in (where, chosen))
            result.append(_Group(*pair))
        return result

    def _probe(self) -> _Group:
        zero = torch.zeros(1, 2, dtype=torch.long, device=self._network.device)
        return _Group(zero, zero[:, :1])

    def _entries(self) -> int:
        """Number of entries of the largest window, or plane, that a row needs on its way."""
        waiting = self._begin(self._probe())
        largest = max(self._planes[self._target + 1][0], *(_size(p) for p in waiting.values()))
        for k in range(self._target, 0, -1):
            if not self._windows_go_on(k, waiting):
                return max(largest, self._network.inputs, *self._network.widths[:k])
            if k in waiting:
                self._pull(k, waiting.pop(k), waiting, self._probe())
                largest = max(largest, *(_size(p) for p in waiting.values()))
        return largest

    def _begin(self, group: _Group) -> dict[int, Patches]:
        """The rows of the neurons, as windows over their map's sources."""
        channels, height, width = self._planes[self._target + 1]
        channel = (group.neurons // (height * width)).unsqueeze(-1)
        rows = self._network.output.bias.new_zeros(*group.neurons.shape, channels)
        rows = rows.scatter(-1, channel, 1)[:, :, None, None]
        waiting: dict[int, Patches] = {}
        self._pull(self._target + 1, Patches(rows, (1, 1), (0, 0)), waiting, group)
        return waiting

    def _pull(self, layer: int, patch: Patches, waiting: dict[int, Patches], group: _Group) -> None:
        """Pull rows over the values of a layer back to its map's sources; adds to `waiting`."""
        found = self._maps[layer - 1]
        if found is None:
            raise AssertionError("windows go on only where a map takes them")
        sources = self._network.maps[layer - 1].sources
        for source, part in zip(sources, found.pull(patch, group.places), strict=True):
            if part is not None:
                waiting[source] = waiting[source] + part if source in waiting else part

    def _small(self, layer: int, patch: Patches) -> bool:
        _, height, width = self._planes[layer]
        return patch.size[0] * patch.size[1] <= COMMON.window * height * width

    def _windows_go_on(self, layer: int, waiting: dict[int, Patches]) -> bool:
        if layer not in waiting:
            return True
        return self._maps[layer - 1] is not None and self._small(layer, waiting[layer])

    def _bound(self, group: _Group) -> tuple[Tensor, Tensor]:
        affine, rounding = self._network.maps[self._target], self._rounding
        waiting = self._begin(group)
        for k, one in waiting.items():
            waiting[k] = one._replace(rows=torch.cat([one.rows, -one.rows], 1))
        bias = affine.bias[group.neurons]
        error = rounding.of_neurons(self._target, group.neurons.reshape(1, -1))
        error = error.reshape(bias.shape)
        constant, error = torch.cat([bias, -bias], 1), torch.cat([error, error], 1)
        for k in range(self._target, 0, -1):
            if not self._windows_go_on(k, waiting):
                return self._hand_over(k, waiting, constant, error, group)
            patch = waiting.pop(k, None)
            if patch is None:
                continue
            read = self._windows(k, patch, group)
            coefficient = patch.rows.flatten(2)
            line = Lines(*(read(part) for part in self._lines[k - 1][:3]))
            through, constant = pull(RELU, coefficient, line, coefficient.shape[-1], constant)
            constant = dot(through, read(self._network.maps[k - 1].bias), constant)
            error = rounding.of_layer(k, coefficient, window=read, onto=error)
            rows = through.reshape(patch.rows.shape)
            self._pull(k, patch._replace(rows=rows), waiting, group)
        return self._at_input(waiting.get(0), constant, error, group)

    def _windows(self, layer: int, patch: Patches, group: _Group) -> WindowPositions:
        return WindowPositions(
            patch, self._planes[layer], group.places, self._planes[self._target + 1]
        )

    def _at_input(
        self, patch: Patches | None, constant: Tensor, error: Tensor, group: _Group
    ) -> tuple[Tensor, Tensor]:
        if patch is None or not isinstance(self._box, Box):
            raise AssertionError("a map reads the input in the end, and that is a box")
        read, weight = self._windows(0, patch, group), patch.rows.flatten(2)
        box = Box(read(self._box.lower).squeeze(1), read(self._box.upper).squeeze(1))
        constant = constant + dot(weight, box.center.unsqueeze(-2))
        reach = box.support(-weight)
        error = error + self._rounding.of_input(weight, reach, read)
        return _both(below(constant - reach - error))

    def _hand_over(
        self,
        layer: int,
        waiting: dict[int, Patches],
        constant: Tensor,
        error: Tensor,
        group: _Group,
    ) -> tuple[Tensor, Tensor]:
        """Finish the pass with rows over all neurons."""
        whole: dict[int, Tensor] = {}
        for k, patch in waiting.items():
            rows = self._windows(k, patch, group).write(patch.rows.flatten(2))
            whole[k] = rows.flatten(0, 1).unsqueeze(0)
        least = self._rest(layer, whole, constant.reshape(1, -1), error.reshape(1, -1))
        return _both(least.reshape(constant.shape))


def _both(least: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds of z from lower bounds [places, 2 rows] of z and -z."""
    low, high = least.chunk(2, dim=-1)
    return low, -high


def _patch_map(affine: object) -> PatchMap | None:
    return affine.patches if isinstance(affine, Operator) else None


def _size(patch: Patches) -> int:
    """Number of entries of a row."""
    return patch.rows[0, 0].numel()
